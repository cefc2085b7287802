"""AdCP errors in less usual places: webhooks, embedded resources, ErrorInfo, wrapped Structs and batches."""

import base64
import json

import pytest

from amends import decide, extract
from amends.carriers.extraction import examine

ERROR = {"code": "RATE_LIMITED", "message": "slow", "recovery": "transient", "retry_after": 5}
OTHER = {"code": "ACCOUNT_SUSPENDED", "message": "ask", "recovery": "terminal"}
TEXT = json.dumps({"adcp_error": ERROR})
# The published webhook vector `mcp-failed-adcp-error` has these members.
WEBHOOK = {
    "idempotency_key": "whk_01",
    "operation_id": "op_1",
    "task_id": "task_1",
    "task_type": "create_media_buy",
    "status": "failed",
    "timestamp": "2026-04-01T00:00:00Z",
    "message": "The task failed",
    "result": {"adcp_error": ERROR},
}
INFO = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    "reason": "LIMIT",
    "metadata": {"adcp_error": json.dumps(ERROR)},
}
STRUCT = {"@type": "type.googleapis.com/google.protobuf.Struct", "value": {"adcp_error": ERROR}}


def refused(data, id=1):
    return {"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "no", "data": data}}


def task(data):
    parts = [{"data": data}]
    return {
        "id": "t",
        "status": {"state": "TASK_STATE_FAILED"},
        "artifacts": [{"artifactId": "error", "parts": parts}],
    }


@pytest.mark.parametrize("via", [None, "mcp", "a2a", "jsonrpc", "adcp", "task"])
@pytest.mark.parametrize(
    "result", [{"adcp_error": ERROR}, {"errors": [ERROR]}, {"adcp_error": ERROR, "errors": [ERROR]}]
)
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("id", ["task_id", "taskId"])
def test_a_webhook_of_a_failed_task(via, result, native, id):
    """However it is read, as an object and as JSON. With `taskId` it looks like a task of MCP."""
    webhook = {**WEBHOOK, "result": result, id: "task_1"}
    for document in (webhook, json.dumps(webhook), {"jsonrpc": "2.0", "id": 1, "result": webhook}):
        if via in {"adcp", "task", "jsonrpc"} and "jsonrpc" in document:
            continue
        fault = extract(document, via, native=native)
        assert (fault.code, fault.retry_after, fault.fatal, fault.errors) == ("RATE_LIMITED", 5, True, ())
        assert examine(document, via)[1].failed


@pytest.mark.parametrize(
    "status", ["completed", "working", "submitted", "input-required", "canceled", None, 5]
)
def test_other_webhooks_report_no_failure(status):
    document = {**WEBHOOK, "status": status, "result": {"media_buy_id": "mb_1"}}
    for via in (None, "mcp", "a2a", "jsonrpc", "adcp"):
        assert extract(document, via) is None


@pytest.mark.parametrize("result", [None, "failed", [], {}, {"errors": []}, {"errors": "x"}, {"rows": [1]}])
def test_a_job_of_another_service_is_no_webhook(result):
    document = {"id": "job-1", "status": "failed", "result": result}
    assert extract(document, native=False) is None
    assert extract(document, "mcp", native=False) is None


def test_an_embedded_resource():
    """After the text items, and only if the tool's result is a failure."""
    resource = {
        "type": "resource",
        "resource": {"uri": "adcp://error", "mimeType": "application/json", "text": TEXT},
    }
    result = {"isError": True, "content": [resource]}
    for via in (None, "mcp"):
        reading = examine(result, via)[1]
        assert (reading.fault.code, reading.path) == ("RATE_LIMITED", "text_fallback")
    first = {"type": "text", "text": json.dumps({"adcp_error": OTHER})}
    assert extract({"isError": True, "content": [resource, first]}).code == "ACCOUNT_SUSPENDED"
    assert extract({"content": [resource]}) is None
    blob = {"uri": "adcp://error", "blob": base64.b64encode(TEXT.encode()).decode()}
    assert extract({"isError": True, "content": [{"type": "resource", "resource": blob}]}).retry_after == 5
    for odd in (
        *(None, 3, {"text": 5}, {"text": "{"}, {"blob": "e30="}, {"blob": 5}, {"blob": "{"}, {"blob": "é"}),
        *({"blob": "gA=="}, {"blob": "e30" * 5}, {"blob": "A" * 1_000_000}),
    ):
        broken = {"isError": True, "content": [{"type": "resource", "resource": odd}, resource]}
        assert extract(broken).code == "RATE_LIMITED"


@pytest.mark.parametrize(
    "document",
    [
        refused([INFO]),
        refused([{"@type": "other"}, INFO]),
        refused([STRUCT]),
        refused(STRUCT),
        task(STRUCT),
        task({"data": {"adcp_error": ERROR}}),
        {"jsonrpc": "2.0", "id": 1, "result": {"task": task(STRUCT)}},
    ],
)
@pytest.mark.parametrize("via", [None, "a2a"])
def test_wrapped_errors(document, via):
    """The metadata of an ErrorInfo are strings; a Struct is the value of an Any, or of an older DataPart."""
    assert extract(document, via).retry_after == 5
    assert extract(json.dumps(document), via).retry_after == 5


@pytest.mark.parametrize("written", ["{", "[]", "5", '"x"', "{}" * 3, "x" * 9000, "{" * 5000, '{"code": 5}'])
def test_metadata_that_hold_no_error(written):
    info = {**INFO, "metadata": {"adcp_error": written}}
    assert extract(refused([info]), native=False) is None


SUCCESS = {"jsonrpc": "2.0", "id": 1, "result": {"content": [], "structuredContent": {"ok": 1}}}
LIMITED = refused({"adcp_error": ERROR}, 2)
SUSPENDED = {
    "jsonrpc": "2.0",
    "id": 3,
    "result": {"isError": True, "content": [], "structuredContent": {"adcp_error": OTHER}},
}
NATIVE = {"jsonrpc": "2.0", "id": 4, "error": {"code": -32601, "message": "unknown"}}


@pytest.mark.parametrize(
    ("batch", "code", "recovery", "executed", "parts", "action"),
    [
        ([LIMITED], "RATE_LIMITED", "transient", "no", 0, "retry"),
        ([LIMITED, LIMITED], "RATE_LIMITED", "transient", "no", 2, "retry"),
        ([LIMITED, SUSPENDED], "ACCOUNT_SUSPENDED", "terminal", "maybe", 2, "escalate"),
        ([SUCCESS, LIMITED], "RATE_LIMITED", "transient", "yes", 1, "none"),
        ([NATIVE, NATIVE], "NOT_FOUND", "correctable", "no", 2, "fix"),
    ],
)
@pytest.mark.parametrize("via", [None, "mcp"])
def test_a_batch(batch, code, recovery, executed, parts, action, via):
    """Its parts decide one by one; one with a success is never sent again whole."""
    for document in (batch, json.dumps(batch), json.dumps(batch).encode(), tuple(batch)):
        fault = extract(document, via)
        assert (fault.code, fault.recovery, fault.executed, len(fault.errors)) == (
            code,
            recovery,
            executed,
            parts,
        )
        assert decide(fault).action == action


@pytest.mark.parametrize(
    "batch", [[], [SUCCESS], [SUCCESS] * 3, [1, LIMITED], [[LIMITED]], [{"code": "RATE_LIMITED"}]]
)
def test_a_list_that_is_no_failed_batch(batch):
    assert extract(batch) is None
    assert extract(json.dumps(batch), "jsonrpc") is None


@pytest.mark.parametrize(
    "failed",
    [
        {"taskId": "t", "status": "failed"},
        {"taskId": "t", "status": "failed", "statusMessage": "The disk is full"},
        {"jsonrpc": "2.0", "id": 1, "result": {"task": {"taskId": "t", "status": "failed"}}},
        {"jsonrpc": "2.0", "id": 1, "result": {"taskId": "t", "status": "failed"}},
        {"id": "t", "status": {"state": "failed"}},
        {"isError": True, "content": [{"type": "text", "text": "The disk is full"}]},
    ],
)
def test_a_failure_without_an_error_object_is_read(failed):
    """By default; `native=False` is AdCP's own reading, which `amends decode` prints (M6)."""
    for document in (failed, json.dumps(failed)):
        fault = extract(document)
        assert (fault.code, fault.recovery, fault.executed) == ("INTERNAL_ERROR", "uncertain", "maybe")
        assert extract(document, native=False) is None
        assert examine(document)[1].failed
