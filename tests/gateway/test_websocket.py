"""WebSockets through the gateway, with the websockets library on both sides."""

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed, InvalidStatus

from amends.gateway.config import UpstreamConfig
from tests.gateway.peers import free_port, serving


async def echo(connection):
    async for message in connection:
        if message == "bye":
            await connection.close(4001, "bye")
            return
        await connection.send(message)


async def test_messages_pass_in_both_directions():
    """Text, bytes, the subprotocol, and how the upstream closed."""
    async with serve(echo, "127.0.0.1", 0, subprotocols=["chat"]) as server:
        port = server.sockets[0].getsockname()[1]
        config = UpstreamConfig(name="talk", url=f"http://127.0.0.1:{port}", prefix="/talk")
        async with serving(config) as gateway:
            url = f"ws://127.0.0.1:{gateway.port}"
            async with connect(f"{url}/talk/room?x=1", subprotocols=["chat"]) as client:
                assert client.subprotocol == "chat"
                for message in ("hello", b"\x00\xff", "x" * 100_000):
                    await client.send(message)
                    assert await client.recv() == message
                await client.send("bye")
                with pytest.raises(ConnectionClosed) as closed:
                    await client.recv()
                assert closed.value.rcvd.code == 4001
            with pytest.raises(InvalidStatus):
                await connect(f"{url}/elsewhere")


async def test_an_upstream_that_does_not_answer():
    """The caller's handshake fails."""
    config = UpstreamConfig(name="talk", url=f"http://127.0.0.1:{free_port()}", prefix="/talk")
    async with serving(config) as gateway:
        with pytest.raises(InvalidStatus):
            await connect(f"ws://127.0.0.1:{gateway.port}/talk")
