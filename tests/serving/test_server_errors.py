"""What an exception in a server's own code says to its caller."""

import pytest

from amends import Fault, FaultError, extract
from amends.core.fault import Origin
from amends.errors import NotFoundError, RateLimitedError, ValidationError
from amends.errors.adcp import BudgetTooLowError
from amends.serving.server_errors import fault_for, ours


def test_what_an_author_raised_is_said_in_adcps_words():
    """The everyday word is translated, AdCP's own kept, with what a caller needs."""
    told = fault_for(NotFoundError("No such order", field="/id"))
    assert (told.vocabulary, told.code, told.message, told.field) == (
        "adcp",
        "REFERENCE_NOT_FOUND",
        "No such order",
        "/id",
    )
    error = BudgetTooLowError("Too little", suggestions=["Raise it"])
    assert fault_for(error) is error.fault


def test_a_foreign_exception_is_an_unavailable_service_or_a_rate_limit():
    """Two words, and none of its own."""
    told = fault_for(ValueError("password for db.internal is hunter2"))
    assert (told.code, told.recovery) == ("SERVICE_UNAVAILABLE", "transient")
    assert "hunter2" not in repr(told)

    class Refused(Exception):
        status_code = 429
        headers = {"retry-after": "7"}

    told = fault_for(Refused("at shop.internal"))
    assert (told.code, told.retry_after) == ("RATE_LIMITED", 7)


def test_what_another_agent_said_passes_if_it_is_conformant():
    """A18: unchanged, or in our own words."""
    said = extract(
        {"code": "BUDGET_TOO_LOW", "message": "Below 500", "recovery": "correctable", "issues": [1]}
    )
    assert fault_for(FaultError.from_fault(said)) == said
    problem = Fault(code="NOT_FOUND", message="GET http://shop.internal", origin=Origin("problem", "body"))
    told = fault_for(FaultError.from_fault(problem))
    assert (told.code, told.origin) == ("SERVICE_UNAVAILABLE", None)
    assert "internal" not in repr(told)


def test_a_group_with_one_failure_is_that_failure():
    """A TaskGroup wraps what its task raised."""
    inner = ValidationError("Which day?", field="/day")
    group = BaseExceptionGroup("all", [ExceptionGroup("tasks", [inner])])
    assert ours(group) is inner
    assert fault_for(group).field == "/day"
    assert ours(ExceptionGroup("tasks", [inner, RateLimitedError()])) is None
    assert fault_for(ExceptionGroup("tasks", [inner, OSError("x")])).code == "SERVICE_UNAVAILABLE"


def test_groups_without_end_are_given_up_on():
    """A group in a group in a group: nobody meant that."""
    group: BaseException = ValidationError("deep")
    for _ in range(50):
        group = BaseExceptionGroup("g", [group])
    assert ours(group) is None
    assert fault_for(group).code


@pytest.mark.parametrize("exc", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_anything_that_can_be_raised_has_words(exc):
    """Also what no server should have to answer."""
    assert fault_for(exc).code == "SERVICE_UNAVAILABLE"
