"""Faults as Temporal's application errors and back, with the real package."""

from datetime import timedelta

import pytest
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError

from amends.bindings.temporal import from_application_error, to_application_error
from amends.core.fault import Fault
from amends.errors import RateLimitedError


@pytest.mark.parametrize(
    ("fault", "repeatable", "non_retryable", "delay"),
    [
        (Fault(code="RATE_LIMITED", retry_after=5), False, False, 5),
        (Fault(code="SERVICE_UNAVAILABLE"), False, True, None),
        (Fault(code="SERVICE_UNAVAILABLE", retry_after=2), True, False, 2),
        (Fault(code="VALIDATION_ERROR", field="/a"), True, True, None),
        (Fault(code="TIMEOUT", vocabulary="task"), True, False, None),
        (Fault(code="KNOWLEDGE_NOT_FOUND", vocabulary="task", retry_after=9), True, True, None),
    ],
)
async def test_there_and_back(fault, repeatable, non_retryable, delay):
    """Also through Temporal's own serialisation."""
    error = to_application_error(fault, repeatable=repeatable)
    assert (error.type, error.non_retryable) == (fault.code, non_retryable)
    assert error.next_retry_delay == (None if delay is None else timedelta(seconds=delay))
    assert from_application_error(error) == fault
    from temporalio.api.failure.v1 import Failure

    stored = Failure()
    await DataConverter.default.encode_failure(error, stored)
    assert from_application_error(await DataConverter.default.decode_failure(stored)) == fault


def test_an_exception_is_taken_too():
    assert to_application_error(RateLimitedError(retry_after=3)).next_retry_delay == timedelta(seconds=3)


@pytest.mark.parametrize("details", [(), ("text",), ({"code": 3},), ({"code": "X", "recovery": "perhaps"},)])
@pytest.mark.parametrize("final", [True, False])
def test_errors_of_other_code(details, final):
    fault = from_application_error(ApplicationError("secret text", *details, non_retryable=final))
    assert (fault.code, fault.recovery) == ("INTERNAL_ERROR", "terminal" if final else "uncertain")
    assert "secret" not in str(fault)


def test_details_that_cannot_be_stored():
    """They become plain values, and credentials do not reach Temporal's server."""
    secret = "Bearer abcdefghijklmnopqrstuvwxyz0123456789"
    fault = Fault(code="TIMEOUT", details={"thing": object(), "header": f"Authorization: {secret}"})
    error = to_application_error(fault)
    assert secret not in repr(error.details)
    assert from_application_error(error).code == "TIMEOUT"
