"""S3's documents, read and written as they stand there."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends import FaultError
from amends.tasks import Metadata, Request, Response, Status
from amends.tasks.documents import moment, seconds_of, stamp
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
ASKED = {
    "id": "task-uuid",
    "type": "create_event",
    "payload": {"title": "Dinner"},
    "retryPolicy": {"maxAttempts": 5, "backoffType": "exponential", "initialDelay": 500},
}


def test_s3s_response_comes_back_as_it_stands():
    """T3: nothing is added, nothing is lost."""
    response = Response.read(json.dumps(FAILED))
    assert response.error.code == "MCP_NOT_CONNECTED"
    assert response.metadata.completed - response.metadata.started == 1
    assert response.document() == FAILED


def test_s3s_request_comes_back_as_it_stands():
    """T8."""
    assert Request.read(ASKED).document() == ASKED
    assert Request.read(json.dumps(ASKED).encode()).document() == ASKED
    assert Request.read(Request.read(ASKED)).retry_policy["maxAttempts"] == 5


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
def test_a_request_that_is_none_says_where(document, code, field):
    """Input errors name the field by its pointer."""
    with pytest.raises(FaultError) as raised:
        Request.read(document)
    assert (raised.value.fault.code, raised.value.fault.field) == (code, field)


@pytest.mark.parametrize(
    "document", [None, 3, "{", b"\xff", [], {}, {"id": "x", "status": "odd"}, {"id": 1, "status": "failed"}]
)
def test_a_response_that_is_none_is_none(document):
    """What comes from elsewhere never raises."""
    assert Response.read(document) is None


def test_a_failed_response_without_an_error_still_has_one():
    """Nobody gets a failure without a fault."""
    response = Response.read({"id": "x", "status": "failed", "metadata": "odd", "input": 3})
    assert response.error.code == "INTERNAL_ERROR"
    assert response.metadata == Metadata()


def test_other_statuses():
    """Results and questions travel, too."""
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
def test_reading_is_total(document):
    """Whatever it is: a document, None, or an input error."""
    Response.read(document)
    Response.read({"id": "x", "status": "failed", "error": document, "metadata": document})
    try:
        Request.read(document)
    except FaultError as error:
        assert error.fault.vocabulary == "task"  # noqa: PT017


def test_moments():
    """RFC 3339, also without a zone; nonsense is None."""
    assert moment("2025-01-05T10:30:00") == moment("2025-01-05T11:30:00+01:00") == 1736073000
    assert moment("x") is moment(3) is moment("9" * 50) is None
    assert stamp(1736073000.0004) == "2025-01-05T10:30:00Z"
    with pytest.raises(ValueError):
        seconds_of(-1)
    with pytest.raises(ValueError):
        seconds_of(float("nan"))
