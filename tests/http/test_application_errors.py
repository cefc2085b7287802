"""Exceptions raised inside an application, as faults."""

import json
import sqlite3
import ssl
import time

import httpx
import pydantic
import pytest

from amends import FaultError, Policy, Upstream, chain, extract, recover
from amends.core.vocabulary import vocabulary
from amends.errors import RateLimitedError, ServiceUnavailableError
from amends.http.application_errors import (
    CLIENT_DISCONNECTED,
    INTERNAL,
    details_from,
    exception_response,
    fault_for,
    fault_from_status,
)
from amends.http.request_info import RequestInfo
from amends.http.responses import Settings
from amends.testing import FakeClock


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


def given_up(call):
    """Return the error that recovery raises about a call."""
    with FakeClock(), pytest.raises(FaultError) as raised:
        recover(call, policy=Policy(attempts=1))
    return raised.value


def refused():
    raise httpx.ConnectError("refused")


def busy():
    raise ServiceUnavailableError("Busy", retry_after=1)


def held_back():
    """Return the error of a call that an Upstream did not send."""
    upstream = Upstream("shop")
    with FakeClock():
        for _ in range(2):
            with pytest.raises(FaultError) as raised:
                recover(
                    lambda: (_ for _ in ()).throw(RateLimitedError("Slow", retry_after=900)),
                    upstream=upstream,
                    policy=Policy(attempts=1, max_wait=0),
                )
    return raised.value


@pytest.mark.parametrize(
    ("raised", "method", "executed"),
    [
        (given_up(refused), "POST", "maybe"),
        (given_up(refused), "GET", "no"),
        (given_up(busy), "POST", "no"),
        (held_back(), "POST", "maybe"),
        (chain.relay(given_up(refused)), "POST", "no"),
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


def test_a_wait_in_the_headers_of_a_raised_error():
    """P3: body and header agree; a `retry_after` of the error comes first."""
    for error, wait in [
        (ServiceUnavailableError(headers={"Retry-After": "7"}), 7),
        (ServiceUnavailableError(retry_after=3, headers={"Retry-After": "7"}), 3),
        (ServiceUnavailableError(headers={"Retry-After": "nan"}), 5),
    ]:
        _, response = exception_response(error, RequestInfo(), Settings())
        headers = [value for name, value in response.headers if name.lower() == "retry-after"]
        assert (headers, json.loads(response.body)["retry_after_ms"]) == ([str(wait)], wait * 1000)


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


class Size(pydantic.BaseModel):
    size: int


def refused_model():
    with pytest.raises(pydantic.ValidationError) as caught:
        Size(size="x")
    return caught.value


BUG = ("INTERNAL_ERROR", 500, "uncertain", 1, "maybe")
UNAVAILABLE = ("SERVICE_UNAVAILABLE", 503, "transient", None, "maybe")


def test_bugs_and_known_failures_of_a_handler():
    """M7: a bug is 500 and at most one retry; a class that the tables know as transient is an upstream's failure."""
    for raised, expected in [
        *(
            (cls("s3cr3t"), BUG)
            for cls in (KeyError, TypeError, ZeroDivisionError, AssertionError, ValueError)
        ),
        (UnicodeDecodeError("utf-8", b"s3cr3t", 0, 1, "s3cr3t"), BUG),
        (RuntimeError("s3cr3t"), BUG),
        (FileNotFoundError("s3cr3t"), BUG),
        (refused_model(), BUG),
        (ConnectionRefusedError("s3cr3t"), UNAVAILABLE),
        (TimeoutError("s3cr3t"), UNAVAILABLE),
        (ssl.SSLError("s3cr3t"), UNAVAILABLE),
        (sqlite3.OperationalError("s3cr3t"), UNAVAILABLE),
        (ExceptionGroup("g", [ConnectionResetError("s3cr3t"), TimeoutError()]), UNAVAILABLE),
        (ExceptionGroup("g", [ConnectionResetError("s3cr3t"), KeyError()]), BUG),
    ]:
        _, response = exception_response(raised, RequestInfo(method="POST"), Settings())
        body = json.loads(response.body)
        found = (body["code"], response.status, body["recovery"], body.get("max_retries"), body["executed"])
        assert found == expected, raised
        assert b"s3cr3t" not in response.body
    assert fault_for(ConnectionRefusedError(), "GET").executed == "no"


def test_exceptions_of_client_libraries_are_an_upstreams_failure():
    """By the first part of the module's name, also if the tables do not know the class."""
    for module, client in (("httpx", True), ("grpc.aio", True), ("shop.grpc", False), ("grpcs", False)):
        unknown = type("UnknownError", (Exception,), {"__module__": module})
        assert (fault_for(unknown("s3cr3t"), "GET") is not INTERNAL) == client, module


def test_a_client_that_disconnected_is_told_by_the_name_of_the_class():
    """Starlette need not be installed."""

    class ClientDisconnect(Exception):
        """Like Starlette's."""

    assert fault_for(ClientDisconnect()) is CLIENT_DISCONNECTED


def test_a_detail_of_500_characters_is_kept():
    """A longer one is replaced by the message of the code."""
    assert fault_from_status(404, "x" * 500).message == "x" * 500
    assert fault_from_status(404, "x" * 501).message == vocabulary("http").rows["NOT_FOUND"].message


def test_a_cancellation_is_that_of_http():
    """M5: only of the everyday vocabulary; other codes and vocabularies stay."""
    for vocabulary_name, code, expected in (
        ("everyday", "CANCELLED", "http"),
        ("arcp", "CANCELLED", "arcp"),
        ("everyday", "CONFLICT", "everyday"),
    ):
        fault = fault_for(FaultError(code=code, vocabulary=vocabulary_name))
        assert (fault.code, fault.vocabulary) == (code, expected)
    assert fault_for(FaultError(code="CANCELLED")).recovery == "transient"


@pytest.mark.parametrize(
    ("raised", "logged"),
    [
        (ServiceUnavailableError("Busy"), False),
        (FaultError(code="CANCELLED"), False),
        (SeatTaken("x"), False),
        (type("ClientDisconnect", (Exception,), {})(), False),
        (failing_upstream(), True),
        (httpx.ConnectError("refused"), True),
        (KeyError("x"), True),
        (ExceptionGroup("g", [ServiceUnavailableError("Busy")]), False),
        (ExceptionGroup("g", [KeyError("x"), KeyError("y")]), True),
    ],
)
def test_which_failures_are_logged_with_a_traceback(raised, logged, caplog):
    """Those that the application did not raise on purpose."""
    caplog.set_level("INFO", "amends.http")
    exception_response(raised, RequestInfo(), Settings(errors={SeatTaken: "CONFLICT"}))
    assert bool(caplog.records[-1].exc_info) is logged


@pytest.mark.parametrize(
    ("status", "detail", "kept"),
    [
        (404, "No seat 7", True),
        (404, "Not Found", False),
        (404, " not found. ", False),
        (404, "Forbidden", True),
        (404, "", False),
        (404, None, False),
        (500, "No seat 7", False),
        (502, "No seat 7", True),
        (404, "x" * 500, True),
        (404, "x" * 501, False),
        (799, "No seat 7", True),
    ],
)
def test_the_detail_of_a_framework(status, detail, kept):
    """An author's text is kept, up to 500 characters; that of a 500, and a bare phrase, is replaced."""
    fault = fault_from_status(status, detail)
    assert (fault.message == detail) is kept
    assert (fault.status, fault.vocabulary) == (status, "http")


def test_a_request_that_its_client_ended():
    """It is a cancellation with the status 408."""
    assert (CLIENT_DISCONNECTED.code, CLIENT_DISCONNECTED.status, INTERNAL.code) == (
        "CANCELLED",
        408,
        "INTERNAL_ERROR",
    )


class Refusal(Exception):
    """What a framework answers with a status, as Starlette's `HTTPException`."""


def refused_because(words, cause, how="from"):
    try:
        try:
            raise cause
        except Exception as error:
            if how == "from":
                raise Refusal(words) from error
            if how == "none":
                raise Refusal(words) from None
            raise Refusal(words)  # noqa: B904 - the context alone has to do
    except Refusal as raised:
        return raised


@pytest.mark.parametrize(
    ("words", "cause", "kept"),
    [
        ("The stock list is being rebuilt", OSError("no route to 10.0.0.5"), True),
        ("no route to 10.0.0.5", OSError("no route to 10.0.0.5"), False),
        ("Failed: no route to 10.0.0.5!", OSError("no route to 10.0.0.5"), False),
        ("Ask the people of db.internal", OSError(111, "refused by db.internal:5432"), False),
        ("Look for svc_orders", OSError("password of svc_orders is wrong"), False),
        ("the password of the service", OSError("the password of the service is wrong"), False),
        ("OperationalError", type("OperationalError", (Exception,), {})(), False),
        ("No seat 7", KeyError(7), False),
        ("The seat is taken", KeyError("seat"), False),
        ("The seats are taken", KeyError("seat"), True),
        ("It went wrong", OSError("x" * 300_000), False),
        ("It went wrong", OSError(), True),
    ],
)
@pytest.mark.parametrize("how", ["from", "context", "none"])
def test_the_words_of_a_failed_server(words, cause, kept, how):
    """An author's words for a 5xx are sent, unless they repeat what the exception behind them says."""
    raised = refused_because(words, cause, how)
    assert (fault_from_status(500, words, raised).message == words) is kept
    assert (fault_from_status(502, words, raised).message == words) is kept
    assert fault_from_status(400, words, raised).message == words


def test_words_of_an_exception_further_behind():
    """Also of one behind another, of a part of a group, of a circle of exceptions, and behind too many."""
    inner = refused_because("one", OSError("no route to 10.0.0.5"))
    assert fault_from_status(500, "to 10.0.0.5", refused_because("x", inner)).message != "to 10.0.0.5"
    group = ExceptionGroup("g", [ValueError("a"), ExceptionGroup("h", [OSError("at 10.0.0.5")])])
    assert fault_from_status(500, "at 10.0.0.5", refused_because("x", group)).message != "at 10.0.0.5"
    inner.__cause__.__cause__ = inner
    assert fault_from_status(500, "The shop is closed", inner).message == "The shop is closed"
    for _ in range(100):
        inner = refused_because("x", inner)
    assert fault_from_status(500, "The shop is closed", inner).message != "The shop is closed"


def test_the_comparison_is_bounded():
    """The largest texts that are compared take a fraction of a second."""
    words = " ".join(f"w{number}" for number in range(700))[:4000]
    raised = refused_because(words, OSError(" ".join(f"v{number}" for number in range(15_000))))
    began = time.process_time()
    fault_from_status(500, "The shop is closed", raised)
    details_from(500, {"words": words}, raised)
    assert details_from(500, {"words": words * 9}, Refusal("x")) == {"words": words * 9}
    assert details_from(500, {"words": words * 9}, raised) is None
    assert time.process_time() - began < 3
