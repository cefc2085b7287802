"""A change signal that many coroutines can wait for, without missing a notification between a read and the wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amends.stores.contract import Entry

__all__ = ["Signal"]


class Signal:
    """
    Notifies waiting coroutines that something may have changed.

    Read `count` before reading the data, then call `wait(count)`: it returns at once if `notify` was called in between.
    `on_wait` is called whenever a coroutine begins to wait, for a notifier that polls only while there are waiters.
    """

    def __init__(self, on_wait: Callable[[], None] | None = None) -> None:
        self.count = 0
        self.on_wait = on_wait
        self._waiters: set[asyncio.Future[None]] = set()

    @property
    def has_waiters(self) -> bool:
        """Whether any coroutine is waiting."""
        return bool(self._waiters)

    def entries(self, start: int) -> list[Entry]:
        """The entries from number `start` on that came with notifications, in order; empty if there are none."""
        return []

    def notify(self) -> None:
        """Wake all waiters. Call it only from the event loop's thread."""
        self.count += 1
        if self._waiters:
            waiters, self._waiters = self._waiters, set()
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    async def wait(self, seen: int, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Return when `notify` has been called since `count` was `seen`, or after `timeout` seconds."""
        if self.count != seen:
            return
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.add(waiter)
        if self.on_wait is not None:
            self.on_wait()
        # A timer instead of wait_for: every idle follower and worker waits here, and wait_for would add a task for each.
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
