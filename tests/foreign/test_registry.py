"""Exception classes that an application registers for the process."""

import pytest

import amends
from amends import FaultError, from_exception, recover
from amends.foreign import registry
from amends.foreign.registry import register
from tests.http.seats import SeatTaken


@pytest.fixture(autouse=True)
def forget():
    """Classes registered in a test are forgotten after it."""
    before = dict(registry._REGISTERED)
    yield
    registry._REGISTERED.clear()
    registry._REGISTERED.update(before)


class RowTaken(SeatTaken):
    pass


class HallFull(FaultError):
    """The hall is full"""

    code = "REGISTRY_TEST_HALL_FULL"
    recovery = "transient"
    status = 503
    type = "urn:hall:full"
    title = "No seats left"


def test_a_class_and_its_subclasses_have_the_code():
    """The nearest registered class along the MRO decides; the exception's text is not shown."""
    register(SeatTaken, code="CONFLICT")
    fault = from_exception(RowTaken("s3cr3t"))
    assert (fault.code, fault.recovery, fault.executed) == ("CONFLICT", "correctable", "no")
    assert "s3cr3t" not in repr(fault)
    register(RowTaken, code="RATE_LIMITED")
    assert from_exception(RowTaken()).code == "RATE_LIMITED"
    assert from_exception(SeatTaken()).code == "CONFLICT"


def test_recovery_and_executed_can_be_given():
    """What is given replaces the facts of the code's row."""
    register(SeatTaken, code="SERVICE_UNAVAILABLE", recovery="terminal", executed="yes")
    fault = from_exception(SeatTaken())
    assert (fault.recovery, fault.executed, fault.actor) == ("terminal", "yes", "operator")


def test_a_code_of_your_own():
    """With the type and title of its class."""
    register(SeatTaken, code="REGISTRY_TEST_HALL_FULL")
    fault = from_exception(SeatTaken())
    assert (fault.vocabulary, fault.type, fault.title) == ("app", "urn:hall:full", "No seats left")


def test_a_class_that_the_tables_know_can_be_registered():
    """What the application says comes before our tables."""
    assert from_exception(KeyError("x")).code == "INTERNAL_ERROR"
    register(KeyError, code="NOT_FOUND")
    assert from_exception(KeyError("x")).code == "NOT_FOUND"


def test_recover_decides_by_it():
    """A registered transient failure without effect is repeated."""
    amends.register(SeatTaken, code="RATE_LIMITED")
    left = [SeatTaken(), SeatTaken()]

    def call():
        if left:
            raise left.pop()
        return "seated"

    policy = amends.Policy(backoff=amends.core.backoff.Backoff(first=0.001))
    assert recover(call, policy=policy) == "seated"


@pytest.mark.parametrize(
    ("kind", "options", "error"),
    [
        (SeatTaken(), {"code": "CONFLICT"}, TypeError),
        (int, {"code": "CONFLICT"}, TypeError),
        (SeatTaken, {"code": "NO_SUCH_CODE"}, ValueError),
        (SeatTaken, {"code": None}, ValueError),
        (SeatTaken, {"code": "CONFLICT", "recovery": "sometimes"}, ValueError),
        (SeatTaken, {"code": "CONFLICT", "executed": "perhaps"}, ValueError),
    ],
)
def test_wrong_registrations_are_refused(kind, options, error):
    """The mistake is shown where it was made."""
    with pytest.raises(error):
        register(kind, **options)
