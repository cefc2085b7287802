"""
Tests with buyer, orchestrator and seller: real servers on the loopback, MCP and A2A mixed, plain SDKs at both ends.
"""

import asyncio
import json

import mcp
import pytest
from a2a.types.a2a_pb2 import Part
from google.protobuf.json_format import MessageToDict
from mcp.server.mcpserver import Context, MCPServer

from amends import FaultError, extract
from amends.bindings import a2a
from amends.bindings.mcp import Client, guard
from amends.chain import HOPS, Hop, gather, relay
from amends.errors.adcp import BudgetTooLowError
from amends.recovery import NONE
from tests.bindings.agents import PATHS, Agent, agent_server, card, config, http_client, plain_client, request
from tests.bindings.apps.mcp_shop import SECRET
from tests.http.serving import serve

BUDGET = {
    "code": "BUDGET_TOO_LOW",
    "message": "Raise it",
    "recovery": "correctable",
    "field": "budget",
    "suggestion": "Ask for more",
    "details": {"minimum_budget": 500, "currency": "EUR"},
}
ONCE = PATHS[0]


def sell(kind):
    """Handle an order as a seller: raise, or return "sold"."""
    if kind == "budget":
        raise BudgetTooLowError(
            "Raise it", field="budget", suggestions=["Ask for more"], details=BUDGET["details"]
        )
    if kind == "crash":
        raise ValueError(f"no route to {SECRET}")
    return "sold"


def mcp_seller(seen):
    server = MCPServer("seller")

    @server.tool()
    async def order(kind: str, ctx: Context) -> str:
        seen.append(dict(ctx.request_context.meta or {}))
        return sell(kind)

    return guard(server)


def a2a_seller(seen):
    async def work(context, updater):
        seen.append(dict(context.metadata or {}))
        await updater.start_work()
        sold = sell(context.get_user_input())
        await updater.add_artifact([Part(text=sold)], artifact_id="result")
        await updater.complete()

    return a2a.guard(Agent(work))


def mcp_orchestrator(order):
    """Return an orchestrator that buyers call by MCP; `order(kind, hop)` calls the seller."""
    server = MCPServer("orchestrator")

    @server.tool()
    async def buy(kind: str, ctx: Context) -> str:
        return await order(kind, Hop.of(ctx.request_context.meta))

    return guard(server)


async def by_a2a(base, kind, hop):
    async with http_client() as http:
        client = a2a.Client(card(base), config=config(ONCE, httpx_client=http), policy=NONE)
        asked = request(kind)
        asked.metadata.update(hop.onward())
        async for event in client.send_message(asked):
            found = MessageToDict(event)
        return json.dumps(found)


async def by_mcp(url, kind, hop):
    async with Client(url, policy=NONE) as client:
        return (await client.call_tool("order", {"kind": kind}, meta=hop.onward())).content[0].text


async def test_mcp_then_a2a():
    """Buyer → MCP → orchestrator → A2A → seller: the seller's error arrives unchanged."""
    seen = []
    with agent_server(a2a_seller(seen), wrap=a2a.guard) as seller:
        orchestrator = mcp_orchestrator(lambda kind, hop: by_a2a(seller, kind, hop))
        with serve(orchestrator.streamable_http_app(), lifespan="on") as url:
            async with mcp.Client(f"{url}/mcp") as buyer:
                sold = await buyer.call_tool("buy", {"kind": "fine"})
                assert not sold.is_error
                assert "sold" in sold.content[0].text
                refused = await buyer.call_tool("buy", {"kind": "budget"})
                error = refused.structured_content["adcp_error"]
                assert error == {**BUDGET, "trace_id": error["trace_id"]}
                crashed = await buyer.call_tool("buy", {"kind": "crash"})
                assert extract(crashed).code == "SERVICE_UNAVAILABLE"
                assert SECRET not in crashed.model_dump_json()
    assert [Hop.of(meta).count for meta in seen] == [1, 1, 1]


async def test_a2a_then_mcp():
    """Buyer → A2A → orchestrator → MCP → seller; a crash has the same trace id at both ends."""
    seen = []

    with serve(mcp_seller(seen).streamable_http_app(), lifespan="on") as seller:

        async def work(context, updater):
            await updater.start_work()
            sold = await by_mcp(
                f"{seller}/mcp", context.get_user_input(), Hop.of(dict(context.metadata or {}))
            )
            await updater.add_artifact([Part(text=sold)], artifact_id="result")
            await updater.complete()

        with agent_server(a2a.guard(Agent(work)), wrap=a2a.guard) as base:
            async with plain_client(base, ONCE) as buyer:

                async def bought(kind):
                    async for event in buyer.send_message(request(kind)):
                        found = event
                    return MessageToDict(found)

                assert "sold" in json.dumps(await bought("fine"))
                fault = extract(await bought("budget"), "a2a")
                assert (fault.code, fault.details, fault.suggestions) == (
                    "BUDGET_TOO_LOW",
                    BUDGET["details"],
                    ("Ask for more",),
                )
                crashed = await bought("crash")
                assert extract(crashed, "a2a").code == "SERVICE_UNAVAILABLE"
                assert SECRET not in json.dumps(crashed)
                assert len(extract(crashed, "a2a").extensions["trace_id"]) == 32
    assert [meta[HOPS] for meta in seen] == [1, 1, 1]


async def test_an_unreachable_seller_and_several_sellers():
    """An unreachable seller is unavailable, not an unknown tool; two failures arrive as one with both parts."""
    seen = []
    with serve(mcp_seller(seen).streamable_http_app(), lifespan="on") as alive:
        pass
    with serve(mcp_seller(seen).streamable_http_app(), lifespan="on") as seller:

        async def order(kind, hop):
            if kind == "dead":
                return await by_mcp(f"{alive}/mcp", "fine", hop)
            both = await asyncio.gather(
                by_mcp(f"{seller}/mcp", "budget", hop),
                by_mcp(f"{alive}/mcp", "fine", hop),
                return_exceptions=True,
            )
            raise gather(both)

        with serve(mcp_orchestrator(order).streamable_http_app(), lifespan="on") as url:
            async with Client(f"{url}/mcp", policy=NONE) as buyer:
                with pytest.raises(FaultError) as caught:
                    await buyer.call_tool("buy", {"kind": "dead"})
                assert (caught.value.code, caught.value.fault.recovery.value) == (
                    "SERVICE_UNAVAILABLE",
                    "transient",
                )
                with pytest.raises(FaultError) as caught:
                    await buyer.call_tool("buy", {"kind": "several"})
                assert [part.code for part in caught.value.fault.errors] == [
                    "BUDGET_TOO_LOW",
                    "SERVICE_UNAVAILABLE",
                ]
                assert caught.value.fault.errors[0].details == BUDGET["details"]


async def test_a_loop_of_agents_ends():
    """It ends after MAX_HOPS, and the caller's error is terminal."""
    calls = []

    async def order(kind, hop):
        calls.append(hop.count)
        async with Client(orchestrator, policy=NONE) as client:
            try:
                return (await client.call_tool("buy", {"kind": kind}, meta=hop.onward())).content[0].text
            except FaultError as error:
                raise relay(error) from error

    orchestrator = mcp_orchestrator(order)
    async with mcp.Client(orchestrator) as buyer:
        found = extract(await buyer.call_tool("buy", {"kind": "round"}))
    assert (found.code, found.recovery.value) == ("SERVICE_UNAVAILABLE", "terminal")
    assert calls == list(range(9))
