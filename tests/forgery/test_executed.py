"""What a service that nobody knows writes never makes a call that may have had its effect into one that had none."""

import httpx
import pytest

from amends import extract, from_exception, vectors
from amends.vendors import registry

MAY_HAVE_RUN = (408, 499, 500, 502, 504, 507, 520, 599)
"""Statuses under which a request may have had its effect. 503 too, but there our five formats may invite a repeat."""


def bodies():
    """Yield the headers and bodies of all failures that amends knows, and what a shop that is no such service would send."""
    for vector in vectors.load_vendors():
        answer = vector.response
        if isinstance(answer, dict) and "status" in answer:
            yield vector.id, answer.get("headers") or {}, answer.get("body")
        else:
            yield vector.id, {}, answer
    for vector in vectors.load():
        if isinstance(vector.response, dict):
            answer = vector.response
            yield vector.id, answer.get("headers") or {}, answer.get("body", answer)


BODIES = tuple(bodies())


def test_no_body_lowers_a_status():
    """The body and headers of every service under a status of its own: still "maybe"."""
    wrong = [
        (name, status)
        for name, headers, body in BODIES
        for status in MAY_HAVE_RUN
        if extract({"status": status, "headers": headers, "body": body}, "http").executed == "no"
    ]
    assert wrong == []


def test_under_503_only_an_invitation_of_our_own_formats_counts():
    """A vendor's body is none, and a body that names another status was written for another answer."""
    lowered = {
        name
        for name, headers, body in BODIES
        if extract({"status": 503, "headers": headers, "body": body}, "http").executed == "no"
    }
    assert lowered
    assert not {name for name in lowered if name.startswith("vendors/")}
    for status, executed in ((503, "no"), (429, "maybe"), (None, "no")):
        body = {"is_retriable": True, "retry_after_ms": 100, "code": "SERVICE_UNAVAILABLE"}
        if status is not None:
            body["status"] = status
        assert extract({"status": 503, "headers": {}, "body": body}).executed == executed


def test_no_answer_without_a_status_says_that_nothing_happened():
    """A service's error that stands alone, in a stream or inside a success, without the service's name."""
    wrong = {}
    for vector in vectors.load_vendors():
        fault = extract(vector.response, in_success=True) if vector.in_success else None
        if fault is not None and fault.executed == "no" and fault.origin.dialect not in {"grpc", "jsonrpc"}:
            wrong[vector.id] = fault
    assert wrong == {}


@pytest.mark.parametrize("stated", ["no", None])
@pytest.mark.parametrize("status", MAY_HAVE_RUN)
def test_a_statement_under_a_status_that_denies_it(status, stated):
    """`executed: no` and an invitation under 500 count only from a service that the user calls a part of the own system."""
    body = {"status": status, "code": "RATE_LIMITED", "recovery": "transient", "retry_after_ms": 100}
    body |= {"is_retriable": True} | ({} if stated is None else {"executed": stated})
    answer = {"status": status, "headers": {}, "body": body}
    assert extract(answer).executed == "maybe"
    if stated is not None:
        assert extract(answer, own=True).executed == "no"


def test_a_named_service_is_believed():
    """The user's word for the service is a proof; the name of a format is none."""
    body = {"error": {"code": "lock_timeout", "type": "invalid_request_error", "message": "x"}}
    answer = {"status": 500, "headers": {}, "body": body}
    assert [extract(answer, vendor=name).executed for name in ("stripe", "graphql", None)] == [
        "no",
        "maybe",
        "maybe",
    ]


def test_a_verdict_against_a_repeat_does_not_say_that_nothing_happened():
    """A header that asks for no further try keeps "maybe"."""
    answer = {
        "status": 504,
        "headers": {"x-fal-retryable": "false"},
        "body": {"detail": [{"type": "generation_timeout"}]},
    }
    assert (extract(answer).executed, extract(answer).recovery) == ("maybe", "terminal")


def sdk_error(package, response, body):
    """Return an exception with the attributes that the SDKs of model services give theirs."""
    error = type("InternalServerError", (Exception,), {"__module__": package})("x")
    error.response, error.request, error.body, error.status_code = response, response.request, body, 500
    return error


@pytest.mark.parametrize(
    ("url", "executed"),
    [("https://api.anthropic.com/v1/messages", "no"), ("https://shop.example/v1/messages", "maybe")],
)
def test_an_sdk_that_calls_another_host(url, executed):
    """The class of an SDK names its service, unless the exception shows that another host was called."""
    body = {"type": "error", "error": {"type": "rate_limit_error", "message": "x"}}
    error = sdk_error("anthropic", httpx.Response(500, json=body, request=httpx.Request("POST", url)), body)
    assert (from_exception(error).code, from_exception(error).executed) == ("RATE_LIMITED", executed)
    assert from_exception(error, vendor="anthropic").executed == "no"


@pytest.mark.parametrize(
    ("url", "executed"),
    [
        ("https://api.openai.com/v1/chat/completions", "no"),
        ("https://shop.example/v1/chat/completions", "maybe"),
        ("https://llm.corp/v1/chat/completions", "no"),
    ],
)
def test_an_sdk_that_many_services_share(url, executed, monkeypatch):
    """The host that was called names the service of the event that ended a stream; the user names hosts of their own."""
    monkeypatch.setattr(registry._BOOK, "origins", {"https://llm.corp": "openai"})
    body = {"message": "x", "type": "tokens", "code": "rate_limit_exceeded"}
    error = type("APIError", (Exception,), {"__module__": "openai"})("x")
    error.request, error.body = httpx.Request("POST", url), body
    assert (from_exception(error).code, from_exception(error).executed) == ("RATE_LIMITED", executed)
