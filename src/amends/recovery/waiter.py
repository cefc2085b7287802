"""Somebody who waits for a turn, on a thread or on an event loop; woken from anywhere."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

__all__ = ["TaskWaiter", "ThreadWaiter", "Waiter"]


class Waiter:
    """One place in a line. `granted` and `again` belong to the line; a waiter only sleeps and is woken."""

    __slots__ = ("again", "granted")

    def __init__(self) -> None:
        self.granted = False
        """Whether its turn has come."""
        self.again = 0.0
        """When it asked to be the one who looks again; the line's business."""

    def wake(self) -> None:
        """End its sleep, or the next one if it is awake. From any thread."""

    def rest(self) -> None:
        """Before sleeping: forget earlier calls to wake."""


class ThreadWaiter(Waiter):
    """A thread that waits."""

    __slots__ = ("event",)

    def __init__(self) -> None:
        super().__init__()
        self.event = threading.Event()

    def wake(self) -> None:  # noqa: D102
        self.event.set()

    def rest(self) -> None:  # noqa: D102
        self.event.clear()


class TaskWaiter(Waiter):
    """A task that waits, and is woken on its own loop whoever calls."""

    __slots__ = ("future", "loop", "thread")

    def __init__(self) -> None:
        import asyncio

        super().__init__()
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self.future: asyncio.Future[None] = self.loop.create_future()

    def wake(self) -> None:  # noqa: D102
        if threading.get_ident() == self.thread:
            self._finish()
            return
        try:
            self.loop.call_soon_threadsafe(self._finish)
        except RuntimeError:
            # Its loop is closed: the task is gone, and nobody is left to wake.
            return

    def _finish(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

    def rest(self) -> None:  # noqa: D102
        if self.future.done():
            self.future = self.loop.create_future()
