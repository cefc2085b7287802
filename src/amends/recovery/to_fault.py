"""Exceptions and answers as faults."""

from __future__ import annotations

from typing import Any

from amends.core.fault import Fault
from amends.errors.base import FaultError

__all__ = ["failed_answer", "fault_of", "waited_below"]


def fault_of(error: Exception) -> Fault:
    """What an exception says: its own fault, or what is known about exceptions of its kind."""
    if isinstance(error, FaultError):
        return error.fault
    from amends.foreign import from_exception

    return from_exception(error)


def waited_below(error: Exception | None) -> float:
    """Seconds a recovery inside the call waited before it gave up: they count for the one around it."""
    if not isinstance(error, FaultError):
        return 0.0
    return float(sum(attempt.wait for attempt in error.history))


def failed_answer(answer: Any) -> Fault | None:
    """
    The fault of an answer that reports a failure; None for one that does not.

    Reads what `amends.extract` reads: an httpx or requests response, an MCP result, an A2A task, a finished process.
    A remark on an answer that did not fail is not a failure.

    >>> failed_answer({"status": 503, "headers": {}}).code
    'SERVICE_UNAVAILABLE'
    >>> failed_answer({"status": 200, "headers": {}}) is None
    True
    """
    from amends.carriers.extraction import examine

    _, reading = examine(answer)
    if not reading.failed:
        return None
    return reading.fault or Fault(code="INTERNAL_ERROR")
