"""The connection's own frame reader returns what the library would: same messages, same close code, for any chunking."""

from __future__ import annotations

import asyncio
import itertools
import random
import struct
from contextlib import asynccontextmanager
from functools import partial

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.client import ClientProtocol
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from amends.arcp.transports import whole

LONGEST = 5_000


def make_frame(opcode, data, *, masked, fin=True):
    """Return a frame whose mask is zero, so that data that looks like a frame also does on the wire."""
    if not masked:
        return Frame(opcode, data, fin=fin).serialize(mask=False)
    plain = Frame(opcode, data, fin=fin).serialize(mask=False)
    head = len(plain) - len(data)
    return bytes((plain[0], plain[1] | 0x80)) + plain[2:head] + bytes(4) + data


class Received:
    """All messages that a connection received, and its close code."""

    def __init__(self):
        self.messages = []
        self.code = None
        self.over = asyncio.Event()
        self.socket = None

    async def __call__(self, socket):
        self.socket = socket
        try:
            while True:
                self.messages.append(await socket.recv(decode=False))
        except ConnectionClosed:
            # The code that this side detected or received.
            self.code = (
                socket.protocol.close_code,
                socket.protocol.close_sent and socket.protocol.close_sent.code,
            )
            self.over.set()


async def write_chunks(writer, chunks):
    """Write the chunks, with a pause after each so that they arrive separately."""
    for chunk in chunks:
        writer.write(chunk)
        await writer.drain()
        for _ in range(4):
            await asyncio.sleep(0)


async def read_all(reader):
    while await reader.read(65536):
        pass


async def server_received(make, chunks):
    """Return what a server receives from a client that sends these bytes."""
    received = Received()
    async with serve(
        received, "127.0.0.1", 0, create_connection=make, compression=None, max_size=LONGEST, close_timeout=1
    ) as server:
        host, port = server.sockets[0].getsockname()[:2]
        reader, writer = await asyncio.open_connection(host, port)
        client = ClientProtocol(parse_uri(f"ws://{host}:{port}/"))
        client.send_request(client.connect())
        writer.write(b"".join(client.data_to_send()))
        while client.state is State.CONNECTING:
            client.receive_data(await reader.read(65536))
        reading = asyncio.ensure_future(read_all(reader))
        await write_chunks(writer, chunks)
        writer.write_eof()
        await asyncio.wait_for(received.over.wait(), 30)
        writer.close()
        await asyncio.wait([reading])
    return received.messages, received.code


@asynccontextmanager
async def raw_server(chunks):
    """A server that completes the handshake with the library and then sends these bytes."""
    from websockets.server import ServerProtocol

    async def answer(reader, writer):
        protocol = ServerProtocol()
        while protocol.state is State.CONNECTING:
            protocol.receive_data(await reader.read(65536))
            for request in protocol.events_received():
                protocol.send_response(protocol.accept(request))
            writer.write(b"".join(protocol.data_to_send()))
        await write_chunks(writer, chunks)
        writer.write_eof()
        await read_all(reader)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"ws://{host}:{port}/"


async def client_received(make, chunks):
    """Return what a client receives from a server that sends these bytes."""
    received = Received()
    async with raw_server(chunks) as url:
        socket = await connect(
            url, create_connection=make, compression=None, max_size=LONGEST, close_timeout=1, proxy=None
        )
        await asyncio.wait_for(received(socket), 30)
    return received.messages, received.code


def frames(rng, *, masked):
    """Return random frames, mostly small texts; sometimes the last one is invalid."""
    sizes = (0, 1, 125, 126, 127, 200, 1000, LONGEST)
    alike = make_frame(Opcode.TEXT, b"no frame", masked=masked)
    parts, in_parts = [], False
    for _ in range(rng.randrange(1, 12)):
        size = rng.choice(sizes)
        data = rng.choice((rng.randbytes(size), (alike * size)[:size]))
        kind = rng.randrange(10)
        opcode, fin = Opcode.TEXT, True
        if kind == 0:
            opcode, data = rng.choice((Opcode.PING, Opcode.PONG)), data[:100]
        elif in_parts and kind > 1:
            in_parts = rng.random() < 0.5
            opcode, data, fin = Opcode.CONT, data[:500], not in_parts
        elif kind == 1:
            # This is invalid while a fragmented message has not ended.
            fin = in_parts and rng.random() < 0.7
            opcode, data, in_parts = rng.choice((Opcode.TEXT, Opcode.TEXT, Opcode.BINARY)), data[:500], True
        elif kind == 2:
            opcode = Opcode.BINARY
        parts.append(make_frame(opcode, data, masked=masked, fin=fin))
    end = rng.randrange(8)
    if end == 0:
        parts.append(make_frame(Opcode.TEXT, bytes(LONGEST + 1), masked=masked))
    elif end == 1:
        parts.append(make_frame(Opcode.TEXT, b"not for this side", masked=not masked))
    elif end == 2:
        # Also while a fragmented message has not ended.
        parts.append(make_frame(Opcode.TEXT, b"x" * 300, masked=masked))
    elif end == 3:
        parts.append(b"\x81" + rng.randbytes(20))
    elif end == 4:
        # A length in more bytes than necessary.
        key = bytes(4) if masked else b""
        parts.append(struct.pack("!BBH", 0x81, 126 | (0x80 if masked else 0), 5) + key + b"hello")
    elif end == 5:
        parts.append(make_frame(Opcode.CLOSE, struct.pack("!H", 1000) + b"bye", masked=masked))
    elif end == 6:
        parts.append(make_frame(Opcode.TEXT, b"y" * 300, masked=masked)[: rng.randrange(1, 300)])
    return parts


def cut(rng, parts):
    """Cut the same bytes at frame boundaries or anywhere."""
    data = b"".join(parts)
    ends = list(itertools.accumulate(map(len, parts)))
    way = rng.randrange(4)
    if way == 0:
        return parts
    if way == 1:
        return [data]
    if way == 2:
        # A few bytes before or after a boundary: in a header, or before the last byte.
        places = sorted({min(max(0, end + rng.choice((-1, -1, 1, 2, 3, 5))), len(data)) for end in ends})
    else:
        places = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(1, 9)))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True) if a < b]


@pytest.mark.parametrize("seed", range(80))
async def test_a_server_reads_what_the_library_reads(seed):
    rng = random.Random(seed)
    chunks = cut(rng, frames(rng, masked=True))
    mine = await server_received(partial(whole.ServerSide, longest=LONGEST), chunks)
    assert mine == await server_received(ServerConnection, chunks)


@pytest.mark.parametrize("seed", range(80))
async def test_a_client_reads_what_the_library_reads(seed):
    rng = random.Random(seed)
    chunks = cut(rng, frames(rng, masked=False))
    mine = await client_received(partial(whole.ClientSide, longest=LONGEST), chunks)
    assert mine == await client_received(ClientConnection, chunks)


@pytest.fixture
def taken(monkeypatch):
    """Count the bytes that did not go through the library's parser."""
    counted = []
    take = whole._Whole._taken

    def counting(self, data):
        rest = take(self, data)
        counted.append(len(data) - len(rest))
        return rest

    monkeypatch.setattr(whole._Whole, "_taken", counting)
    return counted


async def test_unfragmented_texts_bypass_the_library(taken):
    sizes = [1, 125, 126, 1000, LONGEST]
    parts = [Frame(Opcode.TEXT, b"x" * size).serialize(mask=True) for size in sizes]
    received = await server_received(partial(whole.ServerSide, longest=LONGEST), [b"".join(parts)])
    assert received[0] == [b"x" * size for size in sizes]
    assert sum(taken) > LONGEST / 2


async def test_without_access_to_its_state_the_library_reads_everything(taken, monkeypatch):
    monkeypatch.setattr(whole, "_WAITING", None)
    part = Frame(Opcode.TEXT, b"hello").serialize(mask=True)
    assert (await server_received(partial(whole.ServerSide, longest=LONGEST), [part]))[0] == [b"hello"]
    assert taken == []


async def test_a_text_during_a_fragmented_one_is_an_error(taken):
    chunks = [
        make_frame(Opcode.TEXT, b"in", masked=True, fin=False),
        make_frame(Opcode.TEXT, b"whole", masked=True),
    ]
    messages, (_, sent) = await server_received(partial(whole.ServerSide, longest=LONGEST), chunks)
    assert (messages, sent) == ([], CloseCode.PROTOCOL_ERROR)
    assert taken == []
