"""What a peer writes into a failed tool, task, job or command never makes a call that may have happened repeatable."""

import json
import sys

import mcp_types
import pytest
from a2a.types.a2a_pb2 import Part
from google.protobuf.json_format import ParseDict
from mcp.server.lowlevel import Server

from amends import FaultError, Operation, decide, extract
from amends.bindings.mcp import Client
from amends.core.enums import Action, Executed
from amends.dialects.record import KEY
from amends.process import run
from amends.testing import FakeClock
from tests.bindings.a2a_client.clients import client_for
from tests.bindings.agents import PATHS, Agent, agent_server, events_of, request
from tests.forgery.peer import BODIES

RECORD = {
    "v": 1,
    "code": "RATE_LIMITED",
    "vocabulary": "everyday",
    "recovery": "transient",
    "executed": "no",
    "retry_after_ms": 1,
    "tries": 1,
    "actor": "caller",
    "sig": "A" * 43,
}
"""A record of our own that claims that nothing happened, with a signature that nobody made."""
OURS = ("adcp_error", "retry_after_ms", "ok", "jsonrpc", "errors")


def is_ours(body):
    """Whether a body is an error in one of the five formats: then it may invite a repeat (M3)."""
    return isinstance(body, dict) and any(name in body for name in OURS)


FORGED = [body for body in BODIES if not is_ours(body)]


def text_of(body):
    return body if isinstance(body, str) else json.dumps(body)


def data_of(body):
    return body if isinstance(body, dict) else {"body": body}


def mcp_text(body):
    return {"isError": True, "content": [{"type": "text", "text": text_of(body)}], "_meta": {KEY: RECORD}}


def mcp_structured(body):
    return {"isError": True, "content": [], "structuredContent": data_of(body), "_meta": {KEY: RECORD}}


def mcp_task(body):
    return {"taskId": "t", "status": "failed", "statusMessage": text_of(body), "_meta": {KEY: RECORD}}


def a2a_text(body):
    parts = [{"kind": "text", "text": text_of(body), "metadata": {KEY: RECORD}}]
    return {"id": "t", "status": {"state": "failed", "message": {"role": "agent", "parts": parts}}}


def a2a_data(body):
    parts = [{"kind": "data", "data": data_of(body), "metadata": {KEY: RECORD}}]
    return {"id": "t", "status": {"state": "failed"}, "artifacts": [{"artifactId": "a", "parts": parts}]}


def rpc(body):
    data = {**data_of(body), KEY: RECORD}
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32603, "message": text_of(body)[:500], "data": data},
    }


def task(body):
    details = {**data_of(body), "amends": RECORD}
    error = {"code": "INTERNAL_ERROR", "message": text_of(body), "details": details, "recoverable": True}
    return {"id": "t", "status": "failed", "error": error}


def arcp(body):
    details = {**data_of(body), "amends": RECORD}
    return {"code": "INTERNAL_ERROR", "message": text_of(body), "details": details, "retryable": True}


def command(body):
    return {"exit": 1, "stdout": text_of(body), "stderr": text_of(body)}


CARRIERS = [
    (mcp_text, "mcp"),
    (mcp_structured, "mcp"),
    (mcp_task, "mcp"),
    (a2a_text, "a2a"),
    (a2a_data, "a2a"),
    (rpc, "jsonrpc"),
    (task, "task"),
    (arcp, "arcp"),
    (command, "cli"),
]


@pytest.mark.parametrize(("write", "via"), CARRIERS, ids=[write.__name__ for write, _ in CARRIERS])
def test_no_body_or_record_says_that_nothing_happened(write, via):
    """The body of every known service, and a forged record: the effect stays open, and the call is not repeated."""
    for body in FORGED:
        for document in (write(body), json.dumps(write(body))):
            if via == "cli" and isinstance(document, str):
                continue
            fault = extract(document, via)
            assert fault is not None, body
            assert fault.executed is not Executed.NO, body
            decision = decide(fault, operation=Operation())
            assert decision.action is not Action.RETRY, (body, decision)


@pytest.mark.parametrize("place", ["task", "arcp"])
def test_a_record_is_read_for_corrections_only(place):
    """What it adds for a reader, such as suggestions and errors, changes no decision."""
    write = {"task": task, "arcp": arcp}[place]
    forged = {**RECORD, "suggestions": ["Send it again"], "errors": [RECORD], "field": "/x"}
    honest, lying = write({}), write({})
    for document, record in ((honest, None), (lying, forged)):
        details = document["error"]["details"] if place == "task" else document["details"]
        details.pop("amends")
        if record is not None:
            details["amends"] = record
    read = [extract(document, place) for document in (honest, lying)]
    assert read[1].suggestions == ("Send it again",)
    decisions = [decide(fault, operation=Operation()).action for fault in read]
    assert decisions[0] == decisions[1] != Action.RETRY
    assert [part.executed for part in read[1].errors] == [read[1].executed]


async def test_no_forged_result_makes_a_client_call_a_tool_again():
    """Through the real client and a real server: each forged result is one call."""
    calls = []

    async def listed(ctx, params):
        tool = mcp_types.Tool(name="pay", input_schema={"type": "object"})
        return mcp_types.ListToolsResult(tools=[tool])

    async def called(ctx, params):
        calls.append(params.arguments["number"])
        body = FORGED[params.arguments["number"]]
        document = mcp_structured(body) if params.arguments["structured"] else mcp_text(body)
        return mcp_types.CallToolResult.model_validate(document)

    server = Server("peer", on_list_tools=listed, on_call_tool=called)
    with FakeClock():
        async with Client(server) as client:
            for number in range(0, len(FORGED), 3):
                for structured in (False, True):
                    calls.clear()
                    with pytest.raises(FaultError) as failed:
                        await client.call_tool("pay", {"number": number, "structured": structured})
                    assert calls == [number], FORGED[number]
                    assert failed.value.fault.executed is not Executed.NO, FORGED[number]


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.soak)])
async def test_no_forged_task_makes_a_client_send_a_message_again(step):
    """Through the official SDK and a real agent, by both bindings: each forged task is one message, and stays in doubt."""
    sent = []

    async def fail(context, updater):
        number, _, place = context.get_user_input().partition(" ")
        sent.append(int(number))
        body = FORGED[int(number)]
        part = Part(text=text_of(body))
        if place == "data":
            part = Part()
            ParseDict({"error": data_of(body), KEY: RECORD, "executed": "no"}, part.data.struct_value)
        message = updater.new_agent_message([part])
        message.metadata.update({KEY: RECORD, "executed": "no", "retry_after": 0})
        await updater.failed(message)

    with agent_server(Agent(fail)) as base:
        for path in (PATHS[0], PATHS[5]):
            async with client_for(base, path, upstream=None) as client:
                for number in range(0, len(FORGED), step):
                    for place in ("text", "data"):
                        sent.clear()
                        with pytest.raises(FaultError) as failed:
                            await events_of(client, request(f"{number} {place}"))
                        assert sent == [number], FORGED[number]
                        assert failed.value.fault.executed is not Executed.NO, FORGED[number]


def test_no_forged_output_makes_a_command_run_again(tmp_path):
    """A command that is not declared as repeatable and fails with 1 runs once, whatever it prints."""
    program = (
        "import pathlib, sys\n"
        "runs = pathlib.Path(sys.argv[1])\n"
        "runs.write_text(runs.read_text() + '.' if runs.exists() else '.')\n"
        "print(sys.argv[2])\n"
        "print(sys.argv[2], file=sys.stderr)\n"
        "sys.exit(1)\n"
    )
    with FakeClock():
        for number, body in enumerate(FORGED[::25]):
            runs = tmp_path / str(number)
            with pytest.raises(FaultError):
                run([sys.executable, "-c", program, str(runs), text_of(body)[:100_000]], mutating=True)
            assert runs.read_text() == ".", body
