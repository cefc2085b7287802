"""Tasks of MCP are read by their outcome, and map to the states of the agent error contract."""

import pytest
from mcp_types import GetTaskResult

from amends import extract
from amends.bindings.mcp import task_response
from amends.carriers.extraction import examine
from amends.carriers.mcp_task import STATES, is_task, outcome_of
from amends.tasks.documents import Status

ERROR = {"code": "RATE_LIMITED", "message": "Slow down", "recovery": "transient", "retry_after": 5}
FAILED_RESULT = {"isError": True, "structuredContent": {"adcp_error": ERROR}, "content": []}


def task(status, **more):
    return {"taskId": "7", "status": status, "createdAt": "", "lastUpdatedAt": "", **more}


def test_every_state_has_one_of_the_contract():
    """A state that is no failure has no error; the guard and the reader do not take input_required for one."""
    assert set(STATES.values()) <= set(Status)
    for status, wanted in STATES.items():
        if status != "failed":
            assert task_response(task(status)) == {"id": "7", "status": wanted}
            assert extract(task(status), native=True) is None


@pytest.mark.parametrize(
    "wrap", [lambda found: found, lambda found: {"jsonrpc": "2.0", "id": 1, "result": found}]
)
def test_the_outcome_of_a_task_is_read(wrap):
    """The tool's failed result, the AdCP error of a failed task, and a failed task without one."""
    adcp = {"code": -32603, "message": "No", "data": {"adcp_error": ERROR}}
    for found in (task("completed", result=FAILED_RESULT), task("failed", error=adcp)):
        fault = extract(wrap(found))
        assert (fault.code, fault.retry_after) == ("RATE_LIMITED", 5)
    plain = wrap(task("failed", error={"code": -32602, "message": "Bad"}, statusMessage="Bad"))
    assert extract(plain, native=False) is None
    assert extract(plain, native=True).code == "VALIDATION_ERROR"
    assert examine(wrap(task("failed")))[1].failed
    assert extract(wrap(task("completed", result={"content": [], "isError": False}))) is None


def test_a_failed_task_has_an_error_of_the_contract():
    """Also a completed one whose tool failed."""
    response = task_response(task("completed", result=FAILED_RESULT))
    assert (response["status"], response["error"]["code"]) == ("failed", "RATE_LIMITED")
    response = task_response(task("failed", error={"code": -32603, "message": "No"}))
    assert (response["status"], response["error"]["code"]) == ("failed", "INTERNAL_ERROR")
    assert task_response(task("failed"))["error"]["code"] == "INTERNAL_ERROR"
    sdk = GetTaskResult(task_id="7", status="working", created_at="", last_updated_at="", ttl=None)
    assert task_response(sdk) == {"id": "7", "status": "in_progress"}


def test_other_documents_are_no_tasks():
    """They are read as before; a wrong argument gets an error that says what to pass."""
    for value in (
        {"taskId": 7, "status": {"state": "failed"}},
        {"status": "failed"},
        {"taskId": "7", "status": []},
    ):
        assert not is_task(value)
        assert outcome_of(value) is value
    with pytest.raises(TypeError, match="tasks/get"):
        task_response({"id": "7"})
    with pytest.raises(TypeError, match="tasks/get"):
        task_response("7")


def test_the_shape_of_a_request_that_made_a_task():
    """The answer has the task inside: its failure is read without saying that it came over MCP."""
    created = {"task": {"taskId": "t", "status": "failed", "statusMessage": "No space left"}}
    assert extract(created).code == "INTERNAL_ERROR"
    assert extract({"jsonrpc": "2.0", "id": 1, "result": created}).code == "INTERNAL_ERROR"
    assert extract({"task": {"taskId": "t", "status": "working"}}) is None
