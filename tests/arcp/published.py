"""The client and the runtime of the published SDK (`agentruntimecontrolprotocol`, imported as `arcp`) as peers."""

import asyncio
import logging
from contextlib import asynccontextmanager

import structlog
from arcp._auth.bearer import StaticBearerVerifier
from arcp._errors import InternalError, PermissionDeniedError
from arcp._messages.session import ClientInfo, RuntimeInfo
from arcp._transport.websocket import WebSocketTransport, serve_websocket
from arcp.client import ARCPClient
from arcp.runtime import ARCPRuntime

TOKENS = {"secret": "alice", "other": "bob"}


async def echo(given, ctx):
    return given


async def talk(given, ctx):
    await ctx.log("info", "one")
    await ctx.progress(1, total=2, units="steps")
    await ctx.status("half")
    return "done"


async def denied(given, ctx):
    raise PermissionDeniedError("not allowed", details={"capability": "net.fetch"})


async def broken(given, ctx):
    raise RuntimeError("the password is hunter2")


async def flaky(given, ctx):
    raise InternalError("try again")


async def slow(given, ctx):
    await ctx.log("info", "started")
    await asyncio.sleep(60)


async def brief(given, ctx):
    await asyncio.sleep(0.1)


async def stream(given, ctx):
    async with ctx.stream_result() as result:
        await result.write("héllo ")
        await result.write(b"world")
        await result.close(summary="two parts")


async def climb(given, ctx):
    ctx.authorize("fs.read", given)
    return "read"


AGENTS = (echo, talk, denied, broken, flaky, slow, brief, stream, climb)


def silence_logs():
    """Keep the SDK's logs off stdout."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


@asynccontextmanager
async def published_runtime(**options):
    """Serve the SDK's runtime over a WebSocket; yields the runtime and its URL."""
    silence_logs()
    options.setdefault("logger", structlog.get_logger())
    runtime = ARCPRuntime(
        runtime=RuntimeInfo(name="published", version="1"), bearer=StaticBearerVerifier(TOKENS), **options
    )
    for agent in AGENTS:
        runtime.register_agent(agent.__name__, agent)
    runtime.register_agent_version("pinned", "1.0.0", echo)
    runtime.register_agent_version("pinned", "2.0.0", talk)
    server = await serve_websocket(runtime.accept, host="127.0.0.1", port=0)
    try:
        yield runtime, f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/arcp"
    finally:
        server.close()
        await server.wait_closed()
        await runtime.close()


@asynccontextmanager
async def published_client(url, *, token="secret", resume=None, timeout=5.0):
    """Connect the SDK's client; yields it."""
    silence_logs()
    client = ARCPClient(
        client=ClientInfo(name="published", version="1"),
        token=token,
        handshake_timeout_sec=timeout,
        logger=structlog.get_logger(),
    )
    transport = await WebSocketTransport.connect(url)
    try:
        if resume is None:
            await client.connect(transport)
        else:
            await client.resume(transport, resume=resume)
        yield client
    finally:
        await client.close()
        await transport.close()
