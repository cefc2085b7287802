"""
A dead, hanging, half-closing, garbage-speaking server: the client ends in time with a typed error, and leaves nothing
behind. Counted: the tasks of the loop, the files and the children of this process, the connections of the server.
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
from amends.core.enums import Executed
from amends.recovery import NONE
from tests.bindings.apps import mcp_faulty
from tests.bindings.apps.mcp_faulty import BEHAVIOURS, answering, faulty
from tests.bindings.apps.mcp_shop import Shop, fast, official
from tests.bindings.conftest import children
from tests.http.serving import serve

READ = Operation(name="look", read_only=True)
WRITE = Operation(name="buy")
PATIENCE = 1.0
ROOM = 15.0
"""Seconds a busy machine may take beyond the deadline; a hang would be minutes."""
ONCE = Policy(attempts=1, deadline=PATIENCE)
SURE = Policy(attempts=1, deadline=ROOM)
"""For failures that come at once, or as soon as a busy machine gets to it."""

pytestmark = pytest.mark.usefixtures("quiet")


async def failing(client, operation, **options):
    """The typed error of one call, in time."""
    began = time.monotonic()
    with pytest.raises(FaultError) as caught:
        async with client:
            await client.call_tool("look", {}, operation=operation, **options)
    assert time.monotonic() - began < PATIENCE + ROOM
    return caught.value


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
async def test_broken_servers_end_in_time_with_a_typed_error(behaviour, nothing_left):
    """Over HTTP. What was sent may have happened, so a call that changes something is not repeated."""
    async with faulty(BEHAVIOURS[behaviour]) as server:
        client = Client(server.url, mode="2026-07-28")
        error = await failing(client, WRITE, policy=Policy(deadline=PATIENCE))
        assert error.fault.code in {"SERVICE_UNAVAILABLE", "TIMEOUT"}
        assert error.fault.executed is Executed.MAYBE
        assert error.decision.action.value == "verify"
        assert len([each for each in server.requests if each.startswith(b"POST")]) == 1
        await until(lambda: server.open == 0)


@pytest.mark.parametrize("behaviour", ["hang", "half", "reset", "noise", "html", "no_json"])
@pytest.mark.parametrize("make", [Client, FastClient])
async def test_connecting_to_a_broken_server(make, behaviour, nothing_left):
    """The handshake is bounded too, and nothing has happened then."""
    async with faulty(BEHAVIOURS[behaviour]) as server:
        error = await failing(make(server.url, policy=ONCE), READ)
        assert error.fault.code in {"SERVICE_UNAVAILABLE", "TIMEOUT"}
        assert error.fault.executed is Executed.NO
        await until(lambda: server.open == 0)


@pytest.mark.parametrize("make", [Client, FastClient])
async def test_a_dead_server_is_unavailable_and_no_unknown_tool(make, nothing_left):
    """Nobody listens on the port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/mcp"
    error = await failing(make(url, policy=SURE), READ)
    assert (error.fault.code, error.fault.executed) == ("SERVICE_UNAVAILABLE", Executed.NO)


@pytest.mark.parametrize("make", [Client, FastClient])
async def test_a_listing_that_fails_before_a_call(make):
    """The annotations are asked for first: whatever that fails with, nothing was bought."""
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
    limit = time.monotonic() + ROOM
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
async def test_status_and_retry_after_are_not_lost(make, status, headers, code, wait, nothing_left):
    """The SDK keeps neither; here both are in the error, also where the body was no MCP."""
    async with faulty(answering(status, headers, b"acme")) as server:
        error = await failing(make(server.url, mode="2026-07-28", policy=SURE), READ)
    assert (error.fault.code, error.fault.retry_after) == (code, wait)
    assert error.fault.status == int(status[:3])


async def test_one_bad_answer_does_not_disturb_the_others(nothing_left):
    """The plain client's session ends with the first lost connection; here the failure is one call's."""
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
            slow = asyncio.create_task(client.call_tool("slow", {"seconds": 1}))
            await until(lambda: shop.calls.get("slow"))
            lost.append(1)
            with pytest.raises(FaultError):
                await client.call_tool("add", {"a": 1})
            assert not (await slow).is_error
            assert (await client.call_tool("add", {"a": 1})).content[0].text == "2"


# -------------------------------------------------------------------------------------------------- standard streams


def program(behaviour):
    return StdioServerParameters(command=sys.executable, args=[mcp_faulty.__file__, behaviour])


PROGRAMS = ("silent", "noise", "leaves", "closes")


@pytest.mark.parametrize("behaviour", PROGRAMS)
async def test_broken_programs_end_in_time(behaviour, nothing_left):
    """A program that says nothing, garbage, or leaves."""
    client = Client(program(behaviour), mode="2026-07-28", closing=0.5)
    error = await failing(client, WRITE, policy=ONCE)
    assert error.fault.code in {"SERVICE_UNAVAILABLE", "TIMEOUT"}
    assert error.fault.executed is Executed.MAYBE


@pytest.mark.parametrize("behaviour", PROGRAMS)
@pytest.mark.parametrize("make", [Client, FastClient])
async def test_connecting_to_a_broken_program(make, behaviour, nothing_left):
    """The handshake is bounded too, and the program is ended and waited for."""
    if make is Client:
        client = Client(program(behaviour), policy=ONCE, closing=0.5)
    else:
        transport = StdioTransport(sys.executable, [mcp_faulty.__file__, behaviour], keep_alive=False)
        client = FastClient(transport, policy=ONCE)
    error = await failing(client, READ)
    assert error.fault.code in {"SERVICE_UNAVAILABLE", "TIMEOUT"}
    assert error.fault.executed is Executed.NO


async def test_a_program_that_is_not_there(nothing_left):
    """No such command: unavailable for good, and nothing has happened."""
    client = Client(StdioServerParameters(command="/nonexistent/server"), policy=SURE)
    error = await failing(client, READ)
    assert (error.fault.code, error.fault.executed) == ("SERVICE_UNAVAILABLE", Executed.NO)
    assert error.fault.recovery.value == "terminal"


async def test_a_program_that_dies_in_the_middle_is_started_again(nothing_left):
    """The call in flight may have happened; the next one runs on a new process."""
    shop = StdioServerParameters(
        command=sys.executable, args=["-m", "tests.bindings.apps.mcp_shop", "official"]
    )
    async with Client(shop) as client:
        with pytest.raises(FaultError) as caught:
            await client.call_tool("dies", {})
        assert caught.value.fault.executed is Executed.MAYBE
        assert caught.value.decision.action.value == "verify"
        assert (await client.call_tool("add", {"a": 2})).content[0].text == "3"


async def test_a_transport_that_cannot_be_made_anew(nothing_left):
    """A transport object serves once; a function that gives a fresh one serves as often as it takes."""
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
            client._link.lost = True
            if again:
                assert not (await client.call_tool("add", {"a": 1})).is_error
                continue
            with pytest.raises(FaultError) as caught:
                await client.call_tool("add", {"a": 1})
            assert caught.value.fault.executed is Executed.NO
    assert len(made) == 2


async def test_a_call_that_takes_too_long_is_given_up_and_cancelled(nothing_left):
    """`limit` bounds every attempt, in memory too, and the server hears of it."""
    shop = Shop()
    for mode in ("2026-07-28", "legacy"):
        async with Client(official(shop), mode=mode, policy=NONE) as client:
            await client.call_tool("add", {"a": 1})
            client.limit = client._calls.limit = 0.2
            with pytest.raises(FaultError) as caught:
                await client.call_tool("slow", {"seconds": 60})
            client.limit = client._calls.limit = 60
            assert (caught.value.fault.code, caught.value.fault.executed.value) == ("TIMEOUT", "maybe")
            assert not (await client.call_tool("add", {"a": 1})).is_error
    assert shop.calls["cancelled"] == 2


@pytest.mark.parametrize("make", [Client, FastClient])
async def test_a_call_with_something_around_it_is_given_up_too(make, nothing_left):
    """Where the caller says what it promises, say; and no timer is left of the limit."""
    server = {Client: official, FastClient: fast}[make](Shop())
    async with make(server, policy=NONE, limit=0.2) as client:
        with pytest.raises(FaultError) as caught:
            await client.call_tool("slow", {"seconds": 60}, operation=WRITE)
    assert (caught.value.fault.code, caught.value.fault.executed.value) == ("TIMEOUT", "maybe")
    assert make is FastClient or client._watch._timer is None


async def test_a_limit_is_forgotten_with_its_client():
    """Nobody is left who could be late."""
    async with Client(official(Shop()), limit=3600) as client:
        await client.call_tool("add", {"a": 1})
        await client.call_tool("add", {"a": 1})
        assert client._watch._timer is not None
    assert client._watch._timer is None


async def test_a_program_that_dies_between_two_calls(nothing_left):
    """Nobody has asked it anything: the next call is made on a new one, and nothing has failed."""
    shop = StdioServerParameters(
        command=sys.executable, args=["-m", "tests.bindings.apps.mcp_shop", "official"]
    )
    before = children()
    async with Client(shop, policy=NONE) as client:
        await client.call_tool("add", {"a": 1})
        (pid,) = children() - before
        os.kill(int(pid), signal.SIGKILL)
        await until(lambda: client._session._dispatcher._closed)
        assert (await client.call_tool("add", {"a": 2})).content[0].text == "3"


async def test_cancelling_is_not_a_failure(nothing_left):
    """A task that is cancelled ends at once, and no limit of ours is taken for it."""
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


async def test_giving_up_while_connecting(nothing_left):
    """Cancelling the one who connects takes the connection down."""
    async with faulty(BEHAVIOURS["hang"]) as server:
        client = Client(server.url)
        task = asyncio.create_task(client.__aenter__())
        await until(lambda: server.open == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: server.open == 0)


async def test_the_plain_client_would_have_hung(nothing_left):
    """What the bounds are for: without them the handshake waits for ever."""
    async with faulty(BEHAVIOURS["hang"]) as server:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                async with mcp.Client(server.url):
                    pass
