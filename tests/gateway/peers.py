"""An upstream that answers as scripted, byte for byte, and a gateway in front of it."""

from __future__ import annotations

import asyncio
import contextlib
import socket

from amends.gateway import Gateway
from amends.gateway.config import GatewayConfig, UpstreamConfig
from amends.gateway.server import GatewayServer, listening_socket

HOSTS = ("a", "b", "g")
"""The hosts that raw requests of these tests name."""
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def answer(status, body=b"", *headers):
    """Return the bytes of an answer."""
    lines = [f"HTTP/1.1 {status} X".encode(), *headers, b"content-length: %d" % len(body)]
    return b"\r\n".join([*lines, b"", b""]) + body


class Upstream:
    """
    Answers requests with the next scripted answer; the last one is repeated.

    An answer is bytes, "close" (no answer), "hang", or a function `async (request, writer)`.
    """

    def __init__(self, *script):
        self.script = list(script) or [OK]
        self.requests = []
        self._server = None
        self._tasks = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await self._body(reader, head.lower())
                self.requests.append(head + body)
                step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
                if step == "close":
                    break
                if step == "hang":
                    await asyncio.sleep(3600)
                if callable(step):
                    if await step(head + body, writer):
                        break
                else:
                    writer.write(step)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            pass
        finally:
            self._tasks.discard(asyncio.current_task())
            writer.close()

    @staticmethod
    async def _body(reader, head):
        if b"transfer-encoding: chunked" in head:
            body = b""
            while True:
                size = int(await reader.readline(), 16)
                piece = await reader.readexactly(size + 2)
                if not size:
                    return body
                body += piece[:-2]
        found = head.partition(b"content-length:")[2]
        return await reader.readexactly(int(found.split(b"\r\n")[0])) if found else b""


@contextlib.asynccontextmanager
async def serving(*upstreams, page=None, **options):
    """Run a gateway, and yield it; its `port` is where it listens."""
    options.setdefault("hosts", HOSTS)
    config = GatewayConfig(upstreams=upstreams, listen="127.0.0.1:0", **options)
    gateway = Gateway(config, page=page)
    bound = listening_socket(config.listen)
    gateway.port = bound.getsockname()[1]
    gateway.url = f"http://127.0.0.1:{gateway.port}"
    gateway.server = server = GatewayServer(gateway)
    task = asyncio.create_task(server.serve(sockets=[bound]))
    while not server.started:
        await asyncio.sleep(0.001)
    try:
        yield gateway
    finally:
        server.should_exit = True
        await task
        bound.close()


def http(upstream, **options):
    """Return the configuration of an HTTP upstream without long waits."""
    from amends.core.backoff import Backoff
    from amends.core.policy import Policy

    given = {"name": "shop", "url": upstream.url, "policy": Policy(attempts=3, backoff=Backoff(first=0.001))}
    return UpstreamConfig(**(given | options))


async def raw(gateway, request, *, until=None):
    """Send bytes over a new connection, and return what comes back until the gateway closes or `until` is in it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(request)
    data = b""
    try:
        async with asyncio.timeout(20):
            while until is None or until not in data:
                piece = await reader.read(65536)
                if not piece:
                    break
                data += piece
    finally:
        writer.close()
    return data


def get(path="/", *headers, method="GET", body=b""):
    """Return the bytes of a request that closes its connection."""
    lines = [f"{method} {path} HTTP/1.1".encode(), b"host: localhost", b"connection: close", *headers]
    if body or method == "POST":
        lines.append(b"content-length: %d" % len(body))
    return b"\r\n".join([*lines, b"", b""]) + body


def free_port():
    """Return a port that is not in use."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
