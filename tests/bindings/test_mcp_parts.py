"""Parts of the MCP bindings on their own: cases that a test over a real connection would not meet reliably."""

import asyncio
import importlib.util
import sys
from contextlib import suppress
from types import SimpleNamespace

import anyio
import httpx2
import mcp
import msgspec
import pydantic
import pytest
from mcp.server.mcpserver.exceptions import ToolError

from amends import Fault, FaultError
from amends.bindings import fastmcp as fast_binding
from amends.bindings import mcp as binding
from amends.bindings.mcp import HttpRecorder
from amends.bindings.mcp.client_errors import error_of
from amends.bindings.mcp.connection_task import ConnectionTask
from amends.bindings.mcp.handler_errors import classify
from amends.bindings.mcp.http_recorder import recorded_failure
from amends.bindings.mcp.responses import tool_result
from amends.core.enums import Executed
from amends.errors import RateLimitedError
from amends.serving.deadlines import Deadlines, Limit


@pytest.mark.parametrize(("module", "needs"), [(binding, "mcp"), (fast_binding, "fastmcp")])
def test_a_missing_library_is_named(module, needs, monkeypatch):
    """The ImportError has the line to install it."""
    monkeypatch.setitem(sys.modules, needs, None)
    spec = importlib.util.spec_from_file_location("without", module.__file__)
    with pytest.raises(ImportError, match=rf"amends\[{needs}\]"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


# ------------------------------------------------------------------------------------------------------------ server


def test_arguments_that_are_invalid_as_a_whole_have_no_field():
    """A validator of the whole model names no field; nor does FastMCP's error without pydantic's as its cause."""
    from fastmcp.exceptions import ValidationError

    class Pair(pydantic.BaseModel):
        a: int

        @pydantic.model_validator(mode="after")
        def never(self):
            raise ValueError("acme")

    try:
        Pair(a=1)
    except pydantic.ValidationError as exc:
        error = ToolError("acme")
        error.__cause__ = exc
    for each in (error, ValidationError("acme")):
        failure = classify(each)
        assert (failure.fault.code, failure.fault.field, failure.expected) == ("VALIDATION_ERROR", None, True)
        assert "acme" not in repr(failure.fault)


def test_deeply_nested_exceptions_are_classified():
    """Forty groups around one exception."""
    exc = ValueError("acme")
    for _ in range(40):
        exc = ExceptionGroup("acme", [exc])
    assert classify(exc).fault.code == "SERVICE_UNAVAILABLE"


def test_the_trace_id_of_a_typed_error_is_sent():
    """It is in the error object."""
    fault = Fault(
        code="CONFLICT", message="Busy", vocabulary="adcp", trace_id="4bf92f3577b34da6a3ce929d0e0e4736"
    )
    assert tool_result(fault, "2025-11-25")["structuredContent"]["adcp_error"]["trace_id"] == fault.trace_id


# ------------------------------------------------------------------------------------------------------------ client


def invalid():
    try:
        pydantic.TypeAdapter(int).validate_python("x")
    except pydantic.ValidationError as exc:
        return exc


@pytest.mark.parametrize(
    ("exc", "code", "executed"),
    [
        (invalid(), "SERVICE_UNAVAILABLE", "maybe"),
        (RuntimeError("Session task completed unexpectedly"), "SERVICE_UNAVAILABLE", "maybe"),
        (mcp.MCPError(-32700, "parse"), "SERVICE_UNAVAILABLE", "maybe"),
        (mcp.MCPError(-32602, "params"), "VALIDATION_ERROR", "no"),
        (ExceptionGroup("g", [ValueError(), mcp.MCPError(-32001, "late")]), "TIMEOUT", "maybe"),
        (ExceptionGroup("g", [ValueError(), RateLimitedError()]), "RATE_LIMITED", "no"),
        (ExceptionGroup("g", [ConnectionRefusedError()]), "SERVICE_UNAVAILABLE", "no"),
    ],
)
def test_the_typed_errors_of_exceptions(exc, code, executed):
    """Invalid responses, ended sessions, and groups, in which an MCPError or FaultError comes first."""
    error, expired = error_of(exc)
    assert isinstance(error, FaultError)
    assert (error.fault.code, error.fault.executed.value, expired) == (code, executed, False)


class StubHttp:
    """An HTTP client that returns or raises what it was given."""

    def __init__(self, outcome):
        self.outcome = outcome
        self.timeouts = []

    async def send(self, request, **options):
        self.timeouts.append(request.extensions.get("timeout"))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def post(body):
    return httpx2.Request("POST", "http://127.0.0.1/mcp", content=body)


async def test_failed_notifications_are_dropped():
    """So are responses and content that is not JSON-RPC. Their time-outs are short."""
    for body in (b'{"method": "notifications/x"}', b'{"result": {}, "id": 1}', b"no json", b"[]"):
        http = StubHttp(httpx2.ConnectError("down"))
        assert (await HttpRecorder(http).send(post(body))).status_code == 202
        assert max(http.timeouts[0].values()) <= 3
    http = StubHttp(httpx2.Response(200))
    request = httpx2.Request(
        "DELETE", "http://127.0.0.1/", extensions={"timeout": {"read": 300, "connect": 1}}
    )
    await HttpRecorder(http).send(request)
    assert (http.timeouts[0]["read"], http.timeouts[0]["connect"]) == (3, 1)


CALL = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call"}'


async def recorded(outcome):
    """The JSON-RPC error that the SDK gets for an outcome, and the failure recorded in it."""
    response = (await HttpRecorder(StubHttp(outcome)).send(post(CALL))).json()
    assert response["id"] == 7
    return response["error"], recorded_failure(response["error"].get("data"))


async def test_a_json_rpc_error_in_a_failed_response_is_kept():
    """Its number is more specific than the status; if the headers have a wait, status and headers are used."""
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": {"code": -32602, "message": "no"}})
    kind = {"content-type": "application/json"}
    error, failure = await recorded(httpx2.Response(400, headers=kind, content=body))
    assert (error["code"], failure) == (-32602, None)
    error, failure = await recorded(httpx2.Response(429, headers={**kind, "retry-after": "4"}, content=body))
    assert (failure[0].code, failure[0].retry_after) == ("RATE_LIMITED", 4)


@pytest.mark.parametrize(
    ("raised", "code", "executed"),
    [
        (httpx2.ConnectError("acme"), "SERVICE_UNAVAILABLE", "no"),
        (httpx2.ReadError("acme"), "SERVICE_UNAVAILABLE", "maybe"),
        (httpx2.ReadTimeout("acme"), "TIMEOUT", "maybe"),
        (ValueError("acme"), "INTERNAL_ERROR", "maybe"),
    ],
)
async def test_an_exception_while_sending_fails_one_request(raised, code, executed):
    """It is a response and not raised, so that other requests of the session go on."""
    error, failure = await recorded(raised)
    assert (failure[0].code, failure[0].executed.value, failure[1]) == (code, executed, False)
    assert "acme" not in str(error)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/html", b'{"jsonrpc": "2.0", "id": 7, "result": {}}'),
        ("application/json", b"no json"),
        ("application/json", b"[]"),
        ("application/json", b'{"a": 1}'),
        ("application/json", b'{"jsonrpc": "2.0", "id": 7, "result": []}'),
        ("application/json", b'{"jsonrpc": "2.0", "id": 7, "error": {"code": true, "message": ""}}'),
        ("application/json", b'{"jsonrpc": "2.0", "id": 8, "result": {}}'),
        ("application/json", b'{"jsonrpc": "2.0", "id": null, "result": {}}'),
        ("application/json", b'{"jsonrpc": "2.0", "id": 8, "error": {"code": -32603, "message": ""}}'),
        (
            "application/json",
            b'{"jsonrpc": "2.0", "id": 7, "result": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001,
        ),
        ("application/json", rb'{"jsonrpc": "2.0", "id": 7, "result": {"a": "\ud800"}}'),
    ],
)
async def test_an_invalid_success_fails_one_request(kind, body):
    """The tool may have run."""
    _, failure = await recorded(httpx2.Response(200, headers={"content-type": kind}, content=body))
    assert (failure[0].code, failure[0].executed) == ("SERVICE_UNAVAILABLE", Executed.MAYBE)


@pytest.mark.parametrize("id", [b"7", b'"7"'])
async def test_a_result_that_the_sdk_can_read_is_kept(id):
    """NaN is no JSON, but Python's servers write it and the SDK reads it. Servers also write the id as text."""
    body = b'{"jsonrpc": "2.0", "id": %s, "result": {"price": NaN}}' % id
    response = httpx2.Response(200, headers={"content-type": "application/json"}, content=body)
    assert (await HttpRecorder(StubHttp(response)).send(post(CALL))).content == body


async def test_an_error_without_an_id_answers_its_request():
    """The server could not read the id, or does not write it; the SDK would wait for another response."""
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": {"code": -32602, "message": "no"}})
    response = httpx2.Response(200, headers={"content-type": "application/json"}, content=body)
    assert (await recorded(response))[0]["code"] == -32602


async def test_a_failed_response_that_is_nested_too_deeply():
    """Its status is read."""
    body = b'{"jsonrpc": "2.0", "error": ' + b'{"a":' * 5000
    _, failure = await recorded(httpx2.Response(503, content=body))
    assert failure[0].code == "SERVICE_UNAVAILABLE"


async def test_a_request_of_an_expired_session_was_not_executed():
    """A 404 means that only if the request names a session."""
    for headers, expired in (({"mcp-session-id": "x"}, True), ({}, False)):
        request = httpx2.Request("POST", "http://127.0.0.1/mcp", content=CALL, headers=headers)
        response = (await HttpRecorder(StubHttp(httpx2.Response(404))).send(request)).json()
        fault, found = recorded_failure(response["error"]["data"])
        assert found is expired
        assert not expired or fault.executed is Executed.NO


async def test_a_text_that_cannot_be_encoded_is_dropped():
    """A lone surrogate in a problem document: code and wait are kept."""
    body = rb'{"title": "\ud800", "code": "OUT", "retry_after_ms": 5000}'
    response = httpx2.Response(503, headers={"content-type": "application/problem+json"}, content=body)
    _, failure = await recorded(response)
    assert failure[0].retry_after == 5


async def test_a_response_over_the_limit_counts_as_lost(monkeypatch):
    """It is not held in memory."""
    from amends.bindings.mcp import http_recorder

    monkeypatch.setattr(http_recorder, "_JSON_LIMIT", 10)
    kind = {"content-type": "application/json"}
    _, failure = await recorded(httpx2.Response(200, headers=kind, content=b'{"result": {"a": 1}}'))
    assert (failure[0].code, failure[0].executed) == ("SERVICE_UNAVAILABLE", Executed.MAYBE)


def test_a_server_cannot_forge_a_recorded_failure():
    """The key is random in each process; any other data is not a record."""
    assert recorded_failure(None) is None
    assert recorded_failure({"amends": {"fault": {}}}) is None


# ------------------------------------------------------------------------------------------ connections and deadlines


class StubClient:
    """A client of the SDK, as far as a ConnectionTask uses it."""

    def __init__(self, enter=None, leave=None):
        self._enter, self._leave = enter, leave
        self.session = SimpleNamespace(_dispatcher=SimpleNamespace(_closed=False))

    async def __aenter__(self):
        if self._enter is not None:
            await self._enter()

    async def __aexit__(self, *exc):
        if self._leave is not None:
            await self._leave(*exc)


async def test_a_transport_that_breaks_cancels_only_the_connection_task():
    """The cancellation by the transport's task group ends the connection, and no other task."""
    left = []

    async def crash():
        raise ValueError("broken pipe")

    class Broken:
        async def enter(self):
            self.group = anyio.create_task_group()
            await self.group.__aenter__()
            self.group.start_soon(crash)

        async def leave(self, *exc):
            left.append(exc[0])
            await self.group.__aexit__(*exc)

    broken = Broken()
    connection = ConnectionTask(StubClient(broken.enter, broken.leave), closing=1.0)
    await connection.wait_open(5)
    assert connection.alive
    while connection.alive:
        await asyncio.sleep(0)
    assert left == [asyncio.CancelledError]
    await connection.close()


async def test_a_connection_that_opens_too_late_is_ended():
    """`wait_open` raises TimeoutError."""
    connection = ConnectionTask(StubClient(enter=asyncio.Event().wait), closing=1.0)
    with pytest.raises(TimeoutError):
        await connection.wait_open(0.01)
    assert not connection.alive


async def test_an_error_while_closing_is_not_raised():
    """The connection is closed all the same."""

    async def fails(*exc):
        raise ValueError

    connection = ConnectionTask(StubClient(leave=fails), closing=1.0)
    await connection.wait_open(1)
    await connection.close()
    assert not connection.alive


async def test_closing_takes_a_bounded_time():
    """A transport that does not end is cancelled."""

    async def never(*exc):
        await asyncio.Event().wait()

    connection = ConnectionTask(StubClient(leave=never), closing=0.01)
    await connection.wait_open(1)
    await asyncio.wait_for(connection.close(), 60)
    assert not connection.alive


async def test_a_connection_that_the_sdk_has_closed_is_not_alive():
    """It is known before a call is made."""
    client = StubClient()
    connection = ConnectionTask(client, closing=1.0)
    await connection.wait_open(1)
    assert connection.alive
    client.session._dispatcher._closed = True
    assert not connection.alive
    await connection.close()


async def limited(deadlines, seconds, work):
    """Whether the limit ended the work."""
    try:
        with Limit(deadlines, seconds):
            await work
    except TimeoutError:
        return True
    return False


async def test_one_timer_for_many_limits():
    """Each block ends at its own limit, also one inside another."""
    deadlines, forever, done = Deadlines(), asyncio.Event(), asyncio.Event()
    blocks = [
        asyncio.create_task(limited(deadlines, 0.02, forever.wait())),
        asyncio.create_task(limited(deadlines, 0.01, forever.wait())),
        asyncio.create_task(limited(deadlines, 60, limited(deadlines, 0.03, forever.wait()))),
        asyncio.create_task(limited(deadlines, 60, done.wait())),
        asyncio.create_task(limited(deadlines, None, done.wait())),
    ]
    assert await asyncio.gather(*blocks[:3]) == [True, True, False]
    done.set()
    assert await asyncio.gather(*blocks[3:]) == [False, False]
    deadlines.close()


async def test_a_limit_needs_a_task():
    """As `asyncio.timeout` does: there is nothing to cancel in a callback of the loop."""
    loop = asyncio.get_running_loop()
    raised = loop.create_future()

    def callback():
        try:
            with Limit(Deadlines(), 1):
                pass
        except RuntimeError as exc:
            raised.set_result(exc)

    loop.call_soon(callback)
    assert "task" in str(await raised)


async def test_a_cancellation_from_outside_is_not_taken_for_the_limit():
    """The block raises CancelledError, also if the limit expires before or after the other cancellation."""

    async def block(deadlines, seconds, clean_up):
        with Limit(deadlines, seconds):
            try:
                await asyncio.Event().wait()
            finally:
                await clean_up()

    async def nothing():
        pass

    async def cancel_again():
        asyncio.current_task().cancel()

    async def wait_for_the_limit():
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    for seconds, cancelled, clean_up in (
        (60, True, nothing),
        (0.01, False, cancel_again),
        (0.01, True, wait_for_the_limit),
    ):
        deadlines = Deadlines()
        task = asyncio.create_task(block(deadlines, seconds, clean_up))
        await asyncio.sleep(0)
        if cancelled:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        deadlines.close()
