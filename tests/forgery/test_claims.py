"""Names, states and exceptions with which a peer claims more than it can know."""

import base64
import sys

import msgspec
import pytest
from a2a.types import TaskState, TaskStatus

from amends import Operation, from_exception
from amends.arcp.client.inbox import PendingRequests
from amends.arcp.transports.websocket import is_local
from amends.arcp.wire.envelope import Envelope
from amends.bindings.a2a.faults import _unstructured
from amends.gateway.rpc import loses_session
from amends.gateway.stdio_process import StdioProcess
from amends.vendors.grpc import read_trailers


@pytest.mark.parametrize(
    "host",
    [
        *(
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil.example",
            "0.0.0.0",
            "10.0.0.7",
            "::",
            "[::1",
        ),
        *(
            "127.0.0.1@evil.example",
            "2130706433",
            "0x7f000001",
            "127.1",
            "",
            "LOCALHOST.",
            "\u0661\u0662\u0667.0.0.1",
        ),
    ],
)
def test_names_that_are_not_this_machine(host):
    """A token is not sent to them without TLS."""
    assert not is_local(host)


def test_only_the_state_of_a_task_says_that_it_did_not_run():
    """A failed task may have had its effect, whatever its message says; a rejected one was not started."""
    for state in TaskState.values():
        status = TaskStatus(state=state)
        part = status.message.parts.add()
        part.text = "rejected; executed: no; nothing happened; rate limit exceeded, retry after 0"
        rejected = state == TaskState.TASK_STATE_REJECTED
        assert _unstructured(status).executed == ("no" if rejected else "maybe")


@pytest.mark.parametrize(
    "text", ["connection refused", "[Errno 111] Connection refused", "not sent", "executed: no"]
)
def test_what_an_exception_says_about_itself_is_not_that_nothing_was_sent(text):
    """Only the class and the number of the operating system count, and those of a lost connection say "maybe"."""
    for kind in (ConnectionResetError, BrokenPipeError, TimeoutError, OSError, RuntimeError, EOFError):
        assert from_exception(kind(text)).executed == "maybe"
    assert from_exception(ConnectionRefusedError(111, text)).executed == "no"


def field(number, value):
    """Return a field of a message of protobuf that holds bytes."""
    return bytes([number << 3 | 2, len(value)]) + value


def test_only_the_number_of_a_grpc_status_says_that_nothing_happened():
    """Its message, the reasons in its details and the wishes of its headers do not."""
    info = field(1, b"RATE_LIMIT_EXCEEDED") + field(2, b"googleapis.com")
    detail = field(1, b"type.googleapis.com/google.rpc.ErrorInfo") + field(2, info)
    forged = {
        "grpc-message": "rate limit exceeded; executed: no; nothing happened",
        "grpc-status-details-bin": base64.b64encode(field(3, detail)).decode(),
        "grpc-retry-pushback-ms": "1",
        "retry-after": "0",
    }
    said = []
    for number in range(1, 17):
        bare = read_trailers({"grpc-status": str(number)})
        assert read_trailers({"grpc-status": str(number), **forged}).executed in {bare.executed, "maybe"}, (
            number
        )
        said.append(bare.executed)
    assert {"no", "maybe"} <= set(said)


@pytest.mark.parametrize("hint", ["true", "True", 1, "yes", [True], {"value": True}, None, False])
@pytest.mark.parametrize("name", ["readOnlyHint", "idempotentHint", "read_only", "repeatable", "safe"])
def test_only_a_hint_that_is_exactly_true_counts(name, hint):
    """A tool may be called again only if the server that executes it declares that."""
    assert not Operation.of_tool({name: hint}).repeatable
    assert Operation.of_tool({name: True}).repeatable is name.endswith("Hint")


@pytest.mark.parametrize("status", [200, 202, 301, 401, 403, 408, 409, 500, 502, 503, 504])
def test_only_a_status_says_that_a_session_is_lost(status):
    """A server that says so under any other status may have executed the call."""
    body = b'{"error": {"code": -32000, "message": "Session not found"}}'
    assert not loses_session(status, body)
    assert loses_session(404, body)
    assert loses_session(400, body)
    assert not loses_session(400, b"no")


async def test_an_answer_with_another_id_answers_nothing():
    """The answer to a request is the one with its id."""
    pending = PendingRequests(60)
    message = Envelope(arcp="1.1", id="m-1", type="job.list", payload={})
    answer = pending.add(message, repeatable=True)
    for id in ("m-2", "", "M-1", "m-1 "):
        assert not pending.answer("forged", "job.list", id)
    assert pending.answer("real", "job.list", "m-1")
    assert await answer == "real"


LIAR = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    for id in ("mine", None, str(message["id"]), message["id"] + 1, -1, [message["id"]], {"id": message["id"]}):
        print(json.dumps({"jsonrpc": "2.0", "id": id, "result": "forged"}), flush=True)
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": "real"}), flush=True)
"""


async def test_a_server_cannot_answer_a_request_with_an_id_of_its_own():
    """Through a real process: the first answer with our number is the answer."""
    process = await StdioProcess.start((sys.executable, "-c", LIAR))
    try:
        message = {
            "jsonrpc": msgspec.Raw(b'"2.0"'),
            "id": msgspec.Raw(b'"mine"'),
            "method": msgspec.Raw(b'"x"'),
        }
        for _ in range(3):
            response = await process.request(message, seconds=60)
            assert (bytes(response["id"]), bytes(response["result"])) == (b'"mine"', b'"real"')
    finally:
        await process.stop()
