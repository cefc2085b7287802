"""
Time limits for many calls with one timer.

`asyncio.timeout` sets and clears a timer for every call, which is a good part of what a call in memory costs. Here a call
only notes when its time is over; the one timer looks at those still running when the first of them may be.
"""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["Limited", "Watch"]


class Limited:
    """One call and its limit. Use as `limited = watch.begin(seconds)`, then `limited.end(cancelled)` in any case."""

    __slots__ = ("_cancelling", "_task", "_watch", "expired", "until")

    def __init__(self, watch: Watch, task: asyncio.Task[Any], until: float) -> None:
        self._watch, self._task, self.until = watch, task, until
        self._cancelling = task.cancelling()
        self.expired = False

    def end(self, *, cancelled: bool = False) -> bool:
        """The call is over. Whether it was our cancellation that ended it, and nobody else's beside."""
        self._watch.running.discard(self)
        if not self.expired:
            return False
        return self._task.uncancel() <= self._cancelling and cancelled

    def expire(self) -> None:
        """Its time is over."""
        self.expired = True
        self._task.cancel()


class Watch:
    """The limits of one client's calls."""

    __slots__ = ("_due", "_timer", "running")

    def __init__(self) -> None:
        self.running: set[Limited] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def begin(self, seconds: float) -> Limited:
        """The limit of a call that begins now, in the current task."""
        task = asyncio.current_task()
        assert task is not None
        loop = task.get_loop()
        until = loop.time() + seconds
        limited = Limited(self, task, until)
        self.running.add(limited)
        if self._timer is None or until < self._due:
            self._set(loop, until)
        return limited

    def _set(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self.stop()
        self._due = due
        self._timer = loop.call_at(due, self._look, loop)

    def stop(self) -> None:
        """Set no timer any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for limited in [each for each in self.running if each.until <= now and not each.expired]:
            limited.expire()
        left = [each.until for each in self.running if not each.expired]
        if left:
            self._set(loop, min(left))
