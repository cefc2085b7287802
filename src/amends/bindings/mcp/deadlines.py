"""
Time limits for the calls of a client, with one timer for all of them.

`with deadlines.limit(seconds):` does what `async with asyncio.timeout(seconds):` does. The speed target needs it:
setting and cancelling a timer for each call is half of what the client adds to a tool call in memory. A successful call
with client and guard costs 1.07 of the plain SDK with this module and 1.10 with `asyncio.timeout`; the target is 1.08
(`bench/mcp_calls.py`).
"""

from __future__ import annotations

import asyncio
import math
from typing import Any

__all__ = ["Deadlines"]


class Deadlines:
    """The time limits of one client's calls, in one event loop."""

    def __init__(self) -> None:
        self._limits: set[_Limit] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = math.inf

    def limit(self, seconds: float | None) -> _Limit:
        """
        Return a context manager that cancels its block after `seconds`, and then raises TimeoutError.

        With None the block is not limited.
        """
        return _Limit(self, seconds)

    def close(self) -> None:
        """Cancel the timer; blocks that are still running are no longer limited."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_due = None, math.inf

    def add(self, limit: _Limit) -> None:
        """Start to watch a limit whose block begins."""
        self._limits.add(limit)
        if limit.due < self._timer_due:
            self._set_timer(limit.due)

    def remove(self, limit: _Limit) -> None:
        """Stop watching a limit whose block ends."""
        self._limits.discard(limit)

    def _set_timer(self, due: float) -> None:
        # A limit that ends leaves the timer as it is: when it fires, it is set again for the earliest limit left.
        self.close()
        self._timer_due = due
        self._timer = asyncio.get_running_loop().call_at(due, self._fire)

    def _fire(self) -> None:
        self._timer, self._timer_due = None, math.inf
        now = asyncio.get_running_loop().time()
        for limit in self._limits:
            if limit.due <= now:
                limit.expire()
        left = [limit.due for limit in self._limits if not limit.expired]
        if left:
            self._set_timer(min(left))


class _Limit:
    """One limited block. Cancellation works as in `asyncio.Timeout`."""

    __slots__ = ("_cancelling", "_deadlines", "_seconds", "_task", "due", "expired")

    def __init__(self, deadlines: Deadlines, seconds: float | None) -> None:
        self._deadlines = deadlines
        self._seconds = seconds
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self.due = math.inf
        self.expired = False

    def __enter__(self) -> None:
        if self._seconds is None:
            return
        loop = asyncio.get_running_loop()
        task = self._task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("a time limit needs a task")
        self._cancelling = task.cancelling()
        self.due = loop.time() + self._seconds
        self._deadlines.add(self)

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: object) -> None:
        if self._task is None:
            return
        self._deadlines.remove(self)
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
