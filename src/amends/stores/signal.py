"""A bell that many coroutines wait for, and that cannot be missed between looking and waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amends.stores.contract import Entry

__all__ = ["Signal"]


class Signal:
    """
    Something may have changed: look again.

    Read `count` before looking, then `wait(count)`: a ring in between returns at once. `wanted` is called whenever
    somebody begins to wait, for a ringer that has to be kept awake.
    """

    def __init__(self, wanted: Callable[[], None] | None = None) -> None:
        self.count = 0
        self.wanted = wanted
        self._waiters: set[asyncio.Future[None]] = set()

    @property
    def awaited(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiters)

    def brought(self, start: int) -> list[Entry]:
        """Entries from number `start` on that came with the ring, in order; none where it only says that there are some."""
        return []

    def ring(self) -> None:
        """Wake everybody who waits. Only from the event loop's thread."""
        self.count += 1
        if self._waiters:
            waiters, self._waiters = self._waiters, set()
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    async def wait(self, seen: int, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Return when the bell was rung after `seen` was read, or after `timeout` seconds."""
        if self.count != seen:
            return
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.add(waiter)
        if self.wanted is not None:
            self.wanted()
        # A timer instead of wait_for: this is the idle state of every follower and worker, and wants no extra task.
        timer = None if timeout is None else loop.call_later(timeout, _release, waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
            if timer is not None:
                timer.cancel()


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
