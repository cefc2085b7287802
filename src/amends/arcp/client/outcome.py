"""How a job ended, to be awaited as often and by as many as like."""

from __future__ import annotations

from asyncio import Future, get_running_loop
from collections.abc import Generator
from typing import Any

from amends.arcp.client.session_faults import error_of
from amends.core.fault import Fault

__all__ = ["Outcome"]


class Outcome:
    """
    Gives the result, or raises the failure. Cancelling whoever awaits it cancels nobody else.

    Not a future on purpose: a future dies with the first waiter that is cancelled, and complains when nobody asks.
    """

    __slots__ = ("_waiters", "fault", "finished", "value")

    def __init__(self) -> None:
        self.finished = False
        self.value: Any = None
        self.fault: Fault | None = None
        self._waiters: list[Future[None]] = []

    def succeed(self, value: Any) -> None:
        """The job succeeded."""
        self.value = value
        self._end()

    def fail(self, fault: Fault) -> None:
        """The job failed, or nothing more will be heard of it."""
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
