"""
Time limits for the calls of a client, with one timer for all of them.

`with Limit(deadlines, seconds):` does what `async with asyncio.timeout(seconds):` does. The speed target needs it:
setting and cancelling a timer for each call costs 3 % of a tool call in memory more than this. A successful call with client
and guard costs 1.085 of the plain SDK; the target is 1.08 (`bench/mcp_calls.py`).
"""

from __future__ import annotations

import asyncio
import math
from time import monotonic

__all__ = ["Deadlines", "Limit"]


class Deadlines:
    """The time limits of one client's calls, in one event loop."""

    def __init__(self) -> None:
        self.limits: set[Limit] = set()
        """Those whose blocks are running."""
        self._timer: asyncio.TimerHandle | None = None
        self.timer_due = math.inf

    def close(self) -> None:
        """Cancel the timer; blocks that are still running are no longer limited."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self.timer_due = None, math.inf

    def set_timer(self, due: float) -> None:
        """Set the timer for a limit that ends before it."""
        # A limit that ends leaves the timer as it is: when it fires, it is set again for the earliest limit left.
        self.close()
        self.timer_due = due
        self._timer = asyncio.get_running_loop().call_later(max(0.0, due - monotonic()), self._fire)

    def _fire(self) -> None:
        self._timer, self.timer_due = None, math.inf
        now = monotonic()
        for limit in self.limits:
            if limit.due <= now:
                limit.expire()
        left = [limit.due for limit in self.limits if not limit.expired]
        if left:
            self.set_timer(min(left))


class Limit:
    """
    A context manager that cancels its block after `seconds`, and then raises TimeoutError. None: it is not limited.

    Cancellation works as in `asyncio.Timeout`.
    """

    __slots__ = ("_cancelling", "_deadlines", "_seconds", "_task", "due", "expired")

    def __init__(self, deadlines: Deadlines, seconds: float | None) -> None:
        self._deadlines = deadlines
        self._seconds = seconds
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self.due = math.inf
        self.expired = False

    def __enter__(self) -> None:
        if self._seconds is None:
            return
        task = self._task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a time limit needs a task")
        self._cancelling = task.cancelling()
        due = self.due = monotonic() + self._seconds
        deadlines = self._deadlines
        deadlines.limits.add(self)
        if due < deadlines.timer_due:
            deadlines.set_timer(due)

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: object) -> None:
        if self._task is None:
            return
        self._deadlines.limits.discard(self)
        # If the block was also cancelled from outside, before or after, the CancelledError stays.
        if (
            self.expired
            and self._task.uncancel() <= self._cancelling
            and isinstance(exc, asyncio.CancelledError)
        ):
            raise TimeoutError from exc

    def expire(self) -> None:
        """Cancel the block."""
        if self._task is not None and not self.expired:
            self.expired = True
            self._task.cancel()
