"""What problem documents and envelopes say about `executed`, and what an invitation to repeat means (M2, M3, M8)."""

import pytest

from amends import Fault, decode, encode, extract
from amends.errors import ServiceUnavailableError
from amends.serving.effect_unknown import EffectUnknownError

INVITING = {"title": "t", "detail": "d", "status": 503, "is_retriable": True, "retry_after_ms": 5000}


@pytest.mark.parametrize(
    ("changes", "executed"),
    [
        ({}, "no"),
        ({"executed": "maybe"}, "maybe"),
        ({"executed": "yes"}, "yes"),
        ({"executed": "perhaps"}, "no"),
        ({"executed": True}, "no"),
        ({"is_retriable": None}, "maybe"),
        ({"retry_after_ms": 0}, "maybe"),
        ({"retry_after_ms": None}, "maybe"),
        ({"recovery": "uncertain"}, "maybe"),
        *(({"status": status}, "maybe") for status in (408, 500, 502, 504)),
        *(({"code": code}, "maybe") for code in ("TIMEOUT", "INTERNAL_ERROR", "CANCELLED", "EFFECT_UNKNOWN")),
        ({"code": "HEARTBEAT_LOST"}, "maybe"),
        ({"intent": {"operation": "pay"}}, "maybe"),
        ({"code": "COUNTING_STOCK"}, "no"),
    ],
)
def test_an_invitation_in_a_problem(changes, executed):
    """M3: a transient problem that names a wait itself had no effect; the member `executed` beats every rule."""
    body = {name: value for name, value in {**INVITING, **changes}.items() if value is not None}
    assert decode(body, "problem").executed == executed
    response = {"status": body["status"], "headers": {}, "body": body}
    assert extract(response, via="http").executed == executed


def test_a_wait_in_a_header_is_no_invitation():
    """M3: a plain 503, or a Retry-After beside a body that names no wait, may have had its effect."""
    headers = {"Retry-After": "5"}
    body = {"title": "t", "detail": "d", "status": 503, "is_retriable": True}
    for each in (None, body):
        found = extract({"status": 503, "headers": headers, "body": each}, via="http")
        assert (found.retry_after, found.executed) == (5.0, "maybe")


@pytest.mark.parametrize(
    ("error", "executed"),
    [
        ({"code": "SERVICE_UNAVAILABLE", "retryable": True, "retry_after_ms": 10}, "no"),
        (
            {"code": "SERVICE_UNAVAILABLE", "retryable": True, "retry_after_ms": 10, "executed": "maybe"},
            "maybe",
        ),
        ({"code": "SERVICE_UNAVAILABLE", "retryable": True}, "maybe"),
        ({"code": "SERVICE_UNAVAILABLE", "retryable": "maybe", "retry_after_ms": 10}, "maybe"),
        ({"code": "SERVICE_UNAVAILABLE", "retryable": True, "retry_after_ms": 0}, "maybe"),
        ({"code": "TIMEOUT", "retryable": True, "retry_after_ms": 10}, "maybe"),
        ({"code": "BUSY_NOW", "retryable": True, "retry_after_ms": 10, "message": "m", "field": "x"}, "no"),
        ({"code": "INTERNAL_ERROR", "retryable": "maybe", "executed": "no"}, "no"),
    ],
)
def test_an_invitation_in_an_envelope(error, executed):
    """M3: the same for a command line."""
    assert decode({"ok": False, "error": error, "meta": {}}, "envelope").executed == executed
    assert decode({"ok": False, "error": error, "meta": {"attempt": 2}}, "envelope").executed == executed


@pytest.mark.parametrize("name", ["problem", "envelope"])
@pytest.mark.parametrize("executed", ["no", "maybe", "yes"])
def test_executed_is_always_written(name, executed):
    """M3, M8: a reader never has to guess, with or without a wait."""
    for wait in (None, 5):
        fault = Fault(code="SERVICE_UNAVAILABLE", retry_after=wait, executed=executed)
        assert decode(encode(fault, name), name).executed == executed


def test_an_uncertain_problem_allows_one_retry():
    """M2: "might succeed" is written as true with `max_retries` 1; a number given by the author wins."""
    assert encode(Fault(code="INTERNAL_ERROR"), "problem")["max_retries"] == 1
    assert encode(Fault(code="INTERNAL_ERROR", max_retries=0), "problem")["max_retries"] == 0
    assert "max_retries" not in encode(Fault(code="SERVICE_UNAVAILABLE"), "problem")


def test_an_unknown_effect_is_not_retriable():
    """M2: EFFECT_UNKNOWN is false in both formats, and our reader still knows that it has to be verified."""
    fault = EffectUnknownError().fault
    problem, envelope = encode(fault, "problem"), encode(fault, "envelope")
    assert (problem["is_retriable"], envelope["error"]["retryable"]) == (False, False)
    assert decode(problem, "problem").recovery == decode(envelope, "envelope").recovery == "uncertain"


def test_a_wait_that_cannot_be_written_is_left_out():
    """A wait near the largest float does not break the document."""
    fault = Fault(code="SERVICE_UNAVAILABLE", retry_after=1.7e308)
    assert "retry_after_ms" not in encode(fault, "problem")
    assert "retry_after_ms" in encode(ServiceUnavailableError(retry_after=1.7e308).fault, "problem")
