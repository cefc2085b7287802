"""A limit on concurrent requests: an asyncio semaphore without the cost of its context manager for every request."""

from __future__ import annotations

import asyncio
from collections import deque

__all__ = ["Limiter"]


class Limiter:
    """Allows `limit` holders at once; further callers wait in the order in which they came."""

    __slots__ = ("_left", "_waiting")

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._waiting: deque[asyncio.Future[None]] = deque()

    def try_acquire(self) -> bool:
        """Acquire a slot if one is free; otherwise return False, and `wait` waits for one."""
        if not self._left:
            return False
        self._left -= 1
        return True

    async def wait(self) -> None:
        """Wait for a slot and acquire it."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():
                self.release()  # it was assigned in the same turn in which this waiter was cancelled
            raise

    def release(self) -> None:
        """Pass the slot to the caller that has waited longest, or free it."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._left += 1
