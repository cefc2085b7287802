"""
Waiters: a thread or a task that sleeps until it is woken.

`wake` may be called from any thread. `amends.recovery.clock` does the sleeping, so that tests can replace it.
"""

from __future__ import annotations

import threading

__all__ = ["TaskWaiter", "ThreadWaiter", "Waiter"]


class Waiter:
    """One entry of an upstream's queue. The upstream sets `granted` and `look_at`; the waiter only sleeps."""

    __slots__ = ("fresh", "granted", "look_at")

    def __init__(self) -> None:
        self.fresh = True
        """Whether the operation of this waiter has made no call yet."""
        self.granted = False
        """Whether the call of this waiter may be sent."""
        self.look_at = 0.0
        """When the upstream asked this waiter to call `look` again."""

    def wake(self) -> None:
        """End the current sleep, or the next one if the waiter is awake."""

    def clear(self) -> None:
        """Discard earlier calls of `wake`, so that the next sleep lasts."""


class ThreadWaiter(Waiter):
    """A waiting thread."""

    __slots__ = ("event",)

    def __init__(self) -> None:
        super().__init__()
        self.event = threading.Event()

    def wake(self) -> None:  # noqa: D102
        self.event.set()

    def clear(self) -> None:  # noqa: D102
        self.event.clear()


class TaskWaiter(Waiter):
    """A waiting task. Its event is set on its own event loop, from whichever thread `wake` is called."""

    __slots__ = ("event", "loop", "thread")

    def __init__(self) -> None:
        import asyncio

        super().__init__()
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self.event = asyncio.Event()

    def wake(self) -> None:  # noqa: D102
        if threading.get_ident() == self.thread:
            self.event.set()
            return
        try:
            self.loop.call_soon_threadsafe(self.event.set)
        except RuntimeError:
            return  # the loop is closed, and its tasks with it

    def clear(self) -> None:  # noqa: D102
        self.event.clear()
