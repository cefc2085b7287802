"""WebSockets through the gateway, with the websockets library on both sides."""

import pytest
from msgspec.structs import replace
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed, InvalidStatus

from amends.gateway.config import UpstreamConfig
from tests.gateway.peers import OK, Upstream, answer, free_port, serving


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


async def test_what_no_upstream_can_take():
    """A command speaks no WebSocket, and the gateway's own path belongs to no upstream."""
    async with Upstream(OK) as up:
        whole = UpstreamConfig(name="all", url=up.url, prefix="")
        command = UpstreamConfig(name="small", kind="stdio", command=("false",), prefix="/mcp")
        async with serving(whole, command) as gateway:
            for path, status in (("/mcp", 405), ("/_amends/live", 403)):
                with pytest.raises(InvalidStatus) as failed:
                    await connect(f"ws://127.0.0.1:{gateway.port}{path}")
                assert failed.value.response.status_code == status
        assert up.requests == []


async def test_an_upstream_that_does_not_answer():
    """The caller's handshake fails."""
    config = UpstreamConfig(name="talk", url=f"http://127.0.0.1:{free_port()}", prefix="/talk")
    async with serving(config) as gateway:
        with pytest.raises(InvalidStatus) as failed:
            await connect(f"ws://127.0.0.1:{gateway.port}/talk")
        assert failed.value.response.status_code == 502


async def test_a_refused_handshake_passes_and_redirects_are_not_followed():
    """Status and headers are the upstream's; another address is not called; too many connections are refused."""
    refusal = answer(429, b"no", b"retry-after: 7")
    async with Upstream(OK) as other, Upstream(refusal) as up:
        config = UpstreamConfig(name="talk", url=up.url, prefix="/talk", concurrency=1)
        async with serving(config) as gateway:
            url = f"ws://127.0.0.1:{gateway.port}/talk"
            with pytest.raises(InvalidStatus) as failed:
                await connect(url)
            answered = failed.value.response
            assert (answered.status_code, answered.headers["retry-after"]) == (429, "7")
            assert answered.headers["amends-upstream"] == "talk"
            up.script = [answer(302, b"", b"location: " + other.url.encode())]
            with pytest.raises(InvalidStatus) as failed:
                await connect(url)
            assert failed.value.response.status_code == 502
            assert other.requests == []
            gateway.upstreams[0].crowd.in_flight = 1
            with pytest.raises(InvalidStatus) as failed:
                await connect(url)
            assert failed.value.response.status_code == 503
            gateway.upstreams[0].crowd.in_flight = 0


async def test_a_reload_keeps_open_connections():
    """An upstream whose configuration changed closes after its last connection."""
    async with serve(echo, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        config = UpstreamConfig(name="talk", url=f"http://127.0.0.1:{port}", prefix="/talk")
        async with serving(config) as gateway, connect(f"ws://127.0.0.1:{gateway.port}/talk") as client:
            await client.send("before")
            assert await client.recv() == "before"
            gateway.reload(replace(gateway.config, upstreams=(replace(config, timeout=7.0),)))
            for _ in range(3):
                await client.send("after")
                assert await client.recv() == "after"
            assert gateway._closing
