"""One failure through an HTTP client, an HTTP server, an MCP tool and a task has one trace id in all logs."""

import asyncio
import contextlib
import logging
import re
import socket

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI, Request
from mcp.server.mcpserver import MCPServer

from amends import FaultError, Policy
from amends.bindings.fastapi import install
from amends.bindings.httpx import AsyncTransport
from amends.bindings.mcp import Client, guard
from amends.tasks import Agent, Orchestrator

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
