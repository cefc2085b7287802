"""One failure through a client, an HTTP server or an A2A agent, an MCP tool and a task has one trace id in all logs."""

import asyncio
import contextlib
import logging
import re
import socket

import httpx2
import pytest
import uvicorn
from a2a.client.client import ClientCallContext
from fastapi import FastAPI, Request
from mcp.server.mcpserver import MCPServer

from amends import FaultError, Policy
from amends.bindings import a2a
from amends.bindings.fastapi import install
from amends.bindings.httpx import AsyncTransport
from amends.bindings.mcp import Client, guard
from amends.serving.tracing import handling
from amends.tasks import Agent, Orchestrator
from tests.bindings import agents

ONCE = Policy(attempts=1)


@contextlib.asynccontextmanager
async def serving(app):
    """Serve an application on loopback, and yield its address."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        running = asyncio.create_task(server.serve([bound]))
        async with asyncio.timeout(60):
            while not server.started:
                await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running


def failing_agent():
    """Return an agent whose capability has a bug."""
    agent = Agent("trains")

    @agent.capability("book")
    async def book(payload, ctx):
        raise RuntimeError

    return agent


def tools_over(orchestrator):
    """Return an MCP server whose tool runs a task."""
    server = guard(MCPServer("seats"))

    @server.tool()
    async def reserve(train: int) -> str:
        handle = await orchestrator.submit("book", {"train": train})
        response = await handle.wait(timeout=60)
        raise FaultError.from_fault(response.error)

    return server


def service_over(tools):
    """Return an HTTP service that calls the tool."""
    app = FastAPI()
    install(app)

    @app.post("/orders")
    async def order() -> None:
        async with Client(tools, policy=ONCE) as client:
            await client.call_tool("reserve", {"train": 7})

    return app


async def test_one_trace_id_through_client_server_tool_and_task(caplog):
    """Without OpenTelemetry, too: every line of the five loggers names the trace that the client gets."""
    caplog.set_level(logging.INFO, "amends")
    async with Orchestrator([failing_agent()]) as orchestrator, contextlib.AsyncExitStack() as stack:
        tools = await stack.enter_async_context(serving(tools_over(orchestrator).streamable_http_app()))
        address = await stack.enter_async_context(serving(service_over(f"{tools}/mcp")))
        client = httpx2.AsyncClient(transport=AsyncTransport(policy=ONCE), base_url=address)
        with pytest.raises(FaultError) as caught:
            await (await stack.enter_async_context(client)).post("/orders", json={})
    lines = [each for each in caplog.records if each.name.startswith("amends")]
    assert {each.name for each in lines} == {"amends.tasks", "amends.mcp", "amends.http", "amends.recovery"}
    for each in lines:
        found = re.findall(r"[0-9a-f]{32}", each.getMessage())
        assert found == [caught.value.fault.trace_id], each.getMessage()


async def test_the_trace_of_a_request_ends_with_it():
    """A client in the context of the application, as in tests, begins a new trace for each of its requests."""
    app, seen = FastAPI(), []
    install(app)

    @app.get("/")
    async def note(request: Request) -> None:
        seen.append(request.headers["traceparent"].split("-")[1])

    async with httpx2.AsyncClient(
        transport=AsyncTransport(httpx2.ASGITransport(app)), base_url="http://shop.example"
    ) as client:
        await client.get("/")
        await client.get("/")
    assert len(set(seen)) == 2


@pytest.mark.parametrize("path", agents.PATHS, ids=str)
async def test_one_trace_id_through_an_a2a_client_an_agent_and_an_mcp_tool(path, caplog):
    """The client begins a trace, the agent's own calls continue it, and every line names it."""
    caplog.set_level(logging.INFO, "amends")

    async def reserve(context, updater):
        async with Client(tools, policy=ONCE) as client:
            await client.call_tool("reserve", {"train": 7})

    app = agents.application(a2a.guard(agents.Agent(reserve)))
    async with Orchestrator([failing_agent()]) as orchestrator, contextlib.AsyncExitStack() as stack:
        served = await stack.enter_async_context(serving(tools_over(orchestrator).streamable_http_app()))
        tools = f"{served}/mcp"
        base = await stack.enter_async_context(serving(app))
        http = await stack.enter_async_context(agents.http_client())
        settings = agents.config(path, httpx_client=http)
        client = await stack.enter_async_context(
            a2a.Client(agents.card(base, path), config=settings, policy=ONCE)
        )
        with pytest.raises(FaultError) as caught:
            await agents.events_of(client)
    lines = [each for each in caplog.records if each.name.startswith("amends")]
    assert {each.name for each in lines} == {"amends.tasks", "amends.mcp", "amends.a2a", "amends.recovery"}
    # The fault is the tool's, as it was received; the notes of the client's error name the trace.
    trace = re.findall(r"trace id ([0-9a-f]{32})", "".join(caught.value.__notes__))
    assert len(trace) == 1
    for each in lines:
        assert re.findall(r"[0-9a-f]{32}", each.getMessage()) == trace, each.getMessage()


async def test_an_a2a_client_continues_the_trace_of_the_request_it_serves():
    """Reading calls too; a `traceparent` of the caller's own is sent as it is, and its context is not changed."""
    seen = []

    async def note(context, updater):
        seen.append(context.call_context.state["headers"]["traceparent"].split("-")[1])
        await agents.works(context, updater)

    path = agents.PATHS[0]
    app, mine = agents.application(a2a.guard(agents.Agent(note))), "00-" + "b" * 32 + "-" + "1" * 16 + "-01"
    context = ClientCallContext(service_parameters={"Traceparent": mine})
    async with contextlib.AsyncExitStack() as stack:
        base = await stack.enter_async_context(serving(app))
        http = await stack.enter_async_context(agents.http_client())
        client = await stack.enter_async_context(
            a2a.Client(agents.card(base, path), config=agents.config(path, httpx_client=http))
        )
        with handling("00-" + "a" * 32 + "-" + "1" * 16 + "-01"):
            await agents.events_of(client)
            async for _ in client.send_message(agents.request(), context=context):
                pass
        async for _ in client.send_message(agents.request(), context=(plain := ClientCallContext())):
            pass
    assert seen[:2] == ["a" * 32, "b" * 32]
    assert len({*seen}) == 3
    assert context.service_parameters == {"Traceparent": mine}
    assert plain.service_parameters is None
