"""A server that stops responding during the handshake: opening fails in time, and no connection stays open."""

import asyncio
import json

import pytest

from amends import stores
from amends.stores import StoreUnavailableError

INFO = {"server_id": "x", "version": "2.15.1", "max_payload": 1_000_000, "headers": True, "proto": 1}
SENDS = {
    "nothing": b"",
    "INFO": f"INFO {json.dumps(INFO)}\r\n".encode(),
    "INFO with TLS required": f"INFO {json.dumps(INFO | {'tls_required': True})}\r\n".encode(),
    "something other than NATS": b"HTTP/1.1 400 Bad Request\r\n\r\n",
}


@pytest.mark.parametrize("sends", SENDS)
async def test_the_connection_is_closed(sends):
    """The store closes it explicitly, whatever the server sent; it does not leave that to garbage collection."""
    opened, closed = [], []

    async def serve(reader, writer):
        opened.append(writer)
        writer.write(SENDS[sends])
        while await reader.read(65536):
            pass
        closed.append(writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(StoreUnavailableError):
        await stores.open(f"nats://127.0.0.1:{port}/x?timeout=0.5")
    async with asyncio.timeout(10):
        while len(closed) < len(opened):
            await asyncio.sleep(0.01)
    assert opened
    server.close()
    await server.wait_closed()
