"""What a failure says about the service it came from."""

from __future__ import annotations

from enum import Enum

from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.hints import usable
from amends.core.vocabulary import row_for

__all__ = ["Signal", "signal_of"]


class Signal(Enum):
    """How the outcome of a call counts for its upstream."""

    WELL = "well"
    """It answered; what it said is between it and this one caller."""
    PLAIN = "plain"
    """It failed, and said so quickly."""
    SILENT = "silent"
    """No answer in time: it may be drowning in work."""
    HINT = "hint"
    """It asked for silence until a time it named."""
    NOTHING = "nothing"
    """It says nothing about the service: the caller's own code failed."""


# A wait on a conflict or a missing thing is about that thing; these are about everybody who calls.
_FOR_ALL = frozenset({"RATE_LIMITED", "SERVICE_UNAVAILABLE"})


def signal_of(fault: Fault) -> Signal:
    """
    What everybody else who calls this service should make of a failure.

    >>> signal_of(Fault(code="RATE_LIMITED", retry_after=5)).name, signal_of(Fault(code="NOT_FOUND")).name
    ('HINT', 'WELL')
    """
    if fault.recovery is Recovery.CORRECTABLE or fault.recovery is Recovery.TERMINAL:
        return Signal.WELL
    everyday = row_for(fault.vocabulary, fault.code, fault.status).everyday
    if everyday in _FOR_ALL:
        return Signal.PLAIN if usable(fault.vocabulary, fault.retry_after) is None else Signal.HINT
    if everyday == "TIMEOUT":
        return Signal.SILENT
    if everyday != "INTERNAL_ERROR":
        return Signal.WELL
    # An exception nobody could classify, raised in this process, is more often a bug here than an outage there.
    unclassified = fault.origin is None and fault.status is None and fault.recovery is Recovery.UNCERTAIN
    return Signal.NOTHING if unclassified else Signal.PLAIN
