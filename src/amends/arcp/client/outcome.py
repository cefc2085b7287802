"""The outcome of a job, which any number of tasks can await any number of times."""

from __future__ import annotations

from asyncio import Future, get_running_loop
from collections.abc import Generator
from typing import Any

from amends.arcp.client.session_faults import error_of
from amends.core.fault import Fault

__all__ = ["Outcome"]


class Outcome:
    """
    Returns the result or raises the failure. Cancelling one waiter does not affect the others.

    Not a future: awaiting a future from a task that is cancelled cancels it for all, and a failed one that is never awaited
    logs an error.
    """

    __slots__ = ("_waiters", "fault", "finished", "value")

    def __init__(self) -> None:
        self.finished = False
        self.value: Any = None
        self.fault: Fault | None = None
        self._waiters: list[Future[None]] = []

    def succeed(self, value: Any) -> None:
        """End with a result."""
        self.value = value
        self._end()

    def fail(self, fault: Fault) -> None:
        """End with a failure."""
        self.fault = fault
        self._end()

    def _end(self) -> None:
        self.finished = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait for the end."""
        if not self.finished:
            waiter: Future[None] = get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                yield from waiter
            finally:
                if not self.finished:
                    self._waiters.remove(waiter)
        if self.fault is not None:
            raise error_of(self.fault)
        return self.value
