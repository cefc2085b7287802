"""Room for so many at once: asyncio's semaphore without the price of its context, which every request would pay."""

from __future__ import annotations

import asyncio
from collections import deque

__all__ = ["Room"]


class Room:
    """Places that are taken and left; whoever finds none waits for the next one, in the order of coming."""

    __slots__ = ("_left", "_waiting")

    def __init__(self, places: int) -> None:
        self._left = places
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take(self) -> bool:
        """Whether there was a place; else `turn` waits for one."""
        if not self._left:
            return False
        self._left -= 1
        return True

    async def turn(self) -> None:
        """Wait for a place that somebody leaves."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():
                self.leave()  # given in the very turn in which nobody wanted it any more
            raise

    def leave(self) -> None:
        """Give the place to whoever waits longest, or back."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._left += 1
