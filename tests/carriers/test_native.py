"""Failures of MCP and A2A that carry no AdCP error, as the official SDKs send them (`extract(…, native=True)`)."""

import json

import httpx
import mcp
import pytest
from a2a.types.a2a_pb2 import (
    Message,
    Part,
    Role,
    StreamResponse,
    Task,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st
from mcp.server.mcpserver import MCPServer
from tests.http.serving import serve
from tests.strategies import json_values, mutated, rarely

from amends import decide, extract, for_llm
from amends.carriers.extraction import examine
from amends.core.enums import Executed, Recovery

NO, MAYBE = Executed.NO, Executed.MAYBE


def facts(response, via=None):
    """Return code, recovery and effect; the strict reading has to be None, or that of a service with such bodies."""
    strict = extract(response, via, native=False)
    assert strict is None or (via is None and strict.origin.dialect == "google")
    fault = extract(response, via)
    return fault.code, fault.recovery, fault.executed


def server():
    made = MCPServer("shop")

    @made.tool()
    def sell(day: int) -> str:
        raise ValueError("no more seats")

    return made


async def test_failures_of_an_mcp_server():
    """A plain-text isError result, an unknown tool and wrong arguments, from the SDK's own server."""
    async with mcp.Client(server()) as client:
        failed = await client.call_tool("sell", {"day": 1})
        fault = extract(failed, native=True)
        assert facts(failed) == ("INTERNAL_ERROR", Recovery.UNCERTAIN, MAYBE)
        assert "no more seats" in fault.message or "sell" in fault.message
        assert (fault.origin.dialect, fault.origin.path) == ("mcp", "content")
        wrong = await client.call_tool("sell", {"day": "x"})
        assert facts(wrong)[0] == "INTERNAL_ERROR"
        with pytest.raises(mcp.MCPError) as unknown:
            await client.read_resource("shop://missing")
        assert extract(unknown.value, native=True).executed is NO


@pytest.mark.parametrize(
    ("number", "via", "code", "executed"),
    [
        (-32601, None, "NOT_FOUND", NO),
        (-32602, None, "VALIDATION_ERROR", NO),
        (-32603, None, "INTERNAL_ERROR", MAYBE),
        (-32029, None, "RATE_LIMITED", NO),
        (-32002, "mcp", "NOT_FOUND", NO),
        (-32001, "mcp", "TIMEOUT", MAYBE),
        (-32023, "mcp", "PERMISSION_DENIED", NO),
        (-32001, "a2a", "NOT_FOUND", NO),
        (-32004, "a2a", "VALIDATION_ERROR", NO),
        (-32004.0, "a2a", "VALIDATION_ERROR", NO),
        (-32001, None, "INTERNAL_ERROR", MAYBE),
        (-32002, None, "INTERNAL_ERROR", MAYBE),
        (-32000, None, "INTERNAL_ERROR", MAYBE),
        (-32004, None, "VALIDATION_ERROR", NO),
        (-32023, None, "PERMISSION_DENIED", NO),
        (429, "a2a", "RATE_LIMITED", NO),
        (5, None, "INTERNAL_ERROR", MAYBE),
        ("x", None, "INTERNAL_ERROR", MAYBE),
    ],
)
def test_numbers(number, via, code, executed):
    """
    M3: the number decides, in its protocol; the text becomes the message.

    Without `via`, a number that only one of the two protocols has is read as that protocol's.
    """
    response = {"jsonrpc": "2.0", "id": 1, "error": {"code": number, "message": "Rate limit: please retry"}}
    assert facts(response, via)[::2] == (code, executed)
    for written in (json.dumps(response), json.dumps(response).encode()):
        assert extract(written, via, native=True).message == "Rate limit: please retry"


def task(state, text):
    status = TaskStatus(
        state=state, message=Message(role=Role.ROLE_AGENT, message_id="m", parts=[Part(text=text)])
    )
    return Task(id="t", context_id="c", status=status)


def test_states_of_a_task():
    """A failed task may have done something, a rejected one did not start, and one that needs a sign-in waits for it."""
    expected = {
        "FAILED": ("INTERNAL_ERROR", Recovery.UNCERTAIN, MAYBE),
        "REJECTED": ("INTERNAL_ERROR", Recovery.TERMINAL, NO),
        "AUTH_REQUIRED": ("UNAUTHENTICATED", Recovery.CORRECTABLE, MAYBE),
    }
    for name, found in expected.items():
        made = task(getattr(TaskState, f"TASK_STATE_{name}"), "Oh no")
        event = StreamResponse(status_update=TaskStatusUpdateEvent(task_id="t", status=made.status))
        old = {"kind": "task", "id": "t", "status": {"state": name.lower().replace("_", "-")}}
        response = {"jsonrpc": "2.0", "id": 1, "result": {"task": MessageToDict(made)}}
        for document in (made, event, MessageToDict(made), response, old):
            assert facts(document, "a2a") == facts(document) == found
        assert extract(made, native=True).message == "Oh no"
    for name in ("COMPLETED", "WORKING", "INPUT_REQUIRED", "CANCELED"):
        assert extract(task(getattr(TaskState, f"TASK_STATE_{name}"), "fine"), native=True) is None


def test_google_rpc_details():
    """A2A 1.0: the reason of an ErrorInfo and the fields of a BadRequest, as the SDK's server writes them."""
    missing = build_rest_error_payload(TaskNotFoundError("no such task"))
    assert facts(missing, "a2a") == facts(missing) == ("NOT_FOUND", Recovery.CORRECTABLE, NO)
    assert extract(missing, native=True).details["reason"] == "TASK_NOT_FOUND"
    unsupported = build_rest_error_payload(UnsupportedOperationError())
    assert facts(unsupported)[0] == "VALIDATION_ERROR"
    fields = [
        {"field": "message.parts", "message": "must not be empty"},
        {"field": "id", "message": "missing"},
    ]
    invalid = extract(build_rest_error_payload(InvalidParamsError(data={"errors": fields})), native=True)
    assert (invalid.code, invalid.field, [part.field for part in invalid.errors]) == (
        "VALIDATION_ERROR",
        "message.parts",
        ["message.parts", "id"],
    )
    assert invalid.errors[0].message == "must not be empty"
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"}
    busy = {"jsonrpc": "2.0", "error": {"code": -32603, "message": "busy", "data": [info]}}
    assert extract(busy, "a2a", native=True).retry_after == 1.5
    assert decide(extract(busy, "a2a", native=True)).action == "verify"


async def test_a_session_that_the_server_does_not_know():
    """MCP: nothing ran, and a new session helps; the SDK's own server answers 404 with a JSON-RPC error."""
    with serve(server().streamable_http_app(), lifespan="on") as base:
        async with httpx.AsyncClient() as client:
            response = await client.post(
                f"{base}/mcp",
                json={"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
                headers={
                    "mcp-session-id": "gone",
                    "accept": "application/json, text/event-stream",
                    "mcp-protocol-version": "2025-06-18",
                },
            )
    assert response.status_code == 404
    fault = extract(response, native=True)
    assert (fault.code, fault.recovery, fault.executed) == ("SERVICE_UNAVAILABLE", Recovery.TRANSIENT, NO)
    assert extract(response, native=False).code == "NOT_FOUND"
    other = {"status": 404, "headers": {}, "body": '{"jsonrpc": "2.0", "error": {"code": -32001}}'}
    assert extract(other, native=True).code == "SERVICE_UNAVAILABLE"
    plain = {"status": 404, "headers": {}, "body": "<h1>Not found</h1>"}
    assert extract(plain, native=True).code == "NOT_FOUND"


@pytest.mark.parametrize("native", [True, False])
def test_an_adcp_error_comes_first(native):
    """A6: a structured error is read the same way in both modes, and a success stays one."""
    error = {"isError": True, "structuredContent": {"adcp_error": {"code": "CONFLICT"}}}
    assert extract(error, native=native).code == "CONFLICT"
    for success in (
        {"isError": False, "content": []},
        {"jsonrpc": "2.0", "result": {"tools": []}},
        {},
        b"\xff",
        None,
        "[",
    ):
        for via in (None, "mcp", "a2a", "jsonrpc"):
            assert extract(success, via, native=native) is None


def test_hostile_documents():
    """Nothing raises, and what is kept is bounded."""
    deep: list = []
    for _ in range(10_000):
        deep = [deep]
    huge = {"@type": "x/google.rpc.BadRequest", "fieldViolations": [{"field": "f" * 9000}] * 9000}
    for error in (
        {"code": 10**400, "message": "\ud800" * 5000, "data": [huge, deep, None]},
        {"code": float("nan"), "message": {}, "data": {"a": deep}, "details": "x"},
        {
            "code": -32602,
            "data": [{"@type": 5}, {"@type": "google.rpc.ErrorInfo", "reason": ["x"], "domain": "d" * 99}],
        },
        {"code": True},
        "x",
        [1],
    ):
        for via in (None, "mcp", "a2a"):
            reading = examine({"jsonrpc": "2.0", "error": error}, via, native=True)[1]
            fault = reading.fault
            if fault is not None:
                assert len(fault.message) <= 1024
                assert len(fault.errors) <= 100
                assert fault.field is None or len(fault.field) <= 1024


@pytest.mark.parametrize("via", ["mcp", "a2a", "jsonrpc", "http"])
@rarely
@given(st.data())
def test_any_document_is_read_without_an_exception(via, data):
    """Decoders are total on input: a document with any change gives a consistent reading, as values and as bytes."""
    document = data.draw(mutated(via))
    for asked in (via, None):
        _, reading = examine(document, asked, native=True)
        assert not reading.fatal or reading.failed
        assert reading.fault is None or (reading.fault.origin is not None and for_llm(reading.fault))
    extract(json.dumps(data.draw(json_values())), via, native=True)
