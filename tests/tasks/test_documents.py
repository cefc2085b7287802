"""Requests and responses of the agent error contract."""

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends import FaultError
from amends.tasks import Metadata, Request, Response, Status
from amends.tasks.documents import parse_time, seconds_of, stamp
from tests.strategies import rarely

FAILED = {
    "id": "task-uuid",
    "status": "failed",
    "error": {
        "code": "MCP_NOT_CONNECTED",
        "message": "The Notion MCP is not connected. Run setup to configure.",
        "details": {"mcp": "notion", "requiredBy": "content-agent", "capability": "draft_post"},
        "recoverable": True,
    },
    "metadata": {
        "startedAt": "2025-01-05T10:30:00Z",
        "completedAt": "2025-01-05T10:30:01Z",
        "duration_ms": 1000,
        "agent": "content-agent",
    },
}
REQUEST = {
    "id": "task-uuid",
    "type": "create_event",
    "payload": {"title": "Dinner"},
    "retryPolicy": {"maxAttempts": 5, "backoffType": "exponential", "initialDelay": 500},
}


def test_a_response_survives_reading_and_writing():
    """T3: no member is added or lost."""
    response = Response.read(json.dumps(FAILED))
    assert response.error.code == "MCP_NOT_CONNECTED"
    assert response.metadata.completed - response.metadata.started == 1
    assert response.document() == FAILED


def test_a_request_survives_reading_and_writing():
    """T8: from a mapping, JSON, or a Request."""
    assert Request.read(REQUEST).document() == REQUEST
    assert Request.read(json.dumps(REQUEST).encode()).document() == REQUEST
    assert Request.read(Request.read(REQUEST)).retry_policy["maxAttempts"] == 5


@pytest.mark.parametrize(
    ("document", "code", "field"),
    [
        ("{", "INVALID_INPUT", None),
        (b"\xff", "INVALID_INPUT", None),
        ([1], "INVALID_INPUT", None),
        ({"type": "x"}, "MISSING_REQUIRED_FIELD", "/id"),
        ({"id": "x"}, "MISSING_REQUIRED_FIELD", "/type"),
        ({"id": 3, "type": "x"}, "INVALID_FIELD_TYPE", "/id"),
        ({"id": "", "type": "x"}, "INVALID_FIELD_TYPE", "/id"),
        ({"id": None, "type": "x"}, "INVALID_FIELD_TYPE", "/id"),
        ({"id": "x", "type": "x", "retryPolicy": []}, "INVALID_FIELD_TYPE", "/retryPolicy"),
        ({"id": "x", "type": "x", "deadline": "tomorrow"}, "INVALID_FIELD_TYPE", "/deadline"),
        ({"id": "x", "type": "x", "idempotencyKey": 1}, "INVALID_FIELD_TYPE", "/idempotencyKey"),
    ],
)
def test_invalid_requests_name_the_field(document, code, field):
    """Input errors have the JSON Pointer of the field."""
    with pytest.raises(FaultError) as raised:
        Request.read(document)
    assert (raised.value.fault.code, raised.value.fault.field) == (code, field)


@pytest.mark.parametrize(
    "document", [None, 3, "{", b"\xff", [], {}, {"id": "x", "status": "odd"}, {"id": 1, "status": "failed"}]
)
def test_an_invalid_response_is_none(document):
    """Reading a response never raises."""
    assert Response.read(document) is None


def test_a_failed_response_without_an_error_gets_one():
    """INTERNAL_ERROR."""
    response = Response.read({"id": "x", "status": "failed", "metadata": "odd", "input": 3})
    assert response.error.code == "INTERNAL_ERROR"
    assert response.metadata == Metadata()


def test_other_statuses():
    """Results, questions and metadata are read and written."""
    done = Response(id="x", status=Status.COMPLETED, result=None)
    assert done.ok
    assert done.document() == {"id": "x", "status": "completed", "result": None}
    asking = Response(id="x", status=Status.INPUT_REQUIRED, input={"question": "?"})
    assert Response.read(asking.document()) == asking
    odd = Metadata.read({"startedAt": 3, "agent": 4, "degraded": True})
    assert odd == Metadata(degraded=True)
    assert odd.document() == {"degraded": True}


@rarely
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_reading_any_document(document):
    """A response, None, or an input error, and no other exception."""
    Response.read(document)
    Response.read({"id": "x", "status": "failed", "error": document, "metadata": document})
    try:
        Request.read(document)
    except FaultError as error:
        assert error.fault.vocabulary == "task"  # noqa: PT017


def test_times_and_durations():
    """RFC 3339, also without a zone; anything else is None."""
    assert parse_time("2025-01-05T10:30:00") == parse_time("2025-01-05T11:30:00+01:00") == 1736073000
    assert parse_time("x") is parse_time(3) is parse_time("9" * 50) is None
    assert stamp(1736073000.0004) == "2025-01-05T10:30:00Z"
    with pytest.raises(ValueError):
        seconds_of(-1)
    with pytest.raises(ValueError):
        seconds_of(float("nan"))


@pytest.mark.parametrize(
    "wait", [-1, float("nan"), float("inf"), 10**400, True, "5", None, [1], timedelta(days=-1)]
)
def test_what_is_no_duration(wait):
    """ValueError that says what a duration is."""
    with pytest.raises(ValueError, match="a duration must be a timedelta, or a number of seconds from 0 to"):
        seconds_of(wait)
