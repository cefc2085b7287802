"""Connections without a session cannot lock others out."""

import asyncio

import msgspec
import pytest

from amends.arcp import Runtime, connect
from amends.arcp.transports import websocket
from tests.arcp.agents import echo
from tests.arcp.raw import connected, dial


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_silent_connections_are_closed_for_new_ones(begin):
    """300 silent connections of one address do not keep a client out."""
    runtime = await begin(limits={"hello_timeout": 60.0})
    silent = [dial(runtime) for _ in range(1500)]
    await settle()
    assert len(runtime.node.server.handshakes) <= runtime.limits.handshakes_per_address
    raw = await connected(runtime)
    assert (await raw.run("echo", 1))["payload"]["result"] == 1
    await raw.close()
    for each in silent:
        await each.connection.close()


@pytest.mark.parametrize("limit", ["handshakes", "handshakes_per_address"])
async def test_the_oldest_silent_connection_is_closed_first(begin, limit):
    """A connection whose hello is being checked stays; if there is no silent one, the new one is closed."""
    go = asyncio.Event()

    async def slowly(token):
        await go.wait()
        return "alice"

    runtime = await begin(authenticate=slowly, limits={"hello_timeout": 60.0, limit: 3})
    checked = dial(runtime)
    hello = asyncio.ensure_future(checked.hello())
    await settle()
    silent = [dial(runtime) for _ in range(2)]
    await settle()
    new = dial(runtime)
    await settle()
    assert await silent[0].receive() is None
    hellos = [asyncio.ensure_future(each.hello()) for each in (silent[1], new)]
    await settle()
    assert await dial(runtime).receive() is None
    go.set()
    for each in (hello, *hellos):
        assert (await each)["type"] == "session.welcome"
    assert len(runtime.node.server.handshakes) == 0


async def test_a_silent_connection_does_not_wait_long():
    """Its time is shorter than that of a hello that is being checked."""
    limits = Runtime(tokens=["t"]).limits
    assert limits.hello_timeout <= 5
    assert limits.hello_timeout < limits.authentication_timeout


async def test_many_clients_with_a_slow_authenticator():
    """400 clients that connect at once over WebSockets all get a session."""

    async def slowly(token):
        await asyncio.sleep(0.3)
        return "alice"

    runtime = Runtime(authenticate=slowly)
    runtime.register_agent("echo", echo)

    async def client(url, number):
        async with connect(url, token="t") as client:
            handle = await client.submit("echo", number)
            assert await handle.done == number

    async with runtime, runtime.listen("127.0.0.1", 0) as listening, asyncio.timeout(90):
        await asyncio.gather(*(client(listening.url, number) for number in range(400)))


async def test_a_late_hello_is_tried_again(begin):
    """A slow network is no fault of the client: it connects again instead of giving up."""
    runtime = await begin(limits={"hello_timeout": 0.05})
    dialled = []

    async with runtime.listen(port=0) as listening:

        async def dial():
            connection = await websocket.dial(listening.url)
            dialled.append(connection)
            if len(dialled) == 1:
                send = connection.send

                async def later(frame):
                    await asyncio.sleep(0.1)
                    await send(frame)

                return Delayed(connection, later)
            return connection

        async with connect(dial, token="alice-token") as client:
            assert await (await client.submit("echo", 1)).done == 1
    assert len(dialled) == 2


class Delayed:
    """A connection whose frames are sent by another function."""

    def __init__(self, connection, send):
        self._connection = connection
        self.send = send

    def __getattr__(self, name):
        return getattr(self._connection, name)


async def test_a_silent_connection_is_told_to_come_back(begin):
    """With a retryable error and the close code for "try again later"."""
    runtime = await begin(limits={"hello_timeout": 0.05})
    async with runtime.listen(port=0) as listening:
        connection = await websocket.dial(listening.url)
        frame = await connection.receive()
        error = msgspec.json.decode(frame)["payload"]
        assert (error["code"], error["retryable"]) == ("INTERNAL_ERROR", True)
        assert await connection.receive() is None
        assert connection.close_code == 1013
