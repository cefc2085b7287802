"""Connections on every transport: frames in order in both directions, back-pressure, limits and closing."""

import asyncio
import socket
import sys
from contextlib import asynccontextmanager

import pytest
import uvicorn
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

from amends.arcp.transports import ConnectionLost, asgi, memory, stdio, websocket
from amends.arcp.transports.text_frames import text_frame

LIMIT = 1000


class Echo:
    """A runtime that sends every frame back twice, and closes on request."""

    def __init__(self):
        self.served = []

    async def serve(self, connection):
        self.served.append(connection)
        while (frame := await connection.receive()) is not None:
            data = frame if isinstance(frame, bytes) else frame.encode()
            if data == b"go":
                break
            await connection.send_all([data, data])
        await connection.close()


@asynccontextmanager
async def over_memory(echo):
    near, far = memory.pair(max_frame=LIMIT)
    task = asyncio.create_task(echo.serve(far))
    yield near
    await near.close()
    await task


@asynccontextmanager
async def over_websocket(echo):
    async with websocket.serve(echo, max_frame=LIMIT) as listening:
        connection = await websocket.dial(listening.url, max_frame=LIMIT)
        yield connection
        await connection.close()


@asynccontextmanager
async def over_asgi(echo, **options):
    config = uvicorn.Config(
        asgi.endpoint(echo, max_frame=LIMIT), log_level="warning", lifespan="on", ws="websockets-sansio"
    )
    server = uvicorn.Server(config)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started:
            await asyncio.sleep(0.005)
        url = f"ws://127.0.0.1:{listener.getsockname()[1]}/"
        connection = await websocket.dial(url, max_frame=LIMIT, **options)
        yield connection
        await connection.close()
    finally:
        server.should_exit = True
        await task
        listener.close()


CHILD = """
import asyncio, sys
from amends.arcp.transports import stdio

class Echo:
    async def serve(self, connection):
        print("stray output")
        while (frame := await connection.receive()) is not None:
            if frame == b"go":
                break
            await connection.send_all([frame, frame])

asyncio.run(stdio.serve(Echo(), max_frame=1000))
print("after")
"""


@asynccontextmanager
async def over_stdio(echo):
    connection = await stdio.command(
        sys.executable, "-c", CHILD, max_frame=LIMIT, stderr=asyncio.subprocess.DEVNULL
    )()
    echo.served.append(connection)
    yield connection
    await connection.close()


ALL = pytest.mark.parametrize("over", [over_memory, over_websocket, over_asgi, over_stdio])


def text(frame):
    return frame.decode() if isinstance(frame, bytes) else frame


@ALL
async def test_frames_travel_in_order(over):
    """One by one, several at once, and posted without waiting."""
    async with over(Echo()) as connection:
        await connection.send("ä".encode())
        await connection.send_all([b"b", b"c"])
        if not connection.post([b"d", b"e"]):
            await connection.send_all([b"d", b"e"])
        got = [text(await connection.receive()) for _ in range(10)]
        assert got == ["ä", "ä", "b", "b", "c", "c", "d", "d", "e", "e"]
        assert connection.peer


@ALL
async def test_frames_are_passed_to_a_function(over):
    """In order, until it returns False or raises, whether they are there already or come later; then False at the end."""
    got = []

    def take(frame):
        got.append(text(frame))
        if text(frame) == "fail":
            raise LookupError
        return text(frame) != "stop"

    sent = ["a", "stop", "b", "fail", "c", "stop"]
    async with over(Echo()) as connection:
        waiting = asyncio.create_task(connection.receive_into(take))
        await asyncio.sleep(0)
        await connection.send_all([one.encode() for one in sent])
        assert await waiting
        assert await connection.receive_into(take)
        assert got == ["a", "a", "stop", "stop"]
        with pytest.raises(LookupError):
            await connection.receive_into(take)
        with pytest.raises(LookupError):
            await connection.receive_into(take)
        assert await connection.receive_into(take)
        assert text(await connection.receive()) == "stop"
        assert got == ["a", "a", "stop", "stop", "b", "b", "fail", "fail", "c", "c", "stop"]
        await connection.send(b"go")
        assert not await connection.receive_into(lambda frame: frame == b"after")
        assert not await connection.receive_into(take)


@ALL
async def test_closing_ends_both_sides(over):
    """Frames sent before are received, then always None; sending raises."""
    echo = Echo()
    async with over(echo) as connection:
        await connection.send(b"last")
        await connection.send(b"go")
        assert [text(await connection.receive()) for _ in range(2)] == ["last", "last"]
        while (frame := await connection.receive()) is not None:
            assert frame == b"after"  # printed by the child on its stdout
        assert await connection.receive() is None
        with pytest.raises(ConnectionLost):
            for _ in range(100):
                await connection.send(b"x")
                await asyncio.sleep(0.01)
        await connection.close()
        assert not connection.post([b"x"])
        assert await connection.receive() is None
        with pytest.raises(ConnectionLost):
            await connection.send_all([b"x"])
        await connection.close()


@ALL
async def test_a_frame_too_large_ends_the_connection(over):
    """The frame is not delivered."""
    async with over(Echo()) as connection:
        try:
            await connection.send(b"x" * (LIMIT + 200))
        except ConnectionLost:
            pass
        frames = []
        while (frame := await connection.receive()) is not None:
            frames.append(frame)
        assert frames in ([], [b"after"])


@ALL
async def test_closing_during_a_receive(over):
    """The receiver gets None."""
    async with over(Echo()) as connection:
        waiting = asyncio.create_task(connection.receive())
        await asyncio.sleep(0)
        await connection.close()
        assert await asyncio.wait_for(waiting, 100) in {None, b"after"}


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65_535, 65_536, 200_000])
def test_the_library_reads_our_frames(size, masked):
    """The library's parser reads every length form, masked or not, as one text frame."""
    data = ("ä" * (size // 2) + "x" * (size % 2)).encode()
    stream = StreamReader()
    stream.feed_data(text_frame(data, masked=masked))
    with pytest.raises(StopIteration) as done:
        next(Frame.parse(stream.read_exact, mask=masked))
    frame = done.value.value
    assert (frame.opcode, frame.fin, bytes(frame.data)) == (Opcode.TEXT, True, data)
    assert not stream.buffer


def test_every_frame_has_its_own_mask():
    assert len({text_frame(b"the same", masked=True) for _ in range(50)}) == 50
