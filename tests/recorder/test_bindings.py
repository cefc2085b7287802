"""Every binding reports its failures: HTTP both sides, command line, `amends run`, MCP, A2A, ARCP, tasks."""

import asyncio
import logging

import httpx2
import pytest
from mcp.server import MCPServer

import amends
from amends.arcp.errors import AgentNotAvailableError
from amends.bindings.argparse import main as argparse_main
from amends.bindings.asgi import Problems
from amends.bindings.httpx import AsyncTransport
from amends.bindings.mcp import Client, guard
from amends.errors import NotFoundError, RateLimitedError
from amends.serving.reporting import report
from amends.serving.server_errors import classify_safely

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
ONCE = amends.Policy(attempts=1)


async def http():
    async def app(scope, receive, send):
        raise NotFoundError("No such order")

    transport = AsyncTransport(httpx2.ASGITransport(app=Problems(app)), policy=ONCE)
    async with httpx2.AsyncClient(transport=transport, base_url="http://shop.test") as client:
        with pytest.raises(amends.FaultError):
            await client.get("/orders/7?token=secret", headers={"traceparent": PARENT})


async def mcp():
    server = MCPServer("shop")

    @server.tool()
    def reserve() -> str:
        raise RateLimitedError("Too many", retry_after=5)

    guard(server)
    async with Client(server, policy=ONCE) as client:
        with pytest.raises(amends.FaultError):
            await client.call_tool("reserve", {})


async def a2a():
    failure = classify_safely(NotFoundError("No such task"), log=logging.getLogger("amends.a2a"))
    report(failure, log=logging.getLogger("amends.a2a"), what="message/send", traceparent=PARENT)


async def command():
    import argparse

    def work(args):
        raise NotFoundError("No such file")

    with pytest.raises(SystemExit) as ended:
        argparse_main(argparse.ArgumentParser(), work, argv=[])
    assert ended.value.code


async def run():
    from amends.process import arun

    with pytest.raises(amends.FaultError):
        await arun(["false"])


async def arcp():
    from amends.arcp import Runtime, connect

    async def agent(input, ctx):
        raise AgentNotAvailableError("No such seat")

    runtime = Runtime(tokens={"t": "ada"})
    runtime.register_agent("seats", agent)
    async with runtime, connect(runtime, token="t") as client:
        handle = await client.submit("seats", {})
        with pytest.raises(amends.FaultError):
            await handle.done


async def tasks():
    from amends.tasks import Agent, Orchestrator

    agent = Agent("cook")

    @agent.capability("soup")
    async def soup(input, ctx):
        raise NotFoundError("No pot")

    async with Orchestrator(agents=[agent]) as orchestrator:
        handle = await orchestrator.submit({"id": "7", "type": "soup", "payload": {}})
        await handle.wait()


CASES = {
    http: {("http server", "sent", "NOT_FOUND"), ("http client", "gave-up", "NOT_FOUND")},
    mcp: {("mcp server", "sent", "RATE_LIMITED"), ("mcp client", "gave-up", "RATE_LIMITED")},
    a2a: {("a2a server", "sent", "REFERENCE_NOT_FOUND")},
    command: {("command line", "sent", "NOT_FOUND")},
    run: {("run", "gave-up", "INTERNAL_ERROR")},
    arcp: {("arcp runtime", "failed", "AGENT_NOT_AVAILABLE")},
    tasks: {("tasks", "failed", "INVALID_FIELD_VALUE")},
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_binding_records_its_failures(recorder, case, capsys):
    """Where, outcome and code are recorded, with a trace id, and no query."""
    asyncio.run(case())
    assert recorder.flush()
    events = recorder.recent()
    found = {(event.where, event.outcome, event.fault.code) for event in events}
    assert CASES[case] <= found, events
    assert all(event.trace_id for event in events)
    assert "secret" not in repr(events)
    if case is http:
        assert {event.trace_id for event in events} == {TRACE}
