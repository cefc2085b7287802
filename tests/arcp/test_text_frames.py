"""Sockets that read text frames themselves: any split of the data, everything that the library has to read, and bounds."""

from __future__ import annotations

import asyncio
import random
import struct
from contextlib import asynccontextmanager

import pytest
import websockets
from websockets.frames import Frame, Opcode

from amends.arcp.transports import websocket
from amends.arcp.transports.text_frames import text_frame

LIMIT = 200_000
HANDSHAKE = (
    b"GET /arcp HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


class Recorder:
    """Records the frames of one connection."""

    def __init__(self):
        self.frames = []
        self.open = asyncio.Event()
        self.ended = asyncio.Event()
        self.reading = asyncio.Event()
        self.reading.set()
        self.connection = None

    async def serve(self, connection):
        self.connection = connection
        self.open.set()
        await self.reading.wait()
        while (frame := await connection.receive()) is not None:
            self.frames.append(frame)
        self.ended.set()


@asynccontextmanager
async def listening(recorder, **options):
    async with (
        asyncio.timeout(60),
        websocket.serve(recorder, max_frame=LIMIT, close_timeout=1, **options) as server,
    ):
        yield server


@asynccontextmanager
async def raw(server, sent=HANDSHAKE):
    """A TCP connection after the handshake."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(sent)
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
        yield reader, writer
    finally:
        writer.close()


def frame(opcode, data=b"", *, fin=True):
    return Frame(opcode, data, fin).serialize(mask=True)


CLOSE = frame(Opcode.CLOSE, struct.pack("!H", 1000))


async def close_code(reader):
    """The code of the close frame that comes next, after pongs."""
    while (head := await reader.readexactly(2))[0] != 0x88:
        await reader.readexactly(head[1])
    return struct.unpack("!H", (await reader.readexactly(head[1]))[:2])[0]


def stream(rolls):
    """Messages, and bytes that contain them with pings between them; later also fragmented and binary ones."""
    messages, data = [], b""
    for number in range(40):
        message = rolls.randbytes(rolls.choice([0, 1, 2, 125, 126, 127, 300, 65_535, 65_536, LIMIT]))
        messages.append(message)
        if number < 30 or rolls.random() < 0.5:
            data += text_frame(message, masked=True)
        elif rolls.random() < 0.5:
            data += frame(Opcode.BINARY, message)
        else:
            cut = rolls.randint(0, len(message))
            data += frame(Opcode.TEXT, message[:cut], fin=False)
            data += frame(Opcode.PING) + frame(Opcode.CONT, message[cut:])
        if rolls.random() < 0.3:
            data += frame(rolls.choice([Opcode.PING, Opcode.PONG]), rolls.randbytes(rolls.randint(0, 125)))
    return messages, data


@pytest.mark.parametrize("seed", range(6))
async def test_data_can_be_split_anywhere(seed):
    """All messages arrive in order, in whatever pieces the bytes come."""
    rolls = random.Random(seed)
    messages, data = stream(rolls)
    recorder = Recorder()
    async with listening(recorder) as server, raw(server) as (reader, writer):
        at = 0
        while at < len(data):
            size = rolls.choice([1, 2, 3, 5, 50, 5_000, 100_000])
            writer.write(data[at : at + size])
            await writer.drain()
            await asyncio.sleep(0)
            at += size
        writer.write(CLOSE)
        assert await close_code(reader) == 1000
        writer.close()
        await recorder.ended.wait()
    assert recorder.frames == messages


@pytest.mark.parametrize("cut", [0, 1, 5])
async def test_frames_directly_behind_the_handshake(cut):
    """A client that sends frames before the answer to its handshake is read too."""
    data = text_frame(b"first", masked=True) + text_frame(b"second", masked=True)
    recorder = Recorder()
    async with listening(recorder) as server, raw(server, HANDSHAKE + data[:cut]) as (reader, writer):
        writer.write(data[cut:] + CLOSE)
        assert await close_code(reader) == 1000
        writer.close()
        await recorder.ended.wait()
    assert recorder.frames == [b"first", b"second"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x81\xff" + struct.pack("!Q", LIMIT + 1), 1009),
        (b"\x81\xff" + b"\xff" * 8, 1009),
        (text_frame(b"x" * (LIMIT + 1), masked=True)[:1000], 1009),
        (text_frame(b"not masked", masked=False), 1002),
        (b"\xc1\x81\0\0\0\0x", 1002),
        (frame(Opcode.CONT, b"no start"), 1002),
        (b"\x83\x80\0\0\0\0", 1002),
        (b"\x89\xfe\x01\x00\0\0\0\0" + b"x" * 256, 1002),
        (b"\x89\x00", 1002),
        (frame(Opcode.TEXT, b"part", fin=False) + text_frame(b"whole", masked=True), 1002),
    ],
    ids=[
        "large",
        "huge",
        "large with data",
        "not masked",
        "reserved bit",
        "continuation",
        "unknown opcode",
        "long ping",
        "ping not masked",
        "message in a message",
    ],
)
async def test_the_library_refuses_invalid_frames(data, code):
    """The connection is closed with the code of RFC 6455; frames before are received, frames after are not."""
    recorder = Recorder()
    async with listening(recorder) as server, raw(server) as (reader, writer):
        writer.write(text_frame(b"before", masked=True) + data + text_frame(b"after", masked=True))
        assert await close_code(reader) == code
        writer.close()
        await recorder.ended.wait()
    assert recorder.frames == [b"before"]


async def test_pings_are_answered_between_frames():
    """By the library, on both sides; the other frames keep their order."""
    recorder = Recorder()
    async with listening(recorder, ping_interval=0.01) as server, websockets.connect(server.url) as peer:
        for number in range(50):
            await peer.send(str(number))
            await (await peer.ping())
    await recorder.ended.wait()
    assert recorder.frames == [str(number).encode() for number in range(50)]


async def test_compressed_frames_are_read_by_the_library():
    """Also if the first frames are too short to be compressed."""
    recorder = Recorder()
    async with (
        listening(recorder, compression="deflate") as server,
        websockets.connect(server.url, compression="deflate") as peer,
    ):
        await peer.send("a" * 10_000)
        await peer.send("b")
    await recorder.ended.wait()
    assert recorder.frames == [b"a" * 10_000, b"b"]


async def test_a_connection_that_breaks_in_a_frame():
    """The frames before are received, then the connection has ended."""
    recorder = Recorder()
    async with listening(recorder) as server:
        async with raw(server) as (_, writer):
            writer.write(text_frame(b"whole", masked=True) + text_frame(b"half", masked=True)[:-1])
        await recorder.ended.wait()
    assert recorder.frames == [b"whole"]


async def test_unread_frames_stop_the_reading():
    """What is received and not read is bounded; it arrives when it is read."""
    recorder = Recorder()
    recorder.reading.clear()
    async with listening(recorder) as server, raw(server) as (reader, writer):
        one = text_frame(b"x" * 1000, masked=True)
        count = 0
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                while True:
                    writer.write(one)
                    count += 1
                    await writer.drain()
        assert not recorder.frames
        recorder.reading.set()
        writer.write(CLOSE)
        assert await close_code(reader) == 1000
        writer.close()
        await recorder.ended.wait()
    assert recorder.frames == [b"x" * 1000] * count


async def test_closing_with_unread_frames():
    """The other side's confirmation is read although frames are in front of it."""
    recorder = Recorder()
    recorder.reading.clear()
    async with listening(recorder) as server, raw(server) as (reader, writer):
        await recorder.open.wait()
        for _ in range(10):
            writer.write(text_frame(b"x" * 50_000, masked=True))
        await asyncio.sleep(0.1)
        closing = asyncio.create_task(recorder.connection.close(1001))
        assert await close_code(reader) == 1001
        writer.write(text_frame(b"x" * 50_000, masked=True) + CLOSE)
        await closing
        assert recorder.connection.close_code == 1000
        recorder.reading.set()
        await recorder.ended.wait()
    assert recorder.frames == []


async def test_a_cancelled_receive_loses_nothing():
    """The next receive returns the frame."""
    recorder = Recorder()
    recorder.reading.clear()
    async with listening(recorder) as server, raw(server) as (_, writer):
        await recorder.open.wait()
        for number in range(20):
            waiting = asyncio.create_task(recorder.connection.receive())
            await asyncio.sleep(0)
            waiting.cancel()
            writer.write(text_frame(str(number).encode(), masked=True))
            await asyncio.sleep(0)
            assert await recorder.connection.receive() == str(number).encode()
            assert waiting.cancelled()
        recorder.reading.set()
    await recorder.ended.wait()
