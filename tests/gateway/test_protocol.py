"""A caller's connection: limits on the time of each phase. The whole time-outs are replaced by short ones."""

import asyncio
import socket

import pytest

from amends.gateway import protocol
from tests.gateway.peers import OK, Upstream, get, http, raw, serving


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Make the limits short."""
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.1)
    monkeypatch.setattr(protocol, "UNREAD_SECONDS", 0.1)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /",
        b"GET / HTTP/1.1\r\nhost: a\r\nx:",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nab",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 500000\r\n\r\n" + b"a" * 400_000,
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5;" + b"x" * 100,
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: y\r\n",
        get("/").replace(b"connection: close\r\n", b"") + b"GET / HT",
    ],
)
async def test_a_caller_that_stops_sending(sent):
    """In each part of a request, also of the second one: the connection is closed."""
    async with Upstream(OK) as up, serving(http(up, timeout=0.1)) as gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(sent)
        async with asyncio.timeout(10):
            await reader.read(-1)
        writer.close()


async def test_a_caller_that_stops_reading():
    """Its connection is aborted, with what it did not read."""

    async def large(request, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 50000000\r\n\r\n")
        for _ in range(500):
            writer.write(b"x" * 100_000)
            await writer.drain()

    async with Upstream(large) as up, serving(http(up)) as gateway:
        with socket.socket() as caller:
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            caller.connect(("127.0.0.1", gateway.port))
            caller.sendall(get("/"))
            async with asyncio.timeout(10):
                while not up.requests or gateway.in_flight or gateway.server.server_state.connections:
                    await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("method", "body", "sent"),
    [("GET", b"2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n", b"abcde"), ("GET", b"0\r\n\r\n", b""), ("HEAD", b"", b"")],
)
async def test_a_caller_of_http_1_0(method, body, sent):
    """It knows no chunks: a body without a length ends with the connection."""
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    async with Upstream(head + body) as up, serving(http(up)) as gateway:
        answered = await raw(gateway, f"{method} / HTTP/1.0\r\n\r\n".encode())
    assert answered == b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + sent
