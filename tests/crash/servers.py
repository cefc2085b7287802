"""The servers of a run, each a process of its own: `target(folder, name, side, port, store, …)`."""

import asyncio
import os
import sys
from pathlib import Path

from tests.crash.instants import enter, reach
from tests.crash.shop import APPS, WSGI, Shop

LEASE = 1.0
"""Seconds of a lease where a process is stopped; a process is stopped for longer."""
TOKEN = "secret"


def begin(folder, name):
    """Say which process this is, and write its log to a file."""
    log = os.open(Path(folder) / f"log-{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.stdout = sys.stderr = os.fdopen(2, "w", buffering=1)
    enter(folder, name)


def lease_of(how):
    """Return the options of a lease: a short one for a process that is stopped, else that of the library."""
    return {"lease": LEASE} if how == "stop" else {}


def shop(folder, name, kind, ours, port, store, how, dies=True):
    """Serve the shop with a framework."""
    begin(folder, name)
    app = APPS[kind](Shop(folder, dies=dies), ours, {"store": store, **lease_of(how)})
    if kind in WSGI:
        serve_wsgi(app, port)
    else:
        serve_asgi(app, port)


def serve_asgi(app, port):
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=port, log_config=None)


def serve_wsgi(app, port):
    from socketserver import ThreadingMixIn
    from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

    class Server(ThreadingMixIn, WSGIServer):
        daemon_threads = True

    class Quiet(WSGIRequestHandler):
        def log_message(self, *args):
            pass

    make_server("127.0.0.1", port, app, Server, Quiet).serve_forever()


def work_of(folder, ours, api, keyed=False):
    """Return what a tool does: it orders itself, or at the service `api`, with our client or a plain one. `keyed`: it honours keys."""
    if api is None:
        own = Shop(folder)

        async def work():
            await asyncio.to_thread(own.order)

        return work

    async def call():
        import httpx2

        from amends.bindings.httpx import AsyncTransport

        options = {"transport": AsyncTransport(**({"keyed": True} if keyed else {}))} if ours else {}
        async with httpx2.AsyncClient(timeout=2, **options) as client:
            answer = await client.post(f"http://127.0.0.1:{api}/orders", json={"item": "book"})
            answer.raise_for_status()

    return call


def ledger_of(ledger, store, how):
    """Return the ledger of a server, or None."""
    from amends.effects import Effects

    return Effects(store, **lease_of(how)) if ledger else None


def mcp(folder, name, ours, port, store, how, ledger=False, api=None, keyed=False):
    """Serve an MCP server with the tool `order`."""
    begin(folder, name)
    from mcp.server.mcpserver import MCPServer
    from mcp_types import ToolAnnotations

    from amends.bindings.mcp import guard

    server, work = MCPServer("shop"), work_of(folder, ours, api, keyed)

    @server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True))
    async def order(item: str) -> str:
        await work()
        return "ordered"

    if ours:
        options = {"scope": lambda context: "agent"} if ledger else {}
        server = guard(server, effects=ledger_of(ledger, store, how), **options)
    app = server.streamable_http_app()
    serve_asgi(app if api else Shop(folder).asgi(app), port)


def a2a(folder, name, ours, port, store, how, ledger=False, api=None, keyed=False):
    """Serve an A2A agent that orders."""
    begin(folder, name)
    from amends.bindings.a2a import guard
    from tests.bindings import agents

    work = work_of(folder, ours, api, keyed)

    async def act(context, updater):
        await updater.start_work()
        await work()
        await updater.complete()

    agent = agents.Agent(act)
    if ours:
        app = agents.application(guard(agent, effects=ledger_of(ledger, store, how)), wrap=guard)
    else:
        app = agents.application(agent)
    serve_asgi(app if api else Shop(folder).asgi(app), port)


def arcp(folder, name, ours, port, store, how, ledger=False, api=None, keyed=False):
    """Serve an ARCP runtime: ours, or that of the published SDK."""
    begin(folder, name)
    work = work_of(folder, ours, api, keyed)

    async def order(given, ctx):
        await work()
        return "ordered"

    async def serve_ours():
        from amends.arcp import Limits, Runtime

        limits = Limits(node_lease=LEASE) if how == "stop" else Limits()
        runtime = Runtime(store, tokens={TOKEN: "alice"}, limits=limits)
        runtime.register_agent("order", order)
        async with runtime, runtime.listen("127.0.0.1", port):
            await asyncio.Event().wait()

    async def serve_published():
        import structlog
        from arcp._auth.bearer import StaticBearerVerifier
        from arcp._messages.session import RuntimeInfo
        from arcp._transport.websocket import serve_websocket
        from arcp.runtime import ARCPRuntime

        runtime = ARCPRuntime(
            runtime=RuntimeInfo(name="published", version="1"),
            bearer=StaticBearerVerifier({TOKEN: "alice"}),
            logger=structlog.get_logger(),
        )
        runtime.register_agent("order", order)
        await serve_websocket(runtime.accept, host="127.0.0.1", port=port)
        await asyncio.Event().wait()

    asyncio.run(serve_ours() if ours else serve_published())


def orchestrator(folder, store, how, worker):
    """Return the orchestrator of a worker, or of a process that submits."""
    from amends.tasks import Agent, Orchestrator

    agent, own = Agent("shop"), Shop(folder)

    @agent.capability("order")
    async def order(payload, ctx):
        await asyncio.to_thread(own.order)
        reach(folder, "after the record")
        return "ordered"

    return Orchestrator([agent], store=store, worker=worker, **lease_of(how))


def worker(folder, name, ours, port, store, how):
    """Work on tasks."""
    begin(folder, name)

    async def work():
        async with orchestrator(folder, store, how, True):
            # The port says that the worker is ready.
            await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", port)
            await asyncio.Event().wait()

    asyncio.run(work())


def gateway(folder, name, port, upstream):
    """Run the gateway before the shop."""
    begin(folder, name)

    async def serve():
        from amends.gateway import Gateway
        from amends.gateway.config import GatewayConfig, UpstreamConfig
        from amends.gateway.server import GatewayServer, listening_socket

        shop = UpstreamConfig(
            name="shop", kind="http", url=f"http://127.0.0.1:{upstream}", timeout=2, prefix=""
        )
        config = GatewayConfig(upstreams=(shop,), listen=f"127.0.0.1:{port}")
        bound = listening_socket(config.listen)
        await GatewayServer(Gateway(config)).serve(sockets=[bound])

    asyncio.run(serve())
