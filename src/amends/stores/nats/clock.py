"""The server's time: leases and expiries are judged by the clock that stamped them, and nobody's own matters."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import datetime

__all__ = ["ServerClock", "moment"]

_AGE = 30.0


class ServerClock:
    """
    The server's clock, or a little less: read every half minute and carried on by this process's steady one.

    A stamp was made before it is heard: that bounds the server's clock from below, and the largest bound is the best. From
    below, because a lease or a delay must never be taken for over too early; a slow answer only makes it late.
    """

    def __init__(self) -> None:
        self._bound: float | None = None
        self._since = 0.0

    def hear(self, stamp: str) -> None:
        """A time stamp the server has just made."""
        now = time.monotonic()
        bound = moment(stamp) - now
        if self._bound is None or now - self._since > _AGE:
            self._bound, self._since = bound, now
        else:
            self._bound = max(bound, self._bound)

    def forget(self) -> None:
        """It may be another server's from now on."""
        self._bound = None

    async def now(self, ask: Callable[[], Awaitable[object]]) -> float | None:
        """Seconds since 1970 by the server; `ask` has it make a stamp. None when it makes none."""
        if self._bound is None or time.monotonic() - self._since > _AGE:
            self._bound = None
            await ask()
        return None if self._bound is None else self._bound + time.monotonic()


def moment(stamp: str) -> float:
    """Seconds since 1970 of a server's time stamp."""
    return datetime.fromisoformat(stamp).timestamp()
