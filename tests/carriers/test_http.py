"""HTTP responses: any status from 400 is a fault, and so is a 207 with problems."""

import json

import pytest
from tests.each import each

from amends.carriers.extraction import extract
from amends.carriers.http import read
from amends.core.enums import Actor, Executed, Recovery
from amends.core.reading import NOT_FAILED
from amends.core.vocabularies.http import VOCABULARY

PROBLEM = {
    "type": "https://example.com/errors/x",
    "title": "t",
    "status": 429,
    "detail": "d",
    "is_retriable": True,
}
ADCP = {"code": "BUDGET_TOO_LOW", "recovery": "correctable"}


def response(status, body=None, **headers):
    """Return a response; underscores in header names become dashes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return {"status": status, "headers": named, "body": body}


@each("status", [400, 404, 418, 429, 500, 503, 599, 600, 999, 429.0])
@each("body", [None, "", "<html>", b"\xff\xfe", [], [PROBLEM], 5, {}, {"message": "no"}, "[1"])
def test_a_bare_status_is_a_fault(status, body):
    """Design 9, M6: without a structured body the fault follows from the status, and `error` is None."""
    reading = read(response(status, body))
    row = VOCABULARY.status_row(int(status))
    assert (reading.failed, reading.fatal, reading.path, reading.error) == (True, True, "status", None)
    fault = reading.fault
    assert (fault.code, fault.recovery, fault.executed, fault.status) == (
        row.code,
        row.recovery,
        row.executed,
        status,
    )
    assert fault.origin.layer == "transport"


@pytest.mark.parametrize(
    "status",
    [200, 204, 301, 399, 0, -1, 1000, 10**400, "429", True, None, 429.5, float("nan"), float("inf"), []],
)
def test_other_statuses_are_no_failure(status):
    """Design 9: a status below 400, or a value that is no status, is not a failure."""
    assert read(response(status, PROBLEM)) == NOT_FAILED


@pytest.mark.parametrize("value", [None, 5, [], "x"])
def test_values_that_are_no_response(value):
    """A value that is not an object is not a failure."""
    assert read(value) == NOT_FAILED


@pytest.mark.parametrize(
    "kind",
    [
        dict,
        json.dumps,
        lambda data: json.dumps(data).encode(),
        lambda data: bytearray(json.dumps(data), "utf8"),
        lambda data: "\ufeff" + json.dumps(data),
    ],
)
def test_a_body_may_be_an_object_text_or_bytes(kind):
    """P1: a problem is recognised without the content type."""
    body = kind(PROBLEM)
    reading = read(response(429, body))
    assert (reading.path, reading.error, reading.fault.type) == ("body", PROBLEM, PROBLEM["type"])


def test_a_body_nested_too_deep():
    """M6: a body with 10,000 levels is ignored, and the status is used."""
    assert read(response(429, "[" * 10_000)).path == "status"
    assert read(response(429, '{"errors":[' * 10_000 + "]}" * 10_000)).path == "status"


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        ({**PROBLEM, "retry_after_ms": 1500}, {"Retry_After": "9"}, 1.5),
        ({**PROBLEM, "retry_after_seconds": 2}, {"Retry_After": "9"}, 2),
        (PROBLEM, {"Retry_After": "9"}, 9.0),
        (PROBLEM, {"Retry_After_Ms": "700", "Retry_After": "9"}, 0.7),
        (None, {"Retry_After": "9"}, 9.0),
        (None, {"Retry_After": "soon"}, None),
        ({**PROBLEM, "retry_after_ms": 0}, {"Retry_After": "9"}, 9.0),
    ],
)
def test_precedence_of_waits(body, headers, expected):
    """Design 8, P3: a wait in the body is used before one in the headers."""
    assert read(response(429, body, **headers)).fault.retry_after == expected


def test_the_path_of_a_wait_in_a_header():
    """M6: if only a header has information, the path is `header`."""
    reading = read(response(503, None, Retry_After="9"))
    assert (reading.path, reading.fault.origin.path, reading.error) == ("header", "header", None)


def test_a_date_needs_a_clock():
    """The clock is an argument, and is used only if the response has no Date header."""
    late = response(503, None, Retry_After="Wed, 21 Oct 2015 12:00:30 GMT")
    assert read(late).fault.retry_after is None
    assert read(late, now=lambda: 1_445_428_800.0).fault.retry_after == 30.0
    dated = response(
        503, None, Retry_After="Wed, 21 Oct 2015 12:00:30 GMT", Date="Wed, 21 Oct 2015 12:00:00 GMT"
    )
    assert read(dated).fault.retry_after == 30.0


@pytest.mark.parametrize(
    "header",
    [{"X_Should_Retry": "false"}, {"Stripe_Should_Retry": "false"}, {"Grpc_Retry_Pushback_Ms": "-1"}],
)
@pytest.mark.parametrize("body", [None, PROBLEM, {"adcp_error": ADCP}])
def test_headers_that_forbid_a_retry(header, body):
    """Design 8: the header sets max_retries to 0, whatever the status or the body."""
    assert read(response(503, body, **header)).fault.max_retries == 0


@pytest.mark.parametrize("status", [409, 500, 403])
@pytest.mark.parametrize("body", [None, {"title": "no"}, "<html>"])
def test_a_header_that_allows_a_retry(status, body):
    """Design 8: the header makes a failure transient if the body does not decide; limits and effect do not change."""
    reading = read(response(status, body, X_Should_Retry="true"))
    fault = reading.fault
    assert (fault.recovery, fault.max_retries) == (Recovery.TRANSIENT, None)
    assert fault.executed is VOCABULARY.status_row(status).executed
    assert fault.actor is Actor.CALLER
    assert reading.path == ("body" if isinstance(body, dict) else "header")


@pytest.mark.parametrize(
    ("body", "recovery"),
    [
        ({**PROBLEM, "is_retriable": False}, "correctable"),
        ({"title": "no", "recovery": "terminal"}, "terminal"),
        ({"adcp_error": ADCP}, "correctable"),
        ({"adcp_error": {"code": "X_ACME_ODD"}}, "terminal"),
    ],
)
def test_the_body_takes_precedence_over_the_header(body, recovery):
    """M1, A20: the recovery in the body is used before the header; for AdCP only code and recovery count."""
    assert read(response(409, body, X_Should_Retry="true")).fault.recovery == recovery


def test_the_responses_status_takes_precedence():
    """M1: the status of the response is used, not that in the body."""
    assert read(response(503, PROBLEM)).fault.status == 503


@pytest.mark.parametrize(
    "body",
    [
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32029, "message": "no", "data": {"adcp_error": ADCP}}},
        {"adcp_error": ADCP},
        {"adcp_error": ADCP, "error": "Too many requests"},
        {"adcp_error": ADCP, "error": None},
        {"adcp_error": ADCP, "error": {"code": 5}},
    ],
)
def test_a_gateway_in_front_of_an_mcp_server(body):
    """A1, A3: an AdCP error is read from a JSON-RPC body or from `adcp_error`; status and header wait are added."""
    reading = read(response(429, body, Retry_After="9"))
    assert (reading.path, reading.error, reading.fault.code) == ("body", ADCP, "BUDGET_TOO_LOW")
    assert (reading.fault.status, reading.fault.retry_after, reading.fault.vocabulary) == (429, 9.0, "adcp")
    assert reading.fault.origin.layer == "transport"


def test_an_adcp_errors_own_wait_comes_first():
    """A9: the wait of the AdCP error is used before that of the header."""
    body = {"adcp_error": {"code": "RATE_LIMITED", "retry_after": 5}}
    assert read(response(429, body, Retry_After="9")).fault.retry_after == 5


@pytest.mark.parametrize("invalid", [{}, [], "x", {"code": 5}])
def test_an_invalid_adcp_error_is_ignored(invalid):
    """A7: an invalid adcp_error is ignored, and the status is used."""
    assert read(response(429, {"adcp_error": invalid})).path == "status"


BATCH = {
    "type": "https://example.com/errors/batch-failure",
    "title": "Batch operation partially failed",
    "status": 207,
    "detail": "1 succeeded, 2 failed",
    "results": [{"index": 0, "value": "a"}],
    "errors": [
        {"status": 422, "detail": "Item 1", "instance": "batch-item-1", "is_retriable": True},
        {"detail": "Item 2", "instance": "batch-item-2", "is_retriable": False},
    ],
}


def test_a_batch_that_failed_in_part():
    """P10, M1, M3: a partial failure is not fatal, had an effect, and each nested problem has its own recovery."""
    reading = read(response(207, BATCH))
    assert (reading.failed, reading.fatal, reading.path, reading.error) == (False, False, "body", BATCH)
    fault = reading.fault
    assert (fault.code, fault.status, fault.executed) == ("PARTIAL_FAILURE", 207, Executed.YES)
    assert [child.recovery for child in fault.errors] == [Recovery.UNCERTAIN, Recovery.TERMINAL]
    assert [child.instance for child in fault.errors] == ["batch-item-1", "batch-item-2"]
    assert fault.errors[1].status is None
    assert fault.extensions == {"results": BATCH["results"]}


@pytest.mark.parametrize(
    "body",
    [None, {}, [], {"errors": []}, {"errors": {}}, {"errors": ["x", 5]}, "<multistatus/>", {"title": "t"}],
)
def test_a_207_without_problems_is_a_success(body):
    """Design 9: a 207 without problems, such as WebDAV's, is not a failure."""
    assert read(response(207, body)) == NOT_FAILED


def test_a_batch_that_failed_completely():
    """P10: a batch with status 422 is a fatal failure."""
    reading = read(response(422, {**BATCH, "status": 422}))
    assert (reading.failed, reading.fatal, reading.fault.executed) == (True, True, Executed.NO)


def test_invalid_headers_are_ignored():
    """Headers of the wrong type are ignored."""
    for headers in (None, [], "x", {"Retry-After": {}}, {None: None}, {"retry-after": 10**5000}):
        assert read({"status": 503, "headers": headers}).fault.retry_after is None
    assert read({"status": 503}).path == "status"


@pytest.mark.parametrize("body", ["", "Gone", {}, {"message": "Oops"}, {"title": "Oops", "status": 500}])
def test_the_request_id_in_headers_is_kept(body):
    fault = extract({"status": 500, "headers": {"X-Request-Id": "r-1"}, "body": body})
    assert fault.trace_id == "r-1"


def test_other_members_of_a_problem_are_kept():
    """The code word, request id, field and page of a service that adds its own members to RFC 9457."""
    body = {
        "type": "https://docs.example.com/errors/validation",
        "title": "Invalid",
        "status": 422,
        "detail": "…",
        "errorCode": "33_01",
        "requestId": "r-2",
        "docs_url": "https://docs.example.com/33_01",
        "invalidFields": [{"name": "iban", "message": "Invalid IBAN."}],
    }
    fault = extract({"status": 422, "headers": {}, "body": body})
    assert (fault.details, fault.trace_id, fault.field) == ({"code": "33_01"}, "r-2", "iban")
    assert fault.doc_uri == "https://docs.example.com/33_01"
