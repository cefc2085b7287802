# ruff: noqa: D102  (what a method means is said once, in contract.py)
"""
Noticing what other processes wrote: SQLite has no bell, so somebody has to look.

`PRAGMA data_version` changes when another connection has committed, and costs a few microseconds. It is read only while
somebody waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading

from amends.stores.signal import Signal

__all__ = ["Watch"]

# Well under the 20 ms a follower may wait, and less than 1 % of one core.
_INTERVAL = 0.003


class Watch:
    """Rings a signal when the file was changed by anybody."""

    def __init__(self, connection: sqlite3.Connection, signal: Signal) -> None:
        self._signal = signal
        self._loop = asyncio.get_running_loop()
        self._connection = connection
        self._ended = threading.Event()
        self._wanted = threading.Event()
        self._thread = threading.Thread(target=self._run, name="amends-sqlite-watch", daemon=True)
        self._thread.start()

    def want(self) -> None:
        """Somebody is about to wait: keep looking."""
        self._wanted.set()

    async def close(self) -> None:
        self._ended.set()
        self._wanted.set()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        version = 0
        while not self._ended.is_set():
            self._wanted.wait()
            try:
                now = self._connection.execute("PRAGMA data_version").fetchone()[0]
            except sqlite3.Error:
                # Locked for a moment, by a recovery say. Waiters look for themselves if we say so.
                now = version - 1
            if now != version:
                version = now
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._signal.ring)
            # In this order: a waiter that comes in between is either seen here or has set it again.
            self._wanted.clear()
            if self._signal.awaited:
                self._wanted.set()
            self._ended.wait(_INTERVAL)
        self._connection.close()
