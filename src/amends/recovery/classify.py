"""
What a failure means to recovery: its fault, whether `on=` names it, and what it shows about the service.

Without `on`, the exception's fault decides (`amends.from_exception`). With `on`, exactly the exceptions that match are
repeated, within the same limits.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.hints import usable
from amends.core.validate import in_seconds
from amends.core.vocabulary import row_for
from amends.errors.base import FaultError

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = [
    "On",
    "Signal",
    "check_on",
    "fault_in_response",
    "fault_of",
    "is_unregistered_bug",
    "matches",
    "signal_of",
    "waited_below",
]


def fault_of(error: Exception, vendor: str | None = None) -> Fault:
    """
    Return the fault of an exception: its own if it carries one, else the one `amends.from_exception` gives.

    `vendor` is the Upstream's. It says whose codes the exception has.
    """
    if isinstance(error, FaultError):
        return error.fault
    from amends.foreign import from_exception

    return from_exception(error, vendor=vendor)


def waited_below(error: Exception | None) -> float:
    """Return the seconds that a recovery inside the call waited before it gave up; they count for the outer one."""
    if not isinstance(error, FaultError):
        return 0.0
    return float(sum(attempt.wait for attempt in error.history))


def fault_in_response(response: object, vendor: str | None = None) -> Fault | None:
    """
    Return the fault of a response that reports a failure, or None for one that does not.

    `vendor` is the service that sent it, if known.

    Reads what `amends.extract` reads: an httpx or requests response, an MCP result, an A2A task, a finished process.
    MCP and A2A failures without an AdCP error are read too. An error inside a response that did not fail counts as no
    failure.

    >>> fault_in_response({"status": 503, "headers": {}}).code
    'SERVICE_UNAVAILABLE'
    >>> fault_in_response({"status": 200, "headers": {}}) is None
    True
    """
    from amends.carriers.extraction import examine

    _, reading = examine(response, native=True, vendor=vendor)
    if not reading.failed:
        return None
    return reading.fault or Fault(code="INTERNAL_ERROR")


On = type[BaseException] | tuple[type[BaseException], ...] | Callable[[Any], "bool | float | timedelta"]
"""
An exception class, a tuple of them, or a function that gets the exception and returns whether it is repeated: True, False,
or the seconds to wait before the repeat.
"""


def check_on(on: object) -> None:
    """
    Check the option `on`.

    Raises:
        TypeError: it is neither exception classes nor a function.

    """
    classes = on if isinstance(on, tuple) else (on,) if isinstance(on, type) else ()
    for each in classes:
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            raise TypeError(f"on names exception classes, not {each!r}: write on=(ConnectionError, OSError)")
    if on is not None and not classes and not callable(on):
        kind = "an empty tuple" if on == () else type(on).__name__
        raise TypeError(
            f"on is an exception class, a tuple of them, or a function of the exception, not {kind}"
        )
    if iscoroutinefunction(on):
        raise TypeError(
            "on is a plain function of the exception: an async one returns no answer, but a coroutine"
        )


def matches(on: On, error: BaseException) -> tuple[bool, float | None]:
    """
    Return whether `on` names the exception, and the seconds to wait if its function gave them.

    A bug (M7: KeyError, TypeError, AttributeError …) matches only if `on` names its class or a base class of it that is
    itself such a class: `on=Exception` does not match it, `on=KeyError` does.
    """
    from amends.foreign.bugs import is_bug_class

    bug = is_unregistered_bug(error)
    if isinstance(on, type | tuple):
        classes = on if isinstance(on, tuple) else (on,)
        named = any(
            isinstance(error, each) and (not bug or is_bug_class(each, in_handler=False)) for each in classes
        )
        return named, None
    if bug:
        return False, None
    answer = on(error)
    if isinstance(answer, bool) or not (isinstance(answer, int | float) or hasattr(answer, "total_seconds")):
        return bool(answer), None
    wait = in_seconds("on", answer)
    if not -_LONGEST < wait < _LONGEST:
        raise ValueError("on returns a finite number of seconds")
    return True, max(0.0, wait)


_LONGEST = 1e15
"""Seconds above which a wait is no number that can be meant."""


def is_unregistered_bug(error: BaseException) -> bool:
    """Return whether the exception is a bug of the called code, and the application registered no other meaning."""
    from amends.foreign.bugs import is_bug
    from amends.foreign.registry import registered_fault

    return is_bug(error, in_handler=False) and registered_fault(type(error)) is None


class Signal(Enum):
    """How the outcome of a call counts for its upstream."""

    WELL = "well"
    """The service works; the failure concerns this one request."""
    PLAIN = "plain"
    """The service failed and answered quickly."""
    REFUSED = "refused"
    """The service refused the call because too many were made, and named no time."""
    SILENT = "silent"
    """The service did not answer in time; it may be overloaded."""
    HINT = "hint"
    """The service asked for no calls until a time that it named."""
    NOTHING = "nothing"
    """The failure shows nothing about the service: the caller's own code failed."""


# With these codes a wait concerns all callers. A wait on a conflict or a missing thing concerns that thing only.
_FOR_ALL = frozenset({"RATE_LIMITED", "SERVICE_UNAVAILABLE"})


def signal_of(fault: Fault) -> Signal:
    """
    Return what a failure shows to the other callers of the service.

    >>> signal_of(Fault(code="RATE_LIMITED", retry_after=5)).name, signal_of(Fault(code="NOT_FOUND")).name
    ('HINT', 'WELL')
    """
    if fault.recovery is Recovery.CORRECTABLE or fault.recovery is Recovery.TERMINAL:
        return Signal.WELL
    everyday = row_for(fault.vocabulary, fault.code, fault.status).everyday
    if everyday in _FOR_ALL:
        if usable(fault.vocabulary, fault.retry_after):  # 0, or a date in the past, names no time
            return Signal.HINT
        return Signal.REFUSED if everyday == "RATE_LIMITED" else Signal.PLAIN
    if everyday == "TIMEOUT":
        return Signal.SILENT
    if everyday != "INTERNAL_ERROR":
        return Signal.WELL
    # An exception of this process without a known class is more often a bug of the caller than an outage.
    unclassified = fault.origin is None and fault.status is None and fault.recovery is Recovery.UNCERTAIN
    return Signal.NOTHING if unclassified else Signal.PLAIN
