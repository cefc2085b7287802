"""Tests of what a failure shows about the service."""

import pytest

from amends import Fault
from amends.core.enums import Recovery
from amends.recovery.signals import Signal, signal_of


@pytest.mark.parametrize(
    ("fault", "signal"),
    [
        (Fault(code="RATE_LIMITED", retry_after=3), Signal.HINT),
        (Fault(code="RATE_LIMITED"), Signal.REFUSED),
        (Fault(code="SERVICE_UNAVAILABLE"), Signal.PLAIN),
        (Fault(code="TIMEOUT"), Signal.SILENT),
        (Fault(code="NOT_FOUND"), Signal.WELL),
        (Fault(code="PERMISSION_DENIED"), Signal.WELL),
        (Fault(code="CONFLICT", vocabulary="adcp", retry_after=3), Signal.WELL),
        (Fault(code="INTERNAL_ERROR"), Signal.NOTHING),
        (Fault(code="INTERNAL_ERROR", status=500), Signal.PLAIN),
        (Fault(code="INTERNAL_ERROR", recovery=Recovery.TRANSIENT), Signal.PLAIN),
    ],
)
def test_the_signal_of_each_failure(fault, signal):
    """A wait on one thing is no HINT for all calls, and an unclassified exception is NOTHING."""
    assert signal_of(fault) is signal
