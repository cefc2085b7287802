"""
Detect changes by other processes. SQLite has no notifications, so the event loop polls.

`PRAGMA data_version` changes when another connection has committed, and costs a few microseconds, so the event loop runs it
on its own connection, for whose commits it does not change. It polls only while there are waiters.
"""

from __future__ import annotations

import asyncio
import sqlite3

from amends.stores.signal import Signal

__all__ = ["Watch"]

# Well under the 20 ms a follower may wait, and less than 1 % of one core.
_INTERVAL = 0.003


class Watch:
    """Notifies a signal when another connection has changed the file."""

    def __init__(self, connection: sqlite3.Connection, signal: Signal) -> None:
        self._signal = signal
        self._loop = asyncio.get_running_loop()
        self._connection = connection
        self._version = 0
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False

    def schedule(self) -> None:
        """Schedule the next poll; called when a coroutine begins to wait."""
        if self._timer is None and not self._stopped:
            self._timer = self._loop.call_later(_INTERVAL, self._poll)

    def stop(self) -> None:
        """Stop polling, because the connection is about to be closed."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _poll(self) -> None:
        self._timer = None
        if not self._signal.has_waiters:
            return
        try:
            version = self._connection.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error:
            # Locked for a moment, for example by a recovery: wake the waiters, so that they read themselves.
            version = None
        # Before notify: a waiter that wakes and waits again must find the next poll scheduled.
        self.schedule()
        if version != self._version:
            self._version = version
            self._signal.notify()
