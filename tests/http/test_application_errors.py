"""Exceptions raised inside an application, as faults."""

import httpx
import pytest

from amends import FaultError, chain, extract
from amends.core.vocabulary import vocabulary
from amends.errors import ServiceUnavailableError
from amends.http.application_errors import exception_response, fault_for
from amends.http.responses import RequestInfo, Settings


def test_an_upstreams_adcp_code_is_kept():
    """A code that HTTP's vocabulary does not have keeps its own vocabulary."""
    error = {"adcp_error": {"code": "BUDGET_TOO_LOW", "message": "At least 500", "recovery": "correctable"}}
    received = extract({"isError": True, "structuredContent": error}, "mcp")
    fault = fault_for(FaultError.from_fault(received))
    assert (fault.code, fault.vocabulary) == ("BUDGET_TOO_LOW", "adcp")
    assert "BUDGET_TOO_LOW" not in vocabulary("http").rows


def failing_upstream():
    answer = {
        "status": 503,
        "headers": {},
        "body": {"detail": "d", "is_retriable": True, "retry_after_ms": 10},
    }
    return FaultError.from_fault(extract(answer, via="http"))


@pytest.mark.parametrize(
    ("raised", "method", "executed"),
    [
        (httpx.ConnectError("refused"), "POST", "maybe"),
        (httpx.ConnectError("refused"), "GET", "no"),
        (failing_upstream(), "POST", "maybe"),
        (failing_upstream(), "GET", "no"),
        (ServiceUnavailableError(retry_after=1), "POST", "no"),
        (ServiceUnavailableError(executed="maybe"), "GET", "maybe"),
        (chain.relay(failing_upstream()), "POST", "no"),
    ],
)
def test_failures_from_inside_a_handler(raised, method, executed):
    """M3: what an upstream said does not cover what the handler did before, except in a request that only reads."""
    assert fault_for(raised, method).executed == executed


class SeatTaken(Exception):
    pass


class RowTaken(SeatTaken):
    pass


def test_registered_classes_are_expected(caplog):
    """A class of the application has its code, subclasses included, and is logged without a traceback."""
    settings = Settings(errors={SeatTaken: "CONFLICT"})
    fault, response = exception_response(RowTaken("s3cr3t"), RequestInfo(), settings)
    assert (fault.code, response.status) == ("CONFLICT", 409)
    assert b"s3cr3t" not in response.body
    assert not caplog.records


@pytest.mark.parametrize(
    ("errors", "error"),
    [
        ({SeatTaken: "NO_SUCH_CODE"}, ValueError),
        ({"SeatTaken": "CONFLICT"}, TypeError),
        ({SeatTaken: 5}, ValueError),
    ],
)
def test_wrong_codes_are_refused_at_once(errors, error):
    """The message says what is possible."""
    with pytest.raises(error):
        Settings(errors=errors)
