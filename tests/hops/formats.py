"""
One hop in each format: a server around a handler, and a client that calls it; each with amends or without.

A server runs in a context of its own, as in another process: it shares no context variable with its client. A client
without amends raises `PlainError` with the document that it received.
"""

import argparse
import asyncio
import contextlib
import contextvars
import json
import os
import sys
import threading

import aiohttp
import fastapi
import fastmcp
import flask
import httpx
import mcp
import requests
from a2a.client import ClientFactory
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types.a2a_pb2 import Message, Part, Role
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict
from mcp.server.mcpserver import MCPServer
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from werkzeug.serving import make_server

from amends import FaultError, arcp
from amends.arcp.errors import ARCPError
from amends.bindings import a2a
from amends.bindings import fastmcp as fast
from amends.bindings.aiohttp import recovering
from amends.bindings.argparse import main
from amends.bindings.fastapi import install as install_fastapi
from amends.bindings.flask import install as install_flask
from amends.bindings.httpx import AsyncTransport
from amends.bindings.mcp import Client, guard
from amends.bindings.requests import Adapter
from amends.bindings.starlette import install
from amends.errors.task import InternalError
from amends.process import arun
from amends.tasks import Agent, Orchestrator
from tests.arcp.raw import TOKENS, connected
from tests.bindings import agents
from tests.gateway import peers
from tests.hops import zygote
from tests.hops.failures import POLICY
from tests.test_one_trace import serving

WITHIN = 60
"""Seconds that one call may take, on the real clock."""


class PlainError(Exception):
    """What a client without amends raises; `document` is what it received."""

    def __init__(self, document):
        super().__init__("the call failed")
        self.document = document


async def apart(work, *, context=None):
    """Await a coroutine in an empty context, or in the given one."""
    return await asyncio.create_task(work, context=context or contextvars.Context())


_TRACER = TracerProvider().get_tracer("shop")


def in_own_trace(handler):
    """Return a handler that runs in an OpenTelemetry span without a parent, as below a service that hands no trace on."""

    async def handle():
        with _TRACER.start_as_current_span("handle", context=Context()):
            await handler()

    return handle


def isolated(app):
    """Return an ASGI application that handles each request in a context of its own."""

    async def call(scope, receive, send):
        await apart(app(scope, receive, send))

    return call


class Hop:
    """One server with a client for it. `handler` is an async function; `amends` says whether the server has amends."""

    def __init__(self, handler, *, amends, own, rest=""):
        self.handler, self.amends, self.own, self.rest = handler, amends, own, rest

    @contextlib.asynccontextmanager
    async def serve(self):
        """Run the server while the block runs."""
        yield

    async def call(self, amends):
        """Call the server once, with a client with amends or without."""
        raise NotImplementedError


class Http(Hop):
    """A web application, and httpx."""

    def app(self):
        async def act(request):
            await self.handler()
            return JSONResponse({"done": True})

        app = Starlette(routes=[Route("/act", act, methods=["POST"])])
        if self.amends:
            install(app)
        return app

    def transport(self):
        return httpx.ASGITransport(isolated(self.app()), raise_app_exceptions=False)

    base = "http://shop.example"

    async def call(self, amends):
        inner = self.transport()
        if amends:
            inner = AsyncTransport(inner, policy=POLICY, own=self.own)
        async with httpx.AsyncClient(transport=inner, base_url=self.base, timeout=WITHIN) as client:
            answer = await client.post("/act", json={})
        if answer.is_error:
            body = _json(answer.text)
            raise PlainError({"status": answer.status_code, "headers": dict(answer.headers), "body": body})


def _json(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


class Gateway(Http):
    """The same application behind the gateway, on real ports."""

    @contextlib.asynccontextmanager
    async def serve(self):
        async with behind_gateway(self.app(), own=self.own) as url:
            self.base = url
            yield

    def transport(self):
        return httpx.AsyncHTTPTransport(verify=agents.CONTEXT)


@contextlib.asynccontextmanager
async def entered(manager):
    """Enter a context manager in an empty context, so that the tasks that it starts share nothing with the caller."""
    value = await apart(manager.__aenter__())
    try:
        yield value
    finally:
        await apart(manager.__aexit__(None, None, None))


@contextlib.asynccontextmanager
async def behind_gateway(app, *, own, path="", **options):
    """Serve an application on a port and the gateway before it. Yield the gateway's address."""
    async with entered(serving(app)) as url:
        upstream = peers.UpstreamConfig(name="shop", url=url + path, policy=POLICY, own=own, **options)
        async with entered(peers.serving(upstream)) as gateway:
            yield gateway.url


class Mcp(Hop):
    """A tool of an MCP server over streams."""

    def server(self):
        server = MCPServer("shop")

        @server.tool()
        async def act() -> str:
            await self.handler()
            return "done"

        return guard(server) if self.amends else server

    async def call(self, amends):
        caller = contextvars.copy_context()

        async def session():
            if amends:
                async with Client(self.server(), policy=POLICY, own=self.own) as client:
                    await apart(client.call_tool("act"), context=caller)
                return
            async with mcp.Client(self.server()) as client:
                result = await apart(client.call_tool("act"), context=caller)
            if result.is_error:
                raise PlainError(result.model_dump(mode="json", by_alias=True, exclude_none=True))

        await apart(session())


class McpHttp(Mcp):
    """A tool of an MCP server over HTTP, on a real port."""

    between = False
    """Whether the gateway is before it."""

    def app(self):
        return self.server().streamable_http_app()

    @contextlib.asynccontextmanager
    async def serve(self):
        if self.between:
            async with behind_gateway(self.app(), own=self.own, path="/mcp", kind="mcp") as url:
                self.url = url
                yield
        else:
            async with entered(serving(self.app())) as url:
                self.url = f"{url}/mcp"
                yield

    async def call(self, amends):
        if amends:
            async with Client(self.url, policy=POLICY, own=self.own) as client:
                await client.call_tool("act")
            return
        async with mcp.Client(self.url) as client:
            result = await client.call_tool("act")
        if result.is_error:
            raise PlainError(result.model_dump(mode="json", by_alias=True, exclude_none=True))


class McpGateway(McpHttp):
    """The same behind the gateway."""

    between = True


class FastMcp(Hop):
    """A tool of a FastMCP server, and FastMCP's client."""

    def server(self):
        server = fastmcp.FastMCP("shop")

        @server.tool()
        async def act() -> str:
            await self.handler()
            return "done"

        return fast.guard(server) if self.amends else server

    async def call(self, amends):
        caller = contextvars.copy_context()

        async def session():
            if amends:
                async with fast.Client(self.server(), policy=POLICY, own=self.own) as client:
                    await apart(client.call_tool("act"), context=caller)
                return
            async with fastmcp.Client(self.server()) as client:
                result = await apart(client.call_tool_mcp("act", {}), context=caller)
            if result.is_error:
                raise PlainError(result.model_dump(mode="json", by_alias=True, exclude_none=True))

        await apart(session())


class A2a(Hop):
    """An agent of A2A, whose task fails."""

    path = agents.PATHS[0]

    def app(self):
        async def work(context, updater):
            await updater.start_work()
            await self.handler()
            await updater.complete()

        agent = agents.Agent(work)
        if self.amends:
            return agents.application(a2a.guard(agent), wrap=a2a.guard)
        return agents.application(agent)

    base = "http://agent.example"

    def transport(self):
        return httpx.ASGITransport(isolated(self.app()), raise_app_exceptions=False)

    async def call(self, amends):
        async with httpx.AsyncClient(transport=self.transport(), timeout=WITHIN) as http:
            config = agents.config(self.path, httpx_client=http)
            card = agents.card(self.base, self.path)
            if amends:
                client = a2a.Client(card, config=config, policy=POLICY, own=self.own)
                async for _ in client.send_message(agents.request()):
                    pass
                return
            plain, last = ClientFactory(config).create(card), None
            try:
                async for event in plain.send_message(agents.request()):
                    last = MessageToDict(event)
            except A2AError as error:
                raise PlainError({"jsonrpc": "2.0", "error": {"code": -32603, "data": error.data}}) from None
            if "FAILED" in json.dumps(last):
                raise PlainError(last)


class JsonRpc(A2a):
    """A request handler of A2A that fails without a task: the answer is a JSON-RPC error."""

    def app(self):
        hop = self

        class Handler(DefaultRequestHandler):
            async def on_message_send(self, params, context):
                await hop.handler()
                return Message(role=Role.ROLE_AGENT, message_id="1", parts=[Part(text="done")])

        handler = Handler(agents.Agent(agents.works), InMemoryTaskStore(), agents.card())
        if self.amends:
            handler = a2a.guard(handler)
        return Starlette(routes=create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True))


class A2aStream(A2a):
    """The same with a stream of events."""

    path = agents.Path("JSONRPC", "1.0", True)


class A2aOld(A2a):
    """The same in version 0.3 of the protocol, over JSON-RPC."""

    path = agents.Path("JSONRPC", "0.3", False)


class A2aOldStream(A2a):
    """The same in version 0.3 of the protocol, over JSON-RPC, with a stream of events."""

    path = agents.Path("JSONRPC", "0.3", True)


class A2aRest(A2a):
    """The same over REST."""

    path = agents.Path("HTTP+JSON", "1.0", False)


class A2aGateway(A2a):
    """An agent of A2A behind the gateway."""

    @contextlib.asynccontextmanager
    async def serve(self):
        async with behind_gateway(self.app(), own=self.own, path="", kind="a2a") as url:
            self.base = url
            yield

    def transport(self):
        return httpx.AsyncHTTPTransport(verify=agents.CONTEXT)


class Flask(Hop):
    """A web application of Flask in threads, and requests."""

    def app(self):
        app = flask.Flask("shop")

        @app.post("/act")
        def act():
            asyncio.run(self.handler())
            return {"done": True}

        if self.amends:
            install_flask(app)
        return app

    @contextlib.asynccontextmanager
    async def serve(self):
        server = make_server("127.0.0.1", 0, self.app(), threaded=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.port}/act"
        try:
            yield
        finally:
            await asyncio.to_thread(server.shutdown)
            server.server_close()

    async def call(self, amends):
        def send():
            with requests.Session() as session:
                if amends:
                    session.mount("http://", Adapter(policy=POLICY, own=self.own))
                return session.post(self.url, json={}, timeout=WITHIN)

        answer = await asyncio.to_thread(send)
        if answer.status_code >= 400:
            body = _json(answer.text)
            raise PlainError({"status": answer.status_code, "headers": dict(answer.headers), "body": body})


class Aiohttp(Http):
    """A web application of FastAPI on a real port, and aiohttp's client."""

    def app(self):
        app = fastapi.FastAPI()

        @app.post("/act")
        async def act():
            await self.handler()
            return {"done": True}

        if self.amends:
            install_fastapi(app)
        return app

    @contextlib.asynccontextmanager
    async def serve(self):
        async with entered(serving(self.app())) as url:
            self.base = url
            yield

    async def call(self, amends):
        middlewares = [recovering(policy=POLICY, own=self.own)] if amends else []
        async with (
            aiohttp.ClientSession(middlewares=middlewares) as session,
            session.post(f"{self.base}/act", json={}) as answer,
        ):
            if answer.status < 400:
                return
            body = _json(await answer.text())
        raise PlainError({"status": answer.status, "headers": dict(answer.headers), "body": body})


class JsonRpcGateway(JsonRpc, A2aGateway):
    """A request handler of A2A that fails without a task, behind the gateway."""


class Task(Hop):
    """A task of an orchestrator."""

    @contextlib.asynccontextmanager
    async def serve(self):
        agent = Agent("shop")

        @agent.capability("act")
        async def act(payload, ctx):
            try:
                await self.handler()
            except Exception:
                if self.amends:
                    raise
                # As a program without amends answers: nothing but that it failed.
                raise InternalError("The step failed") from None

        orchestrator = Orchestrator([agent], policy=POLICY)
        await apart(orchestrator.__aenter__())
        self.orchestrator = orchestrator
        try:
            yield
        finally:
            await apart(orchestrator.__aexit__(None, None, None))

    async def call(self, amends):
        handle = await self.orchestrator.submit("act", {})
        if amends:
            await handle.result(timeout=WITHIN)
            return
        response = await handle.wait(timeout=WITHIN)
        if response.error is not None:
            raise PlainError(response.document())


class Arcp(Hop):
    """A job of an ARCP runtime."""

    @contextlib.asynccontextmanager
    async def serve(self):
        runtime = arcp.Runtime(tokens=TOKENS)

        async def act(input, ctx):
            try:
                await self.handler()
            except Exception:
                if self.amends:
                    raise
                raise ARCPError("INTERNAL_ERROR", "The job failed", retryable=True) from None

        runtime.register_agent("act", act)
        await apart(runtime.__aenter__())
        self.runtime = runtime
        try:
            yield
        finally:
            await apart(runtime.__aexit__(None, None, None))

    async def call(self, amends):
        caller = contextvars.copy_context()

        async def session():
            if amends:
                async with arcp.connect(self.runtime, token="alice-token", own=self.own) as client:
                    work = client.submit_with_recovery("act", {}, policy=POLICY)
                    await apart(work, context=caller)
                return
            raw = await connected(self.runtime)
            try:
                accepted = await raw.submit("act", {})
                ended = await raw.end(accepted["payload"]["job_id"], within=WITHIN)
            finally:
                await raw.close()
            if ended["type"] == "job.error":
                raise PlainError(ended)

        await apart(session())


class Cli(Hop):
    """A command, in a process of its own; `rest` says what it calls."""

    async def call(self, amends):
        sides = "amends" if self.amends else "plain"
        argv = zygote.argv(sides, self.rest)
        if amends:
            await arun(argv, policy=POLICY, timeout=WITHIN, own=self.own)
            return
        process = await asyncio.create_subprocess_exec(
            *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await process.communicate()
        if process.returncode:
            raise PlainError({"exit": process.returncode, "stdout": out.decode(), "stderr": err.decode()})


class Run(Cli):
    """The same command within two `amends run`."""

    async def call(self, amends):
        sides = "amends" if self.amends else "plain"
        argv = zygote.argv(sides, self.rest)
        run = [sys.executable, "-m", "amends", "run", "--"]
        if amends:
            await arun([*run, *run, *argv], policy=POLICY, timeout=WITHIN, own=self.own)
            return
        process = await asyncio.create_subprocess_exec(
            *run, *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await process.communicate()
        if process.returncode:
            raise PlainError({"exit": process.returncode, "stdout": out.decode(), "stderr": err.decode()})


def command(handler, amends):
    """In the process of a command: run it, and exit."""
    if not amends:
        asyncio.run(handler())
        return
    parser = argparse.ArgumentParser(prog="act")
    main(parser, lambda _: handler(), [], piped="json")


FORMATS = {
    "http": Http,
    "cli": Cli,
    "task": Task,
    "arcp": Arcp,
    "mcp": Mcp,
    "a2a": A2a,
    "jsonrpc": JsonRpc,
    "gateway": Gateway,
}
MORE = {
    "mcp-http": McpHttp,
    "mcp-gateway": McpGateway,
    "fastmcp": FastMcp,
    "a2a-stream": A2aStream,
    "a2a-0.3": A2aOld,
    "a2a-0.3-stream": A2aOldStream,
    "a2a-rest": A2aRest,
    "a2a-gateway": A2aGateway,
    "jsonrpc-gateway": JsonRpcGateway,
    "flask": Flask,
    "aiohttp": Aiohttp,
    "run": Run,
}
"""Other ways to serve and to call the same formats."""
BEHIND = {"http": Gateway, "mcp": McpGateway, "a2a": A2aGateway, "jsonrpc": JsonRpcGateway}
"""The formats that the gateway can be between."""
__all__ = ["BEHIND", "FORMATS", "MORE", "FaultError", "Hop", "PlainError", "command", "in_own_trace", "os"]
