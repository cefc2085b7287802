"""The fault that a caller gets for an exception raised in a server's code."""

import logging
import sqlite3

import httpx
import pytest

from amends import Fault, FaultError, extract
from amends.core.fault import Origin
from amends.errors import NotFoundError, RateLimitedError, ValidationError
from amends.errors.adcp import BudgetTooLowError
from amends.serving.server_errors import (
    Failure,
    classify,
    classify_safely,
    fault_for,
    find_fault_error,
    modules_of,
    with_executed,
)


def test_an_authors_error_is_translated_to_adcp():
    """An everyday code is translated, an AdCP code kept; message and field stay."""
    fault = fault_for(NotFoundError("No such order", field="/id"))
    assert (fault.vocabulary, fault.code, fault.message, fault.field) == (
        "adcp",
        "REFERENCE_NOT_FOUND",
        "No such order",
        "/id",
    )
    error = BudgetTooLowError("Too little", suggestions=["Raise it"])
    assert fault_for(error) is error.fault


def test_a_foreign_exception_is_service_unavailable_or_rate_limited():
    """None of its text is in the fault."""
    fault = fault_for(RuntimeError("password for db.internal is hunter2"))
    assert (fault.code, fault.recovery) == ("SERVICE_UNAVAILABLE", "transient")
    assert "hunter2" not in repr(fault)

    class Refused(Exception):
        status_code = 429
        headers = {"retry-after": "7"}

    fault = fault_for(Refused("at shop.internal"))
    assert (fault.code, fault.retry_after) == ("RATE_LIMITED", 7)


def test_a_received_error_passes_if_it_is_conformant():
    """A18: it is unchanged; any other received error is translated."""
    received = extract(
        {"code": "BUDGET_TOO_LOW", "message": "Below 500", "recovery": "correctable", "issues": [1]}
    )
    assert fault_for(FaultError.from_fault(received)) == received
    problem = Fault(code="NOT_FOUND", message="GET http://shop.internal", origin=Origin("problem", "body"))
    fault = fault_for(FaultError.from_fault(problem))
    assert (fault.code, fault.origin) == ("SERVICE_UNAVAILABLE", None)
    assert "internal" not in repr(fault)


def test_a_group_with_one_failure_is_that_failure():
    """A TaskGroup wraps what its task raised."""
    inner = ValidationError("Which day?", field="/day")
    group = BaseExceptionGroup("all", [ExceptionGroup("tasks", [inner])])
    assert find_fault_error(group) is inner
    assert fault_for(group).field == "/day"
    assert find_fault_error(ExceptionGroup("tasks", [inner, RateLimitedError()])) is None
    assert fault_for(ExceptionGroup("tasks", [inner, OSError("x")])).code == "VALIDATION_ERROR"


def test_deeply_nested_groups_are_not_searched():
    """Fifty levels: the search stops, and the exception counts as foreign."""
    group: BaseException = ValidationError("deep")
    for _ in range(50):
        group = BaseExceptionGroup("g", [group])
    assert find_fault_error(group) is None
    assert fault_for(group).code


@pytest.mark.parametrize("exc", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_exceptions_that_are_not_errors_have_a_fault_too(exc):
    """Exceptions outside of `Exception` are SERVICE_UNAVAILABLE."""
    assert fault_for(exc).code == "SERVICE_UNAVAILABLE"


def test_an_error_raised_on_purpose_is_expected():
    """A FaultError is, also in a group; any other exception is not."""
    error = NotFoundError("No such order")
    assert classify(ExceptionGroup("tasks", [error])).expected
    assert classify(error) == Failure(fault_for(error), error, expected=True)
    assert not classify(ValueError("x")).expected


def test_a_classifier_that_raises_is_service_unavailable(caplog):
    """The exception is logged."""

    def broken(exc):
        raise RuntimeError("hunter2")

    exc = ValueError("x")
    failure = classify_safely(exc, log=logging.getLogger("amends.test"), classifier=broken)
    assert (failure.fault.code, failure.cause, failure.expected) == ("SERVICE_UNAVAILABLE", exc, False)
    assert "hunter2" not in repr(failure.fault)
    assert [record.name for record in caplog.records] == ["amends.test"]


def test_the_modules_an_exception_passed_through():
    """The module that raised it is the last; an exception that was not raised has none."""
    with pytest.raises(ValueError, match="invalid literal") as caught:
        int("x")
    assert modules_of(caught.value) == [__name__]
    assert modules_of(ValueError()) == []


@pytest.mark.parametrize(
    "exc",
    [
        FileNotFoundError(2, "receipt.txt"),
        sqlite3.IntegrityError(),
        ExceptionGroup("tasks", [PermissionError()]),
    ],
    ids=lambda exc: type(exc).__name__,
)
def test_a_failure_of_the_servers_own_code_may_have_come_after_an_effect(exc):
    """M3: only a service that was called can say that nothing happened; the tool may have paid before."""
    failure = classify(exc)
    assert failure.fault.recovery == "terminal"
    assert with_executed(failure, read_only=False).fault.executed == "maybe"
    assert with_executed(failure, read_only=True).fault.executed == "no"


def test_what_a_service_refused_had_no_effect():
    """M9, row 3: a 404 of a service that the tool called."""

    request = httpx.Request("GET", "http://shop.example/7")
    refused = httpx.HTTPStatusError("404", request=request, response=httpx.Response(404, request=request))
    assert with_executed(classify(refused), read_only=False).fault.executed == "no"


def test_an_exception_that_cannot_be_inspected_may_have_come_after_an_effect():
    class Hostile(OSError):
        @property
        def errno(self):
            raise RuntimeError

        @property
        def __traceback__(self):
            raise RuntimeError

    failure = Failure(Fault(code="NOT_FOUND", recovery="terminal", executed="no"), Hostile(), expected=False)
    assert with_executed(failure, read_only=False).fault.executed == "maybe"
