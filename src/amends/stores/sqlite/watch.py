"""
Noticing what other processes wrote: SQLite has no bell, so somebody has to look.

`PRAGMA data_version` changes when another connection has committed, and costs a few microseconds: so the event loop looks
itself, on its own connection, whose commits are no news. It looks only while somebody waits.
"""

from __future__ import annotations

import asyncio
import sqlite3

from amends.stores.signal import Signal

__all__ = ["Watch"]

# Well under the 20 ms a follower may wait, and less than 1 % of one core.
_INTERVAL = 0.003


class Watch:
    """Rings a signal when the file was changed by another connection than this one."""

    def __init__(self, connection: sqlite3.Connection, signal: Signal) -> None:
        self._signal = signal
        self._loop = asyncio.get_running_loop()
        self._connection = connection
        self._version = 0
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False

    def want(self) -> None:
        """Somebody is about to wait: keep looking."""
        if self._timer is None and not self._stopped:
            self._timer = self._loop.call_later(_INTERVAL, self._look)

    def stop(self) -> None:
        """Look no more; the connection is about to be closed."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        if not self._signal.awaited:
            return
        try:
            version = self._connection.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error:
            # Locked for a moment, by a recovery say: those who wait look for themselves.
            version = None
        # Before the bell: whoever is woken by it and waits again finds the next look arranged.
        self.want()
        if version != self._version:
            self._version = version
            self._signal.ring()
