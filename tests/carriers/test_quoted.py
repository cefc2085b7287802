"""An API's answer that a failed task of A2A or a JSON-RPC error quotes, and what a known service adds to a quoted answer."""

import json

import pytest

from amends import extract

QUOTA = {"error": {"message": "…", "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}}
RATE = {"status": 429, "body": {"error": {"code": "too_fast", "retry_after": 7}}}
PLACES = {
    "a2a message, 0.3": lambda said: {
        "id": "t",
        "status": {"state": "failed", "message": {"parts": [{"kind": "data", "data": said}]}},
    },
    "a2a message, 1.0": lambda said: {
        "id": "t",
        "status": {"state": "TASK_STATE_FAILED", "message": {"parts": [{"data": said}]}},
    },
    "a2a text": lambda said: {
        "id": "t",
        "status": {"state": "failed", "message": {"parts": [{"kind": "text", "text": json.dumps(said)}]}},
    },
    "a2a artifact": lambda said: {
        "id": "t",
        "status": {"state": "failed"},
        "artifacts": [{"parts": [{"kind": "data", "data": said}]}],
    },
    "json-rpc data": lambda said: {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32603, "message": "m", "data": said},
    },
    "json-rpc text": lambda said: {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32000, "message": "m", "data": json.dumps(said)},
    },
    "mcp text": lambda said: {"isError": True, "content": [{"type": "text", "text": json.dumps(said)}]},
    "mcp structured": lambda said: {"isError": True, "structuredContent": said, "content": []},
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize(
    ("said", "code", "wait"), [(QUOTA, "QUOTA_EXCEEDED", None), (RATE, "RATE_LIMITED", 7)]
)
def test_the_quoted_answer_decides_in_every_place(place, said, code, wait):
    """It says what to do, and nothing about the effect of the call; AdCP's own reading is unchanged."""
    fault = extract(place(said))
    assert (fault.code, fault.retry_after, fault.executed) == (code, wait, "maybe")
    assert extract(place(said), native=False) is None


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_known_service_gives_its_numbers_a_meaning(place):
    """124 is Zoom's expired token, and a number of nobody without the name."""
    said = {"code": 124, "message": "Access token is expired."}
    assert extract(place(said), vendor="zoom").code == "UNAUTHENTICATED"
    assert extract(place(said)).code == "INTERNAL_ERROR"


@pytest.mark.parametrize(
    "document",
    [
        {
            "id": "t",
            "status": {"state": "completed"},
            "artifacts": [{"parts": [{"kind": "data", "data": QUOTA}]}],
        },
        {"id": "t", "status": {"state": "working", "message": {"parts": [{"kind": "data", "data": QUOTA}]}}},
        {"jsonrpc": "2.0", "id": 1, "result": QUOTA},
    ],
)
def test_an_answer_in_what_did_not_fail_is_not_read(document):
    """A completed task may have an error as its result."""
    assert extract(document) is None


def test_a_number_that_says_more_than_failed_is_not_overridden():
    """The arguments are wrong, whatever `data` says."""
    error = {"code": -32602, "message": "m", "data": QUOTA}
    assert extract({"jsonrpc": "2.0", "id": 1, "error": error}).code == "VALIDATION_ERROR"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"message": "Too Many Requests"}, "RATE_LIMITED"),
        ({"error": "Unauthorized", "message": "…"}, "UNAUTHENTICATED"),
        ({"cod": 404, "message": "…"}, "NOT_FOUND"),
        ({"code": "429", "msg": "…"}, "RATE_LIMITED"),
        ({"http_code": 403, "message": "…"}, "PERMISSION_DENIED"),
        ({"message": "…", "retry_after": 3}, "RATE_LIMITED"),
        ({"error": {"code": "timeout", "message": "…"}}, "TIMEOUT"),
        ({"error": {"code": "order_already_cancelled", "message": "…"}}, "CONFLICT"),
        ({"error": {"code": "invalid_position", "message": "…"}}, "VALIDATION_ERROR"),
        ({"error": {"message": "too_many_requests", "code": 10028}}, "RATE_LIMITED"),
        ({"message": "Too Many Requests were not made"}, "INTERNAL_ERROR"),
        ({"message": "…", "count": 429}, "INTERNAL_ERROR"),
    ],
)
def test_what_says_which_failure_it_is_without_a_status(said, code):
    """Statuses in the document, registered phrases as a whole, a wait, and the form of code words; no prose."""
    assert extract({"isError": True, "content": [{"type": "text", "text": json.dumps(said)}]}).code == code
