"""
Time limits for the calls of a client, or for the events of a stream, with one timer for all of them.

`with Limit(deadlines, seconds):` does what `async with asyncio.timeout(seconds):` does. The speed targets need it: setting and
cancelling a timer for each call costs 3 % of a tool call of MCP in memory more than this, and 1.5 % of a streamed A2A message. With
client and guard the first costs 1.078 of the plain SDK, the second 1.065; the target is 1.08 (`bench/mcp_calls.py`, `bench/a2a.py`).
"""

from __future__ import annotations

import asyncio
import math
from time import monotonic

import msgspec

__all__ = ["Deadlines", "Limit"]


class Deadlines:
    """The time limits of one client's calls, or of one stream, in one event loop."""

    def __init__(self) -> None:
        self.limits: set[Limit] = set()
        """Those whose blocks are running."""
        self._timer: asyncio.TimerHandle | None = None
        self.timer_due = math.inf
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop of the calls, so that it is not looked up for each: on Python 3.11 that is a system call."""

    def close(self) -> None:
        """End the blocks that are still running, as if their time was over, and cancel the timer."""
        for limit in self.limits:
            limit.expire()
        self._cancel_timer()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self.timer_due, self.loop = None, math.inf, None

    def set_timer(self, due: float) -> None:
        """Set the timer for a limit that ends before it."""
        # A limit that ends leaves the timer as it is: when it fires, it is set again for the earliest limit left.
        self._cancel_timer()
        self.timer_due = due
        self.loop = asyncio.get_running_loop()
        self._timer = self.loop.call_later(max(0.0, due - monotonic()), self._fire)

    def _fire(self) -> None:
        self._timer, self.timer_due = None, math.inf
        now = monotonic()
        for limit in self.limits:
            if limit.due <= now:
                limit.expire()
        due = min((limit.due for limit in self.limits if not limit.expired), default=math.inf)
        if due < math.inf:
            self.set_timer(due)


class Limit(msgspec.Struct, eq=False):
    """
    A context manager that cancels its block after `seconds`, and then raises TimeoutError. None: when the client is closed.

    Cancellation works as in `asyncio.Timeout`.
    """

    deadlines: Deadlines
    seconds: float | None
    due: float = math.inf
    expired: bool = False
    task: asyncio.Task[object] | None = None
    cancelling: int = 0

    def __enter__(self) -> None:
        task = self.task = asyncio.current_task(self.deadlines.loop)
        if task is None:
            raise RuntimeError("a time limit needs a task")
        self.cancelling = task.cancelling()
        deadlines = self.deadlines
        deadlines.limits.add(self)
        if self.seconds is None:
            return
        due = self.due = monotonic() + self.seconds
        if due < deadlines.timer_due:
            deadlines.set_timer(due)

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: object) -> None:
        self.deadlines.limits.discard(self)
        if not self.expired or self.task is None:
            return
        # If the block was also cancelled from outside, before or after, the CancelledError stays.
        if self.task.uncancel() <= self.cancelling and isinstance(exc, asyncio.CancelledError):
            raise TimeoutError from exc

    def expire(self) -> None:
        """Cancel the block."""
        if self.task is not None and not self.expired:
            self.expired = True
            self.task.cancel()
