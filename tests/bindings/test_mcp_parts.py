"""The parts of the MCP bindings one by one: what is too rare, or too quick, to be met on a real wire every time."""

import asyncio
import importlib.util
import sys
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
from amends.bindings.mcp.connection_task import Link
from amends.bindings.mcp.deadlines import Watch
from amends.bindings.mcp.handler_errors import told
from amends.bindings.mcp.http_recorder import failure_in
from amends.bindings.mcp.responses import tool_result
from amends.core.enums import Executed
from amends.errors import RateLimitedError


@pytest.mark.parametrize(("module", "needs"), [(binding, "mcp"), (fast_binding, "fastmcp")])
def test_a_missing_library_is_named(module, needs, monkeypatch):
    """An ImportError that says what to install."""
    monkeypatch.setitem(sys.modules, needs, None)
    spec = importlib.util.spec_from_file_location("without", module.__file__)
    with pytest.raises(ImportError, match=rf"amends\[{needs}\]"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


# ------------------------------------------------------------------------------------------------------------ server


def test_arguments_that_are_wrong_as_a_whole_have_no_field():
    """A validator of the whole model names none; and FastMCP's word without pydantic's behind it says no more."""
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
        said = told(each)
        assert (said.fault.code, said.fault.field, said.expected) == ("VALIDATION_ERROR", None, True)
        assert "acme" not in repr(said.fault)


def test_exceptions_within_exceptions_end_somewhere():
    """However deep they are nested, they are told."""
    exc = ValueError("acme")
    for _ in range(40):
        exc = ExceptionGroup("acme", [exc])
    assert told(exc).fault.code == "SERVICE_UNAVAILABLE"


def test_an_authors_own_trace_goes_along():
    """A typed error that names its trace keeps it on the wire."""
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
def test_what_exceptions_of_a_call_mean(exc, code, executed):
    """Answers that are none, sessions that ended, groups: the answer among them first."""
    error, again = error_of(exc)
    assert isinstance(error, FaultError)
    assert (error.fault.code, error.fault.executed.value, again) == (code, executed, False)


class Sends:
    """An HTTP client that does what it is told."""

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


async def test_what_nobody_waits_for_is_dropped_when_it_fails():
    """Notifications, answers, and what is no JSON-RPC: in a hurry, and without disturbing anybody."""
    for body in (b'{"method": "notifications/x"}', b'{"result": {}, "id": 1}', b"no json", b"[]"):
        sends = Sends(httpx2.ConnectError("down"))
        assert (await HttpRecorder(sends).send(post(body))).status_code == 202
        assert max(sends.timeouts[0].values()) <= 3
    sends = Sends(httpx2.Response(200))
    request = httpx2.Request(
        "DELETE", "http://127.0.0.1/", extensions={"timeout": {"read": 300, "connect": 1}}
    )
    await HttpRecorder(sends).send(request)
    assert (sends.timeouts[0]["read"], sends.timeouts[0]["connect"]) == (3, 1)


CALL = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call"}'


async def witnessed(response):
    found = (await HttpRecorder(Sends(response)).send(post(CALL))).json()
    assert found["id"] == 7
    return found["error"], failure_in(found["error"].get("data"))


async def test_a_servers_own_number_stays():
    """A JSON-RPC error at an error status says more than the status; with a wait in the headers both count."""
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": {"code": -32602, "message": "no"}})
    kind = {"content-type": "application/json"}
    error, seen = await witnessed(httpx2.Response(400, headers=kind, content=body))
    assert (error["code"], seen) == (-32602, None)
    error, seen = await witnessed(httpx2.Response(429, headers={**kind, "retry-after": "4"}, content=body))
    assert (seen[0].code, seen[0].retry_after) == ("RATE_LIMITED", 4)


@pytest.mark.parametrize(
    ("raised", "code", "executed"),
    [
        (httpx2.ConnectError("acme"), "SERVICE_UNAVAILABLE", "no"),
        (httpx2.ReadError("acme"), "SERVICE_UNAVAILABLE", "maybe"),
        (httpx2.ReadTimeout("acme"), "TIMEOUT", "maybe"),
        (ValueError("acme"), "INTERNAL_ERROR", "maybe"),
    ],
)
async def test_what_sending_raises_is_the_one_requests_failure(raised, code, executed):
    """Answered and not raised: the session's other requests go on."""
    error, seen = await witnessed(raised)
    assert (seen[0].code, seen[0].executed.value, seen[1]) == (code, executed, False)
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
    ],
)
async def test_a_success_that_is_no_answer_is_the_one_requests_failure(kind, body):
    """The tool may have run."""
    _, seen = await witnessed(httpx2.Response(200, headers={"content-type": kind}, content=body))
    assert (seen[0].code, seen[0].executed) == ("SERVICE_UNAVAILABLE", Executed.MAYBE)


async def test_a_session_that_is_forgotten_did_nothing():
    """Only where the request named one: any other 404 is an answer about something else."""
    for headers, expired in (({"mcp-session-id": "x"}, True), ({}, False)):
        request = httpx2.Request("POST", "http://127.0.0.1/mcp", content=CALL, headers=headers)
        answer = (await HttpRecorder(Sends(httpx2.Response(404))).send(request)).json()
        fault, again = failure_in(answer["error"]["data"])
        assert again is expired
        assert not expired or fault.executed is Executed.NO


async def test_texts_that_cannot_be_written_do_not_cost_the_error():
    """A lone surrogate in a problem document: what decides is kept."""
    body = rb'{"title": "\ud800", "code": "OUT", "retry_after_ms": 5000}'
    response = httpx2.Response(503, headers={"content-type": "application/problem+json"}, content=body)
    _, seen = await witnessed(response)
    assert seen[0].retry_after == 5


async def test_answers_without_end_are_none(monkeypatch):
    """Larger than anybody would hold: taken for garbage."""
    from amends.bindings.mcp import http_recorder

    monkeypatch.setattr(http_recorder, "_JSON_LIMIT", 10)
    kind = {"content-type": "application/json"}
    _, seen = await witnessed(httpx2.Response(200, headers=kind, content=b'{"result": {"a": 1}}'))
    assert (seen[0].code, seen[0].executed) == ("SERVICE_UNAVAILABLE", Executed.MAYBE)


def test_nobody_else_can_say_what_was_witnessed():
    """The word is not known outside this process, and anything else is no record."""
    assert failure_in(None) is None
    assert failure_in({"amends": {"fault": {}}}) is None


# --------------------------------------------------------------------------------------------------- links and limits


async def link_of(enter, leave, closing=1.0):
    return Link(enter, leave, closing)


async def at_once(*exc):
    """Neither entering nor leaving takes any time."""


async def test_a_transport_that_breaks_takes_only_its_own_task_along():
    """The task group's cancellation ends the connection, and nothing of it is heard anywhere else."""
    left = []

    async def crash():
        await anyio.sleep(0.01)
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
    link = await link_of(broken.enter, broken.leave)
    await link.opened(5)
    assert link.alive
    while link.alive:
        await asyncio.sleep(0.005)
    assert left == [asyncio.CancelledError]
    await link.close()


async def test_one_that_stood_too_late_or_leaves_badly():
    """Given up while it was opening; and an error while leaving concerns nobody."""
    opened = asyncio.Event()

    async def slow():
        await opened.wait()

    async def badly(*exc):
        raise ValueError

    link = await link_of(slow, badly)
    with pytest.raises(TimeoutError):
        await link.opened(0.01)
    assert not link.alive

    link = await link_of(at_once, badly)
    await link.opened(1)
    await link.close()
    assert not link.alive


async def test_one_that_will_not_be_left():
    """Closing it is bounded."""

    async def never(*exc):
        await asyncio.Event().wait()

    link = await link_of(at_once, never, closing=0.01)
    await link.opened(1)
    await asyncio.wait_for(link.close(), 60)
    assert not link.alive


async def test_one_whose_end_the_sdk_has_seen():
    """It is believed, before a call finds out."""
    link = await link_of(at_once, at_once)
    await link.opened(1)
    before, link.dispatcher = link.alive, SimpleNamespace(_closed=True)
    after = link.alive
    await link.close()
    assert (before, after) == (True, False)


async def test_one_timer_for_many_limits():
    """Each call ends at its own limit; one inside another has that of the outer."""
    watch = Watch()
    ended = []

    async def call(seconds, works):
        task = watch.begin(seconds)
        assert watch.begin(seconds) is None
        cancelled = False
        try:
            await asyncio.sleep(works)
        except asyncio.CancelledError:
            cancelled = True
        ended.append((seconds, watch.end(task, cancelled=cancelled)))

    await asyncio.gather(call(0.05, 5), call(0.1, 5), call(5, 0.15), call(5, 0.01))
    assert sorted(ended) == [(0.05, True), (0.1, True), (5, False), (5, False)]
    watch.stop()


async def test_somebody_elses_cancellation_stays_theirs():
    """Cancelled from outside at the same moment as by the limit: it is not ours alone, so it goes on."""
    watch = Watch()
    seen = []

    async def call():
        task = watch.begin(0.02)
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            asyncio.current_task().cancel()
            seen.append(watch.end(task, cancelled=True))

    task = asyncio.create_task(call())
    with pytest.raises(asyncio.CancelledError):
        await task
        await asyncio.sleep(0)
    assert seen == [False]
    watch.stop()
