"""
Calls at the last service if every call fails: chains of 1, 2 and 3 hops over each transport, every hop with 3 attempts.

Without counting, a chain of n hops makes 3 ** n calls. The bound is 3 + hops - 1 (mappings M8). All servers run in this
process: web applications behind ASGI transports, MCP servers and orchestrators in memory. The clients have no Upstream, which would hold
calls back as well.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from amends import FaultError, Policy
from amends.core.backoff import Backoff
from amends.recovery import configure

__all__ = ["ATTEMPTS", "HOPS", "TRANSPORTS", "bound", "calls_at_the_last_service", "main", "table"]

ATTEMPTS = 3
HOPS = (1, 2, 3)
Call = Callable[[], Awaitable[Any]]

_POLICY = Policy(attempts=ATTEMPTS, backoff=Backoff(first=0.001), uncertain=ATTEMPTS)


def bound(hops: int) -> int:
    """Return the most calls that the last service may get."""
    return ATTEMPTS + hops - 1


class Service:
    """A web application that counts its calls and answers every one with 503."""

    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.calls += 1
        await send({"type": "http.response.start", "status": 503, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def _get(app: Any) -> Call:
    """Return a call of a web application with our HTTP client."""
    import httpx

    from amends.bindings.httpx import AsyncTransport

    async def call() -> Any:
        transport: Any = AsyncTransport(httpx.ASGITransport(app), policy=_POLICY, upstream=None)
        async with httpx.AsyncClient(transport=transport) as client:
            return (await client.get("http://service/")).text

    return call


def _by_http(below: Call) -> Call:
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    from amends.bindings.starlette import install

    async def read(request: Any) -> Any:
        return PlainTextResponse(str(await below()))

    app = Starlette(routes=[Route("/", read)])
    install(app)
    return _get(app)


def _by_mcp(below: Call) -> Call:
    from mcp.server.mcpserver import MCPServer
    from mcp_types import ToolAnnotations

    from amends.bindings.mcp import Client, guard

    server = MCPServer("hop")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def read() -> str:
        return str(await below())

    guard(server)

    async def call() -> Any:
        async with Client(server, policy=_POLICY, upstream=None) as client:
            return (await client.call_tool("read")).content

    return call


def _by_a2a(below: Call) -> Call:
    import httpx
    from a2a.client import ClientConfig
    from a2a.server.agent_execution import AgentExecutor
    from a2a.server.request_handlers import DefaultRequestHandler
    from a2a.server.routes import create_jsonrpc_routes
    from a2a.server.tasks import InMemoryTaskStore
    from a2a.types.a2a_pb2 import (
        AgentCapabilities,
        AgentCard,
        AgentInterface,
        Message,
        Part,
        Role,
        SendMessageRequest,
    )
    from starlette.applications import Starlette

    from amends.bindings.a2a import Client, guard

    class Executor(AgentExecutor):
        async def execute(self, context: Any, event_queue: Any) -> None:
            await below()

        async def cancel(self, context: Any, event_queue: Any) -> None:
            raise NotImplementedError

    card = AgentCard(
        name="hop",
        version="1",
        capabilities=AgentCapabilities(streaming=False),
        supported_interfaces=[
            AgentInterface(url="http://hop/", protocol_binding="JSONRPC", protocol_version="1.0")
        ],
    )
    handler = guard(DefaultRequestHandler(guard(Executor()), InMemoryTaskStore(), card))
    app = Starlette(routes=create_jsonrpc_routes(handler, "/"))
    request = SendMessageRequest(message=Message(role=Role.ROLE_USER, parts=[Part(text="go")]))

    async def call() -> Any:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as http:
            config = ClientConfig(httpx_client=http, streaming=False)
            client = Client(card, config=config, policy=_POLICY, repeatable=True, upstream=None)
            return [event async for event in client.send_message(request)]

    return call


def _by_task(below: Call) -> Call:
    from amends.tasks import Agent, Orchestrator

    agent = Agent("hop", policy=_POLICY)

    @agent.capability(read_only=True)
    async def read() -> str:
        return str(await below())

    async def call() -> Any:
        async with Orchestrator([agent]) as orchestrator:
            response = await orchestrator.run("read")
        if response.error is not None:
            raise FaultError.from_fault(response.error)
        return response.result

    return call


def _by_arcp(below: Call) -> Call:
    from amends.arcp import Runtime, connect

    async def read(input: Any, ctx: Any) -> Any:
        return str(await below())

    async def call() -> Any:
        runtime = Runtime(tokens={"secret": "hop"})
        runtime.register_agent("read", read)
        async with runtime, connect(runtime, token="secret") as client:
            return await client.submit_with_recovery("read", policy=_POLICY)

    return call


TRANSPORTS: dict[str, Callable[[Call], Call]] = {
    "HTTP": _by_http,
    "MCP": _by_mcp,
    "A2A": _by_a2a,
    "ARCP": _by_arcp,
    "tasks": _by_task,
}


async def calls_at_the_last_service(transport: str, hops: int) -> int:
    """Return the calls that a failing service gets through a chain of that many clients; the first hop is HTTP."""
    service = Service()
    call = _get(service)
    for _ in range(hops - 1):
        call = TRANSPORTS[transport](call)
    try:
        await call()
    except FaultError:
        return service.calls
    raise AssertionError("the chain succeeded, though its last service fails")


def table() -> list[tuple[str, list[int]]]:
    """Return the calls for each transport, by the number of hops."""
    logging.disable(logging.CRITICAL)
    # The quota of repeats that all operations of a process share would hold calls back as well.
    configure(quota=None)
    try:
        return [
            (name, [asyncio.run(calls_at_the_last_service(name, hops)) for hops in HOPS])
            for name in TRANSPORTS
        ]
    finally:
        configure(quota=True)
        logging.disable(logging.NOTSET)


def main() -> list[str]:
    """Return the lines of the section in docs/benchmarks.md."""
    rows = [
        *table(),
        ("the bound", [bound(hops) for hops in HOPS]),
        ("without counting", [ATTEMPTS**hops for hops in HOPS]),
    ]
    return [
        f"A failing HTTP service, and above it hops of one transport. Every client makes up to {ATTEMPTS} attempts.",
        "",
        "| hops above the HTTP client | 1 hop | 2 hops | 3 hops |",
        "|---|---|---|---|",
        *(f"| {name} | {' | '.join(str(count) for count in counts)} |" for name, counts in rows),
    ]


if __name__ == "__main__":
    print("\n".join(main()))
