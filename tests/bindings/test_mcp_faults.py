"""
Servers that are dead, hang, close half-way or send garbage: the client raises a typed error in time, and releases
everything. Counted: the loop's tasks, open files and child processes of this process, the server's connections.
"""

import asyncio
import os
import signal
import socket
import sys
import time

import mcp
import pytest
from fastmcp.client.transports import StdioTransport
from mcp.client.stdio import StdioServerParameters
from mcp.server import Server
from mcp_types import CallToolResult

from amends import FaultError, Operation, Policy
from amends.bindings.fastmcp import Client as FastClient
from amends.bindings.mcp import Client
from amends.bindings.mcp.client_errors import error_of
from amends.core.enums import Executed
from amends.recovery import NONE
from tests.bindings.apps import mcp_faulty
from tests.bindings.apps.mcp_faulty import BEHAVIOURS, answering, faulty
from tests.bindings.apps.mcp_shop import Shop, fast, official
from tests.bindings.conftest import children
from tests.http.serving import serve

READ = Operation(name="look", read_only=True)
WRITE = Operation(name="buy")
DEADLINE = 1.0
MARGIN = 60.0
"""Seconds that a busy machine may take beyond the deadline. Without bounds, these servers hang for minutes."""
ONCE = Policy(attempts=1, deadline=DEADLINE)
LONG = Policy(attempts=1, deadline=MARGIN)
"""For failures that need no deadline: the server fails at once, however long a busy machine takes."""

pytestmark = pytest.mark.usefixtures("quiet")


async def failing(client, operation, **options):
    """The typed error of one call, raised in time."""
    began = time.monotonic()
    with pytest.raises(FaultError) as caught:
        async with client:
            await client.call_tool("look", {}, operation=operation, **options)
    assert time.monotonic() - began < DEADLINE + MARGIN
    return caught.value


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
async def test_broken_servers_end_in_time_with_a_typed_error(behaviour, nothing_left):
    """Over HTTP. The request was sent and may have had its effect, so a call that changes something is not repeated."""
    async with faulty(BEHAVIOURS[behaviour]) as server:
        client = Client(server.url, mode="2026-07-28")
        error = await failing(client, WRITE, policy=Policy(deadline=DEADLINE))
        assert error.fault.code in {"SERVICE_UNAVAILABLE", "TIMEOUT"}
        assert error.fault.executed is Executed.MAYBE
        assert error.decision.action.value == "verify"
        assert len([each for each in server.requests if each.startswith(b"POST")]) <= 1
        await until(lambda: server.open == 0)


@pytest.mark.parametrize("behaviour", ["hang", "half", "reset", "noise", "html", "no_json"])
@pytest.mark.parametrize("make", [Client, FastClient])
async def test_connecting_to_a_broken_server(make, behaviour, nothing_left):
    """The handshake is bounded too, and no call was made."""
    async with faulty(BEHAVIOURS[behaviour]) as server:
        error = await failing(make(server.url, policy=ONCE), READ)
        assert error.fault.code in {"SERVICE_UNAVAILABLE", "TIMEOUT"}
        assert error.fault.executed is Executed.NO
        await until(lambda: server.open == 0)


@pytest.mark.parametrize("make", [Client, FastClient])
async def test_a_refused_connection_is_service_unavailable(make, nothing_left):
    """No server listens on the port; the code is not NOT_FOUND."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/mcp"
    error = await failing(make(url, policy=LONG), READ)
    assert (error.fault.code, error.fault.executed) == ("SERVICE_UNAVAILABLE", Executed.NO)


@pytest.mark.parametrize("make", [Client, FastClient])
async def test_a_listing_that_fails_before_a_call(make):
    """The tools are listed first; if that fails, the tool was not called."""
    bought = []

    async def list_tools(ctx, params):
        raise mcp.MCPError(-32603, "no")

    async def call_tool(ctx, params):
        bought.append(1)
        return CallToolResult(content=[])

    server = Server("s", on_list_tools=list_tools, on_call_tool=call_tool)
    with serve(server.streamable_http_app(), lifespan="on") as url:
        async with make(f"{url}/mcp", policy=NONE) as client:
            with pytest.raises(FaultError) as caught:
                await client.call_tool("buy", {})
    assert (caught.value.fault.code, bought) == ("INTERNAL_ERROR", [])
    assert caught.value.fault.executed is Executed.NO


async def until(true):
    limit = time.monotonic() + MARGIN
    while not true():
        assert time.monotonic() < limit
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("status", "headers", "code", "wait"),
    [
        (b"429 Too Many Requests", b"Retry-After: 7\r\n", "RATE_LIMITED", 7),
        (b"503 Service Unavailable", b"Retry-After: 3\r\n", "SERVICE_UNAVAILABLE", 3),
        (b"401 Unauthorized", b"WWW-Authenticate: Bearer\r\n", "UNAUTHENTICATED", None),
        (b"403 Forbidden", b"", "PERMISSION_DENIED", None),
        (b"500 Internal Server Error", b"", "INTERNAL_ERROR", None),
    ],
)
@pytest.mark.parametrize("make", [Client, FastClient])
async def test_the_error_has_status_and_retry_after(make, status, headers, code, wait, nothing_left):
    """The SDK drops both; the error has them, also if the body is not MCP."""
    async with faulty(answering(status, headers, b"acme")) as server:
        error = await failing(make(server.url, mode="2026-07-28", policy=LONG), READ)
    assert (error.fault.code, error.fault.retry_after) == (code, wait)
    assert error.fault.status == int(status[:3])


async def test_a_bad_response_fails_one_call(nothing_left):
    """With the plain client a lost connection ends the session; here other calls go on."""
    shop, lost = Shop(), []
    app = official(shop).streamable_http_app()

    async def losing(scope, receive, send):
        if lost and scope["type"] == "http" and scope["method"] == "POST":
            lost.clear()
            await send(
                {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]}
            )
            await send({"type": "http.response.body", "body": b"oops"})
            return
        await app(scope, receive, send)

    with serve(losing, lifespan="on") as url:
        async with Client(f"{url}/mcp", mode="legacy", policy=NONE) as client:
            await client.call_tool("add", {"a": 1})
            slow = asyncio.create_task(client.call_tool("slow", {"seconds": 60}))
            await until(lambda: shop.calls.get("slow"))
            lost.append(1)
            with pytest.raises(FaultError):
                await client.call_tool("add", {"a": 1})
            shop.finish()
            assert not (await slow).is_error
            assert (await client.call_tool("add", {"a": 1})).content[0].text == "2"


UNSENDABLE = {"a lone surrogate": "\ud800", "an object": object(), "bytes": b"\xff"}


@pytest.mark.parametrize("value", UNSENDABLE.values(), ids=UNSENDABLE)
@pytest.mark.parametrize("make", [Client, FastClient])
async def test_arguments_that_cannot_be_sent_fail_one_call(make, value, nothing_left):
    """The plain client ends the session for a lone surrogate; here nothing is sent, and other calls go on."""
    shop = Shop()
    with serve(official(shop).streamable_http_app(), lifespan="on") as url:
        async with make(f"{url}/mcp", policy=NONE) as client:
            await client.call_tool("add", {"a": 1})
            slow = asyncio.create_task(client.call_tool("slow", {"seconds": 60}))
            await until(lambda: shop.calls.get("slow"))
            with pytest.raises(FaultError) as caught:
                await client.call_tool("add", {"a": [{"b": value}]})
            assert (caught.value.code, caught.value.fault.executed) == ("VALIDATION_ERROR", Executed.NO)
            assert caught.value.decision.action.value == "fix"
            shop.finish()
            assert not (await slow).is_error


@pytest.mark.parametrize("transport", [StdioServerParameters, StdioTransport])
async def test_prompts_that_cannot_be_sent_fail_one_call(transport, nothing_left):
    """On standard streams too, and for other requests than tool calls."""
    make = Client if transport is StdioServerParameters else FastClient
    program = transport(command=sys.executable, args=["-m", "tests.bindings.apps.mcp_shop", "official"])
    async with make(program, policy=NONE) as client:
        with pytest.raises(FaultError) as caught:
            await client.get_prompt("order", {"item": "\ud800"})
        assert (caught.value.code, caught.value.fault.executed) == ("VALIDATION_ERROR", Executed.NO)
        assert await client.get_prompt("order", {"item": "tea"})


# -------------------------------------------------------------------------------------------------- standard streams


def program(behaviour):
    return StdioServerParameters(command=sys.executable, args=[mcp_faulty.__file__, behaviour])


PROGRAMS = ("silent", "noise", "leaves", "closes")


@pytest.mark.parametrize("behaviour", PROGRAMS)
async def test_broken_programs_end_in_time(behaviour, nothing_left):
    """A program that writes nothing, writes garbage, ends, or closes its output."""
    client = Client(program(behaviour), mode="2026-07-28", closing=0.5)
    error = await failing(client, WRITE, policy=ONCE)
    assert error.fault.code in {"SERVICE_UNAVAILABLE", "TIMEOUT"}
    assert error.fault.executed is Executed.MAYBE


@pytest.mark.parametrize("behaviour", PROGRAMS)
@pytest.mark.parametrize("make", [Client, FastClient])
async def test_connecting_to_a_broken_program(make, behaviour, nothing_left):
    """The handshake is bounded too, and the program is terminated and reaped."""
    if make is Client:
        client = Client(program(behaviour), policy=ONCE, closing=0.5)
    else:
        transport = StdioTransport(sys.executable, [mcp_faulty.__file__, behaviour], keep_alive=False)
        client = FastClient(transport, policy=ONCE)
    error = await failing(client, READ)
    assert error.fault.code in {"SERVICE_UNAVAILABLE", "TIMEOUT"}
    assert error.fault.executed is Executed.NO


async def test_a_command_that_does_not_exist(nothing_left):
    """SERVICE_UNAVAILABLE, terminal, not executed."""
    client = Client(StdioServerParameters(command="/nonexistent/server"), policy=LONG)
    error = await failing(client, READ)
    assert (error.fault.code, error.fault.executed) == ("SERVICE_UNAVAILABLE", Executed.NO)
    assert error.fault.recovery.value == "terminal"


async def test_a_program_that_dies_during_a_call_is_started_again(nothing_left):
    """The call in flight may have had its effect; the next one uses a new process."""
    shop = StdioServerParameters(
        command=sys.executable, args=["-m", "tests.bindings.apps.mcp_shop", "official"]
    )
    async with Client(shop) as client:
        with pytest.raises(FaultError) as caught:
            await client.call_tool("dies", {})
        assert caught.value.fault.executed is Executed.MAYBE
        assert caught.value.decision.action.value == "verify"
        assert (await client.call_tool("add", {"a": 2})).content[0].text == "3"


async def test_only_some_transports_can_be_opened_again(nothing_left):
    """A transport object can be used once; a function that returns a new one can be called again."""
    from mcp.client._memory import InMemoryTransport

    server = official(Shop())
    made = []

    def fresh():
        made.append(InMemoryTransport(server))
        return made[-1]

    once = Client(InMemoryTransport(server), mode="legacy", policy=NONE)
    often = Client(fresh, mode="legacy", policy=NONE)
    for client, again in ((once, False), (often, True)):
        async with client:
            assert not (await client.call_tool("add", {"a": 1})).is_error
            client._connection.broken = True
            if again:
                assert not (await client.call_tool("add", {"a": 1})).is_error
                continue
            with pytest.raises(FaultError) as caught:
                await client.call_tool("add", {"a": 1})
            assert caught.value.fault.executed is Executed.NO
    assert len(made) == 2


async def test_a_call_that_takes_too_long_is_cancelled(nothing_left):
    """`limit` bounds every attempt, in memory too, and the tool is cancelled on the server."""
    shop = Shop()
    for mode in ("2026-07-28", "legacy"):
        async with Client(official(shop), mode=mode, policy=NONE) as client:
            await client.call_tool("add", {"a": 1})
            client._calls.limit = 0.2
            with pytest.raises(FaultError) as caught:
                await client.call_tool("slow", {"seconds": 60})
            client._calls.limit = 60
            assert (caught.value.fault.code, caught.value.fault.executed.value) == ("TIMEOUT", "maybe")
            assert not (await client.call_tool("add", {"a": 1})).is_error
    assert shop.calls["cancelled"] == 2


@pytest.mark.parametrize("make", [Client, FastClient])
async def test_a_call_with_an_operation_is_limited_too(make, nothing_left):
    """By both clients."""
    server = {Client: official, FastClient: fast}[make](Shop())
    async with make(server, policy=NONE, limit=0.2) as client:
        with pytest.raises(FaultError) as caught:
            await client.call_tool("slow", {"seconds": 60}, operation=WRITE)
    assert (caught.value.fault.code, caught.value.fault.executed.value) == ("TIMEOUT", "maybe")


async def test_no_timer_is_left_of_a_closed_client():
    """The timer of a limit of an hour."""
    async with Client(official(Shop()), limit=3600) as client:
        await client.call_tool("add", {"a": 1})
        await client.call_tool("add", {"a": 1})
        assert client._deadlines._timer is not None
    assert client._deadlines._timer is None


async def test_a_program_that_dies_between_two_calls(nothing_left):
    """No call was in flight: the next one uses a new process, and no call fails."""
    shop = StdioServerParameters(
        command=sys.executable, args=["-m", "tests.bindings.apps.mcp_shop", "official"]
    )
    before = children()
    async with Client(shop, policy=NONE) as client:
        await client.call_tool("add", {"a": 1})
        (pid,) = children() - before
        os.kill(int(pid), signal.SIGKILL)
        await until(lambda: not client._connection.alive)
        assert (await client.call_tool("add", {"a": 2})).content[0].text == "3"


async def test_cancelling_a_call_raises_cancelled_error(nothing_left):
    """It is not taken for the limit, and the client can be used afterwards."""
    shop = Shop()
    async with Client(official(shop), limit=60) as client:
        await client.list_tools()
        task = asyncio.create_task(client.call_tool("slow", {"seconds": 60}))
        await until(lambda: shop.calls.get("slow"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not task.cancelling() or task.cancelled()
        assert not (await client.call_tool("add", {"a": 1})).is_error


async def test_cancelling_while_connecting(nothing_left):
    """The connection is closed."""
    async with faulty(BEHAVIOURS["hang"]) as server:
        client = Client(server.url)
        task = asyncio.create_task(client.__aenter__())
        await until(lambda: server.open == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: server.open == 0)


async def test_the_plain_client_hangs(nothing_left):
    """Without bounds the handshake does not end."""
    async with faulty(BEHAVIOURS["hang"]) as server:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                async with mcp.Client(server.url):
                    pass


def test_the_message_of_a_json_rpc_error_is_used():
    """The inner message is optional (A3); the client's error has the outer one then."""
    error, _ = error_of(mcp.MCPError(-32029, "Too many calls", {"adcp_error": {"code": "RATE_LIMITED"}}))
    assert (error.fault.code, str(error)) == ("RATE_LIMITED", "Too many calls")
