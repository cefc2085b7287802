"""
The one seam between recovery and time: whatever reads a clock, rolls dice or waits does it through CLOCK.

`amends.testing` puts a clock there that never sleeps; a simulator puts its own. Nothing else in this package imports
`time`, `random`, or sleeps.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amends.recovery.waiter import TaskWaiter, ThreadWaiter

__all__ = ["CLOCK", "Clock"]

# A lock cannot be asked to wait longer than about 292 years; nobody means more than this.
_LONGEST = 31_536_000.0


class Clock:
    """Where the time comes from and how it is waited for. Each part can be replaced, all at once by `using`."""

    __slots__ = ("apark", "asleep", "draw", "now", "park", "sleep")

    def __init__(self) -> None:
        self.now: Callable[[], float] = _now
        """Seconds; only differences mean something."""
        self.draw: Callable[[], float] = _draw
        """A random number from 0 to 1, for jitter."""
        self.sleep: Callable[[float], None] = _sleep
        self.asleep: Callable[[float], Awaitable[Any]] = _asleep
        self.park: Callable[[ThreadWaiter, float], None] = _park
        """Wait until somebody wakes the waiter, or so many seconds."""
        self.apark: Callable[[TaskWaiter, float], Awaitable[None]] = _apark

    @contextmanager
    def using(self, **parts: Any) -> Iterator[None]:
        """Other parts for a while, for the whole process."""
        before = {name: getattr(self, name) for name in parts}
        try:
            for name, part in parts.items():
                setattr(self, name, part)
            yield
        finally:
            for name, part in before.items():
                setattr(self, name, part)


# Looked up when called, not when imported: whoever replaces the standard library's clocks means ours, too. And a
# program that only decides, or never awaits, does not load what waits.


def _now() -> float:
    return time.monotonic()


def _draw() -> float:
    import random

    return random.random()  # noqa: S311 - jitter is no secret


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


def _asleep(seconds: float) -> Awaitable[None]:
    import asyncio

    return asyncio.sleep(seconds)


def _park(waiter: ThreadWaiter, seconds: float) -> None:
    waiter.event.wait(min(seconds, _LONGEST))


async def _apark(waiter: TaskWaiter, seconds: float) -> None:
    future = waiter.future
    if future.done():
        return
    timer = waiter.loop.call_later(min(seconds, _LONGEST), waiter.wake)
    try:
        await future
    finally:
        timer.cancel()


CLOCK = Clock()
"""The process's clock."""
