"""The ASGI endpoint."""

from __future__ import annotations

import asyncio

import pytest

from amends.arcp.transports import ConnectionLost, asgi, websocket
from tests.arcp.test_connection import Echo, over_asgi


async def test_an_asgi_endpoint_refuses_origins_and_plain_requests():
    """426 for HTTP, 403 for an origin that is not allowed; the server's lifespan is handled."""
    async with over_asgi(Echo()) as connection:
        port = connection._socket.remote_address[1]
        with pytest.raises(ConnectionLost):
            await websocket.dial(f"ws://127.0.0.1:{port}/", origin="https://evil.example")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 426 ")
        writer.close()
        await writer.wait_closed()


async def test_an_asgi_server_that_gives_up():
    """Another first message, or a server that raises when it sends, only ends the connection."""
    sent = []

    async def send(message):
        sent.append(message)
        if message["type"] == "websocket.send":
            raise RuntimeError("gone")
        if message["type"] == "websocket.close":
            raise OSError

    messages = iter([{"type": "websocket.disconnect"}])

    async def receive():
        return next(messages)

    endpoint = asgi.endpoint(Echo())
    await endpoint({"type": "websocket", "headers": []}, receive, send)
    assert sent == []
    messages = iter([{"type": "websocket.receive", "bytes": b"x", "text": None}])
    connection = asgi.AsgiConnection({}, receive, send, 10)
    assert connection.peer == "asgi"
    assert await connection.receive() == b"x"
    with pytest.raises(ConnectionLost):
        await connection.send(b"x")
    assert await connection.receive() is None
    other = asgi.AsgiConnection({"client": ["h", 1]}, receive, send, 10)
    await other.close()
    assert sent[-1]["type"] == "websocket.close"
    await endpoint({"type": "something.else"}, receive, send)
