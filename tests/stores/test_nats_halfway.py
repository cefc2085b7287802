"""A server that goes silent while a connection is being made: it is given up in time, and nothing is left open."""

import asyncio
import json

import pytest

from amends import stores
from amends.stores import StoreUnavailableError

INFO = {"server_id": "x", "version": "2.15.1", "max_payload": 1_000_000, "headers": True, "proto": 1}
SAYS = {
    "nothing": b"",
    "who it is": f"INFO {json.dumps(INFO)}\r\n".encode(),
    "that it wants TLS": f"INFO {json.dumps(INFO | {'tls_required': True})}\r\n".encode(),
    "what no server says": b"HTTP/1.1 400 Bad Request\r\n\r\n",
}


@pytest.mark.parametrize("says", SAYS)
async def test_the_connection_is_closed(says):
    """Whatever it said before: by us, and not whenever somebody collects what was forgotten."""
    come, gone = [], []

    async def serve(reader, writer):
        come.append(writer)
        writer.write(SAYS[says])
        while await reader.read(65536):
            pass
        gone.append(writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(StoreUnavailableError):
        await stores.open(f"nats://127.0.0.1:{port}/x?timeout=0.5")
    async with asyncio.timeout(10):
        while len(gone) < len(come):
            await asyncio.sleep(0.01)
    assert come
    server.close()
    await server.wait_closed()
