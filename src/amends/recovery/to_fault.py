"""The faults of exceptions and of responses."""

from __future__ import annotations

from typing import Any

from amends.core.fault import Fault
from amends.errors.base import FaultError

__all__ = ["fault_in_response", "fault_of", "waited_below"]


def fault_of(error: Exception) -> Fault:
    """Return the fault of an exception: its own if it carries one, else the one `amends.from_exception` gives."""
    if isinstance(error, FaultError):
        return error.fault
    from amends.foreign import from_exception

    return from_exception(error)


def waited_below(error: Exception | None) -> float:
    """Return the seconds that a recovery inside the call waited before it gave up; they count for the outer one."""
    if not isinstance(error, FaultError):
        return 0.0
    return float(sum(attempt.wait for attempt in error.history))


def fault_in_response(response: Any) -> Fault | None:
    """
    Return the fault of a response that reports a failure, or None for one that does not.

    Reads what `amends.extract` reads: an httpx or requests response, an MCP result, an A2A task, a finished process.
    MCP and A2A failures without an AdCP error are read too. An error inside a response that did not fail counts as no
    failure.

    >>> fault_in_response({"status": 503, "headers": {}}).code
    'SERVICE_UNAVAILABLE'
    >>> fault_in_response({"status": 200, "headers": {}}) is None
    True
    """
    from amends.carriers.extraction import examine

    _, reading = examine(response, native=True)
    if not reading.failed:
        return None
    return reading.fault or Fault(code="INTERNAL_ERROR")
