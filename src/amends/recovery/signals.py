"""What a failure shows about the health of the service."""

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
        if usable(fault.vocabulary, fault.retry_after) is not None:
            return Signal.HINT
        return Signal.REFUSED if everyday == "RATE_LIMITED" else Signal.PLAIN
    if everyday == "TIMEOUT":
        return Signal.SILENT
    if everyday != "INTERNAL_ERROR":
        return Signal.WELL
    # An exception of this process without a known class is more often a bug of the caller than an outage.
    unclassified = fault.origin is None and fault.status is None and fault.recovery is Recovery.UNCERTAIN
    return Signal.NOTHING if unclassified else Signal.PLAIN
