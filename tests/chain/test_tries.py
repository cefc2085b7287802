"""
Tests that retries of several layers do not multiply (M8): real servers, every layer with our clients.

The clients have no Upstream, which would hold calls back as well.
"""

import httpx
import mcp
import pytest
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

from amends import FaultError, Policy, extract
from amends.bindings import a2a
from amends.bindings.httpx import AsyncTransport
from amends.bindings.mcp import Client, guard
from amends.core.backoff import Backoff
from tests.bindings.agents import PATHS, Agent, agent_server, card, config, http_client, request
from tests.http.serving import serve

QUICK = Backoff(first=0.001)
READS = ToolAnnotations(read_only_hint=True)


def tries(count):
    return Policy(attempts=count, backoff=QUICK)


class Service:
    """The last service: counts its calls, and fails always."""

    def __init__(self):
        self.calls = 0

    async def __call__(self, scope, receive, send):
        self.calls += 1
        await send({"type": "http.response.start", "status": 503, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def get(self, policy):
        inner = httpx.ASGITransport(self)
        async with httpx.AsyncClient(transport=AsyncTransport(inner, policy=policy, upstream=None)) as client:
            return (await client.get("http://service/")).text


def tool_around(call):
    """Return a guarded server whose tool only makes another call."""
    server = MCPServer("hop")

    @server.tool(annotations=READS)
    async def read() -> str:
        return await call()

    return guard(server)


async def by_mcp(server, policy):
    async with Client(server, policy=policy, upstream=None) as client:
        return (await client.call_tool("read")).content[0].text


@pytest.mark.parametrize("attempts", [(3, 3), (5, 3), (5, 4), (3, 5)])
async def test_http_then_mcp(attempts):
    """Service ← HTTP client ← guarded tool ← MCP client; nine calls before."""
    outer, inner = attempts
    service = Service()
    server = tool_around(lambda: service.get(tries(inner)))
    with pytest.raises(FaultError) as caught:
        await by_mcp(server, tries(outer))
    assert service.calls <= max(attempts) + 1
    assert caught.value.fault.attempt == service.calls
    async with mcp.Client(server) as client:
        result = await client.call_tool("read")
    assert result.meta["amends/fault"]["tries"] == inner
    assert extract(result).attempt == inner


async def test_three_hops_over_http_mcp_and_a2a():
    """Service ← HTTP ← tool ← MCP ← agent ← A2A: three calls, as many as the outermost client allows."""
    service = Service()
    server = tool_around(lambda: service.get(tries(5)))

    async def work(context, updater):
        await updater.start_work()
        await by_mcp(server, tries(4))

    with agent_server(a2a.guard(Agent(work)), wrap=a2a.guard) as base:
        async with http_client() as http:
            client = a2a.Client(
                card(base), config=config(PATHS[0], httpx_client=http), policy=tries(3), repeatable=True
            )
            with pytest.raises(FaultError) as caught:
                async for _ in client.send_message(request("go")):
                    pass
    assert service.calls == caught.value.fault.attempt == 3


async def test_tries_travel_through_problems():
    """Service ← HTTP ← web application ← HTTP: the problem's `attempt`."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    from amends.bindings.starlette import install

    service = Service()

    async def read(request):
        return await service.get(tries(3))

    app = Starlette(routes=[Route("/", read)])
    install(app)
    with serve(app) as url:
        async with httpx.AsyncClient(transport=AsyncTransport(policy=tries(3), upstream=None)) as client:
            with pytest.raises(FaultError):
                await client.get(url)
    assert service.calls == 3
