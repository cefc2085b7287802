"""
The clock of recovery. All code of this package that reads the time, draws a random number or waits uses `CLOCK`.

`amends.testing` replaces its parts with a clock that never sleeps, and the simulator in `bench/recovery` with its own.
No other module of this package imports `time` or `random`, or sleeps.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amends.recovery.async_library import ThreadWaiter, Waiter

__all__ = ["CLOCK", "Clock"]

# One year. `threading.Event.wait` raises OverflowError for more than about 292 years.
_LONGEST = 31_536_000.0


class Clock:
    """The functions that give the time and that wait. Each can be replaced; `using` replaces several at once."""

    __slots__ = ("apark", "asleep", "draw", "now", "park", "sleep", "wall")

    def __init__(self) -> None:
        self.now: Callable[[], float] = time.monotonic
        """The time in seconds. Only differences between two readings have a meaning."""
        self.wall: Callable[[], float] = time.time
        """Seconds since the epoch, for what several processes share."""
        self.draw: Callable[[], float] = _draw
        """A random number from 0 to 1, for jitter."""
        self.sleep: Callable[[float], None] = _sleep
        """Wait so many seconds on this thread."""
        self.asleep: Callable[[float], Awaitable[object]] = _asleep
        """Wait so many seconds in this task."""
        self.park: Callable[[ThreadWaiter, float], None] = _park
        """Wait until the waiter is woken, at most so many seconds, on this thread."""
        self.apark: Callable[[Waiter, float], Awaitable[None]] = _apark
        """Wait until the waiter is woken, at most so many seconds, in this task."""

    @contextmanager
    def using(self, **parts: object) -> Iterator[None]:
        """Replace the named parts while the block runs, for the whole process."""
        before = {name: getattr(self, name) for name in parts}
        try:
            for name, part in parts.items():
                setattr(self, name, part)
            yield
        finally:
            for name, part in before.items():
                setattr(self, name, part)


# `time.sleep` and `asyncio.sleep` are looked up at each call: a test that patches them patches this clock too.
# `random` and `asyncio` are imported at the first call, so that a program that needs neither loads neither.


def _draw() -> float:
    import random

    return random.random()  # noqa: S311 - jitter needs no secure randomness


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


def _asleep(seconds: float) -> Awaitable[None]:
    from amends.recovery.async_library import sleep

    return sleep(seconds)


def _park(waiter: ThreadWaiter, seconds: float) -> None:
    waiter.event.wait(min(seconds, _LONGEST))


def _apark(waiter: Waiter, seconds: float) -> Awaitable[None]:
    from amends.recovery.async_library import wait_for_waiter

    return wait_for_waiter(waiter, min(seconds, _LONGEST))


CLOCK = Clock()
"""The clock of this process."""
