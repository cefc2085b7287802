"""A change signal that many coroutines can wait for, without missing a notification between a read and the wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amends.stores.contract import Entry

__all__ = ["Signal"]


class Signal:
    """
    Notifies waiting coroutines that something may have changed.

    Read `count` before reading the data, then call `wait(count)`: it returns at once if `notify` was called in between.
    `wait(count, queue=name)` waits for changes after which that queue may have a new message.
    `on_wait` is called whenever a coroutine begins to wait, for a notifier that polls only while there are waiters.
    """

    def __init__(self, on_wait: Callable[[], None] | None = None) -> None:
        self.count = 0
        self.on_wait = on_wait
        self._waiters: dict[asyncio.Future[None], str | None] = {}
        """Those that wait, each with the queue it waits for, or None."""
        self._any = 0
        """The count at the last change that may have been of any queue."""
        self._queues: dict[str, int] = {}
        """The count at the last change after which each queue had a new message."""

    @property
    def has_waiters(self) -> bool:
        """Whether any coroutine is waiting."""
        return bool(self._waiters)

    def entries(self, start: int) -> list[Entry]:
        """The entries from number `start` on that came with notifications, in order; empty if there are none."""
        return []

    def notify(self, queues: Iterable[str] | None = None) -> None:
        """
        Wake the waiters. Call it only from the event loop's thread.

        `queues` are those that have new messages; None: any may have some. Who waits for another queue is not woken.
        """
        self.count += 1
        if queues is None:
            self._any = self.count
        else:
            self._queues.update(dict.fromkeys(queues, self.count))
        for waiter, queue in list(self._waiters.items()):
            if (queue is None or self._changed(queue) == self.count) and not waiter.done():
                waiter.set_result(None)

    def has_message(self, queue: str, seen: int) -> bool:
        """Whether `notify` has named the queue since `count` was `seen`."""
        return self._queues.get(queue, 0) > seen

    def _changed(self, queue: str) -> int:
        return max(self._any, self._queues.get(queue, 0))

    async def wait(self, seen: int, timeout: float | None = None, *, queue: str | None = None) -> None:  # noqa: ASYNC109
        """Return when `notify` has been called since `count` was `seen`, or after `timeout` seconds."""
        if (self.count if queue is None else self._changed(queue)) > seen:
            return
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters[waiter] = queue
        if self.on_wait is not None:
            self.on_wait()
        # A timer instead of wait_for: every idle follower and worker waits here, and wait_for would add a task for each.
        timer = None if timeout is None else loop.call_later(timeout, _release, waiter)
        try:
            await waiter
        finally:
            del self._waiters[waiter]
            if timer is not None:
                timer.cancel()


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
