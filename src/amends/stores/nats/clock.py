"""The server's clock, by which all clients judge expiries and delays, because it made their time stamps. Leases do not use it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import datetime

__all__ = ["ServerClock", "parse_time"]

_AGE = 30.0


class ServerClock:
    """
    A lower bound of the server's clock, refreshed every half minute and advanced by this process's steady clock.

    Each time stamp was made before it was received, so it bounds the server's clock from below, and the largest bound is the
    best. A lower bound is needed because a delay must never end too early; a slow reply only makes it end late.
    """

    def __init__(self) -> None:
        self._bound: float | None = None
        self._since = 0.0

    def observe(self, stamp: str) -> None:
        """Update the bound with a time stamp that the server has just made."""
        now = time.monotonic()
        bound = parse_time(stamp) - now
        if self._bound is None or now - self._since > _AGE:
            self._bound, self._since = bound, now
        else:
            self._bound = max(bound, self._bound)

    def reset(self) -> None:
        """Forget the bound, because the connection may now be to another server."""
        self._bound = None

    async def now(self, refresh: Callable[[], Awaitable[object]]) -> float | None:
        """Seconds since 1970 by the server; `refresh` makes it send a stamp. None if it sends none."""
        if self._bound is None or time.monotonic() - self._since > _AGE:
            self._bound = None
            await refresh()
        return None if self._bound is None else self._bound + time.monotonic()


def parse_time(stamp: str) -> float:
    """Convert a server's time stamp to seconds since 1970."""
    return datetime.fromisoformat(stamp).timestamp()
