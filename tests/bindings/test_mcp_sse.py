"""The SSE transport of the oldest protocols: an event stream for responses, POST for requests."""

import mcp
import pytest
from fastmcp.client.transports import SSETransport
from mcp.client.sse import sse_client

from amends import FaultError
from amends.bindings.fastmcp import Client as FastClient
from amends.bindings.mcp import Client
from amends.core.enums import Executed
from tests.bindings.apps.mcp_faulty import BEHAVIOURS, faulty
from tests.bindings.apps.mcp_shop import KINDS, SECRET, Shop
from tests.bindings.apps.mcp_sse import sse_served
from tests.bindings.test_mcp_faults import ONCE, READ, failing, until
from tests.bindings.test_mcp_guard import error_in

pytestmark = pytest.mark.usefixtures("quiet")


def ours(url):
    """With a function that returns a new transport, so that the client can reconnect."""
    return Client(lambda: sse_client(url))


def fasts(url):
    return FastClient(SSETransport(url))


@pytest.mark.parametrize("kind", KINDS)
async def test_a_guarded_server(kind, nothing_left):
    """The plain client gets AdCP errors, without text of foreign exceptions."""
    with sse_served(KINDS[kind](Shop())) as url:
        async with mcp.Client(sse_client(url), mode="legacy") as client:
            limited = error_in(await client.call_tool("fails", {"kind": "limited"}))
            crashed = error_in(await client.call_tool("fails", {"kind": "crash"}))
    assert (limited["code"], limited["retry_after"]) == ("RATE_LIMITED", 5)
    assert crashed["code"] == "SERVICE_UNAVAILABLE"
    assert SECRET not in str(crashed)


@pytest.mark.parametrize("make", [ours, fasts])
async def test_typed_errors_and_recovery(make, nothing_left, clock):
    """A read is repeated after its wait, and a failure is typed."""
    shop = Shop()
    with sse_served(KINDS["official"](shop)) as url:
        async with make(url) as client:
            assert not (await client.call_tool("look", {"times": 1})).is_error
            assert (shop.calls["look"], clock.waits) == (2, [1])
            with pytest.raises(FaultError) as caught:
                await client.call_tool("fails", {"kind": "budget"})
    assert (caught.value.code, caught.value.fault.field) == ("BUDGET_TOO_LOW", "budget")


async def test_a_lost_connection_is_opened_again(nothing_left):
    """The function that returns the transport may use another address."""
    at = []
    client = Client(lambda: sse_client(at[-1]))
    with sse_served(KINDS["official"](Shop())) as url:
        at.append(url)
        async with client:
            assert not (await client.call_tool("add", {"a": 1})).is_error
            with sse_served(KINDS["official"](Shop())) as other:
                at.append(other)
                client._connection.broken = True
                assert not (await client.call_tool("add", {"a": 1})).is_error


@pytest.mark.parametrize("behaviour", ["hang", "drip", "half_stream", "no_more", "reset", "noise", "html"])
async def test_broken_servers_end_in_time(behaviour, nothing_left):
    """The connection is never open: no call was made, and no connection is left."""
    async with faulty(BEHAVIOURS[behaviour]) as server:
        client = Client(lambda: sse_client(server.url), mode="legacy", policy=ONCE)
        error = await failing(client, READ)
        assert error.fault.code in {"SERVICE_UNAVAILABLE", "TIMEOUT"}
        assert error.fault.executed is Executed.NO
        await until(lambda: server.open == 0)
