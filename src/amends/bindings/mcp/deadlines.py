"""
Time limits for many calls with one timer.

`asyncio.timeout` sets and clears a timer for every call, which is a good part of what a call in memory costs. Here a call
only notes when its time is over; the one timer looks at those still running when the first of them may be.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any

__all__ = ["Watch"]


class Watch:
    """The limits of one client's calls, by the task each is made in: a task makes one at a time."""

    __slots__ = ("_due", "_expired", "_running", "_timer")

    def __init__(self) -> None:
        self._running: dict[asyncio.Task[Any], float] = {}
        self._expired: dict[asyncio.Task[Any], int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due = math.inf

    def begin(self, seconds: float) -> asyncio.Task[Any] | None:
        """Limit what the current task does from now on; None where a limit around it is at work already."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        running = self._running
        if task is None or task in running:
            return None
        running[task] = until = loop.time() + seconds
        if until < self._due:
            self._set(loop, until)
        return task

    def end(self, task: asyncio.Task[Any], *, cancelled: bool) -> bool:
        """It is over. Whether the limit ended it, and nobody else's cancellation beside."""
        del self._running[task]
        if not self._expired or task not in self._expired:
            return False
        return task.uncancel() <= self._expired.pop(task) and cancelled

    def stop(self) -> None:
        """Set no timer any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._due = None, math.inf

    def _set(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self.stop()
        self._due = due
        self._timer = loop.call_at(due, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer, self._due = None, math.inf
        now = loop.time()
        left = []
        for task, until in self._running.items():
            if until > now:
                left.append(until)
            elif task not in self._expired:
                self._expired[task] = task.cancelling()
                task.cancel()
        if left:
            self._set(loop, min(left))
