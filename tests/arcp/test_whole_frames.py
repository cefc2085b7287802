"""What a connection reads itself is what the library would have read: same messages, same end, wherever the data is cut."""

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


def framed(opcode, data, *, masked, fin=True):
    """A frame whose key changes nothing: what looks like a frame inside it looks like one on the wire, too."""
    if not masked:
        return Frame(opcode, data, fin=fin).serialize(mask=False)
    plain = Frame(opcode, data, fin=fin).serialize(mask=False)
    head = len(plain) - len(data)
    return bytes((plain[0], plain[1] | 0x80)) + plain[2:head] + bytes(4) + data


class Told:
    """Everything a connection received, and how it ended."""

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
            # What this side found, or was told.
            self.code = (
                socket.protocol.close_code,
                socket.protocol.close_sent and socket.protocol.close_sent.code,
            )
            self.over.set()


async def hear(writer, chunks):
    """Write in pieces, each with time to arrive alone."""
    for chunk in chunks:
        writer.write(chunk)
        await writer.drain()
        for _ in range(4):
            await asyncio.sleep(0)


async def read_all(reader):
    while await reader.read(65536):
        pass


async def server_told(make, chunks):
    """What a server makes of a client's bytes."""
    told = Told()
    async with serve(
        told, "127.0.0.1", 0, create_connection=make, compression=None, max_size=LONGEST, close_timeout=1
    ) as server:
        host, port = server.sockets[0].getsockname()[:2]
        reader, writer = await asyncio.open_connection(host, port)
        client = ClientProtocol(parse_uri(f"ws://{host}:{port}/"))
        client.send_request(client.connect())
        writer.write(b"".join(client.data_to_send()))
        while client.state is State.CONNECTING:
            client.receive_data(await reader.read(65536))
        reading = asyncio.ensure_future(read_all(reader))
        await hear(writer, chunks)
        writer.write_eof()
        await asyncio.wait_for(told.over.wait(), 30)
        writer.close()
        await asyncio.wait([reading])
    return told.messages, told.code


@asynccontextmanager
async def raw_server(chunks):
    """A server that shakes hands by the library and then says these bytes."""
    from websockets.server import ServerProtocol

    async def say(reader, writer):
        protocol = ServerProtocol()
        while protocol.state is State.CONNECTING:
            protocol.receive_data(await reader.read(65536))
            for request in protocol.events_received():
                protocol.send_response(protocol.accept(request))
            writer.write(b"".join(protocol.data_to_send()))
        await hear(writer, chunks)
        writer.write_eof()
        await read_all(reader)
        writer.close()

    server = await asyncio.start_server(say, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"ws://{host}:{port}/"


async def client_told(make, chunks):
    """What a client makes of a server's bytes."""
    told = Told()
    async with raw_server(chunks) as url:
        socket = await connect(
            url, create_connection=make, compression=None, max_size=LONGEST, close_timeout=1, proxy=None
        )
        await asyncio.wait_for(told(socket), 30)
    return told.messages, told.code


def frames(rng, *, masked):
    """A session's worth of frames, mostly small texts; and at the end, sometimes, one that may not be."""
    sizes = (0, 1, 125, 126, 127, 200, 1000, LONGEST)
    alike = framed(Opcode.TEXT, b"no frame", masked=masked)
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
            # Where one in parts has not ended, that is against the rules.
            fin = in_parts and rng.random() < 0.7
            opcode, data, in_parts = rng.choice((Opcode.TEXT, Opcode.TEXT, Opcode.BINARY)), data[:500], True
        elif kind == 2:
            opcode = Opcode.BINARY
        parts.append(framed(opcode, data, masked=masked, fin=fin))
    end = rng.randrange(8)
    if end == 0:
        parts.append(framed(Opcode.TEXT, bytes(LONGEST + 1), masked=masked))
    elif end == 1:
        parts.append(framed(Opcode.TEXT, b"not for this side", masked=not masked))
    elif end == 2:
        # Also before one in parts has ended.
        parts.append(framed(Opcode.TEXT, b"x" * 300, masked=masked))
    elif end == 3:
        parts.append(b"\x81" + rng.randbytes(20))
    elif end == 4:
        # A length in more bytes than it needs.
        key = bytes(4) if masked else b""
        parts.append(struct.pack("!BBH", 0x81, 126 | (0x80 if masked else 0), 5) + key + b"hello")
    elif end == 5:
        parts.append(framed(Opcode.CLOSE, struct.pack("!H", 1000) + b"bye", masked=masked))
    elif end == 6:
        parts.append(framed(Opcode.TEXT, b"y" * 300, masked=masked)[: rng.randrange(1, 300)])
    return parts


def cut(rng, parts):
    """The same bytes, cut where the frames are, or anywhere."""
    data = b"".join(parts)
    ends = list(itertools.accumulate(map(len, parts)))
    way = rng.randrange(4)
    if way == 0:
        return parts
    if way == 1:
        return [data]
    if way == 2:
        # A byte or a few too early or too late: in a head, or before the last byte of all.
        places = sorted({min(max(0, end + rng.choice((-1, -1, 1, 2, 3, 5))), len(data)) for end in ends})
    else:
        places = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(1, 9)))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True) if a < b]


@pytest.mark.parametrize("seed", range(80))
async def test_a_server_hears_what_the_library_hears(seed):
    rng = random.Random(seed)
    chunks = cut(rng, frames(rng, masked=True))
    mine = await server_told(partial(whole.ServerSide, longest=LONGEST), chunks)
    assert mine == await server_told(ServerConnection, chunks)


@pytest.mark.parametrize("seed", range(80))
async def test_a_client_hears_what_the_library_hears(seed):
    rng = random.Random(seed)
    chunks = cut(rng, frames(rng, masked=False))
    mine = await client_told(partial(whole.ClientSide, longest=LONGEST), chunks)
    assert mine == await client_told(ClientConnection, chunks)


@pytest.fixture
def taken(monkeypatch):
    """How many bytes did not go through the library's parser."""
    counted = []
    take = whole._Whole._taken

    def counting(self, data):
        rest = take(self, data)
        counted.append(len(data) - len(rest))
        return rest

    monkeypatch.setattr(whole._Whole, "_taken", counting)
    return counted


async def test_texts_in_one_piece_do_not_take_the_librarys_way(taken):
    sizes = [1, 125, 126, 1000, LONGEST]
    parts = [Frame(Opcode.TEXT, b"x" * size).serialize(mask=True) for size in sizes]
    told = await server_told(partial(whole.ServerSide, longest=LONGEST), [b"".join(parts)])
    assert told[0] == [b"x" * size for size in sizes]
    assert sum(taken) > LONGEST / 2


async def test_where_the_library_does_not_show_what_it_waits_for_it_reads_everything(taken, monkeypatch):
    monkeypatch.setattr(whole, "_WAITING", None)
    part = Frame(Opcode.TEXT, b"hello").serialize(mask=True)
    assert (await server_told(partial(whole.ServerSide, longest=LONGEST), [part]))[0] == [b"hello"]
    assert taken == []


async def test_a_text_before_one_in_parts_has_ended_is_a_mistake(taken):
    chunks = [framed(Opcode.TEXT, b"in", masked=True, fin=False), framed(Opcode.TEXT, b"whole", masked=True)]
    messages, (_, sent) = await server_told(partial(whole.ServerSide, longest=LONGEST), chunks)
    assert (messages, sent) == ([], CloseCode.PROTOCOL_ERROR)
    assert taken == []
