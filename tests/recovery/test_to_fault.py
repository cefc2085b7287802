"""The faults of exceptions and responses."""

import doctest

import pytest

from amends import Fault
from amends.errors import RateLimitedError
from amends.recovery import to_fault
from amends.recovery.history import Attempt
from amends.recovery.to_fault import fault_in_response, fault_of, waited_below


def test_its_examples():
    """The examples in the docstrings hold."""
    assert doctest.testmod(to_fault).failed == 0


def test_exceptions():
    """A typed error has its fault; other exceptions are recognised."""
    error = RateLimitedError(retry_after=3)
    assert fault_of(error) is error.fault
    assert fault_of(ConnectionRefusedError("a")).code == "SERVICE_UNAVAILABLE"


def test_waits_of_an_inner_recovery():
    """The waits of all attempts are added; other exceptions have none."""
    error = RateLimitedError()
    assert waited_below(error) == 0.0
    error.history = tuple(Attempt(number=n, started=0.0, duration=0.0, wait=float(n)) for n in (1, 2))
    assert waited_below(error) == 3.0
    assert waited_below(KeyError("a")) == waited_below(None) == 0.0


@pytest.mark.parametrize(
    ("response", "code"),
    [
        ({"status": 429, "headers": {}}, "RATE_LIMITED"),
        ({"status": 204, "headers": {}}, None),
        ({"jsonrpc": "2.0", "id": 1, "result": {"content": [], "isError": True}}, "INTERNAL_ERROR"),
        ("anything", None),
    ],
)
def test_responses(response, code):
    """A response that reports a failure has a fault, also if it has no structured error."""
    found = fault_in_response(response)
    assert (found.code if isinstance(found, Fault) else None) == code
