"""The short way between nats-py's connection and whoever waits."""

from __future__ import annotations

import asyncio
import random

import pytest
from nats import errors
from nats.aio.client import Client

from amends.stores.nats.limiter import Room
from amends.stores.nats.wire import Wire, _Sieve
from tests.stores.servers import NatsServer


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of this file's own: it is stopped and started."""
    server = NatsServer(tmp_path_factory.mktemp("wire"))
    server.start()
    yield server
    server.stop()


class Sieved:
    """A sieve with one subscription, what was heard there, and what was passed on to the library."""

    def __init__(self):
        self.heard, self.others = [], []
        self.feed = _Sieve({1: self.heard.append}, self.others.append).feed


MESSAGES = (
    b"MSG a.b 1 5\r\nhello\r\n"
    b"PONG\r\n"
    b"MSG c 1 _INBOX.x 0\r\n\r\n"
    b"HMSG d 1 $JS.ACK.y 22 25\r\nNATS/1.0\r\nA: b\r\nC:\r\n\r\nxyz\r\n"
    b"+OK\r\n"
    b"HMSG e 1 26 26\r\nNATS/1.0 408 Timed Out\r\n\r\n\r\n"
    b"MSG nobody 99 2\r\n\r\n\r\n"
    b"MSG f 1 4\r\nMSG \r\n"
)


@pytest.mark.parametrize("seed", range(20))
def test_messages_wherever_they_are_cut(seed):
    """Every message is heard once and in order, however the bytes come; other lines are the library's."""
    sieved = Sieved()
    dice = random.Random(seed)
    cuts = sorted(dice.sample(range(1, len(MESSAGES)), dice.choice([0, 1, 3, 40, len(MESSAGES) - 1])))
    for begin, end in zip([0, *cuts], [*cuts, len(MESSAGES)], strict=True):
        sieved.feed(MESSAGES[begin:end])
    assert [(m.subject, m.reply, m.data, m.headers) for m in sieved.heard] == [
        ("a.b", "", b"hello", {}),
        ("c", "_INBOX.x", b"", {}),
        ("d", "$JS.ACK.y", b"xyz", {"A": "b", "C": ""}),
        ("e", "", b"", {"Status": "408", "Description": "Timed Out"}),
        ("f", "", b"MSG ", {}),
    ]
    assert sieved.others == [b"PONG\r\n", b"+OK\r\n"]


@pytest.mark.parametrize(
    "line",
    [
        b"MSG a 1\r\n",
        b"MSG a x 5\r\n",
        b"MSG a 1 -5\r\n",
        b"HMSG a 1 9 5\r\n",
        b"HMSG a 1 5\r\n",
        b"MSG a 1 r s 5\r\n",
        b"MSG \xff 1 5\r\n",
        b"WHAT\r\n",
    ],
)
async def test_what_is_no_nats(line):
    """It is left to the library, which says so and connects anew."""
    sieved = Sieved()
    sieved.feed(line)
    assert (sieved.heard, len(sieved.others)) == ([], 1)
    with pytest.raises(errors.ProtocolError):
        await Client()._ps.parse(sieved.others[0])


def test_whoever_fails_does_not_stop_the_others(caplog):
    """What is heard next is handed over too."""

    def fail(_):
        raise RuntimeError

    heard = []
    _Sieve({1: fail, 2: heard.append}, pytest.fail).feed(b"MSG a 1 1\r\nx\r\nMSG b 2 1\r\ny\r\n")
    assert [m.data for m in heard] == [b"y"]
    assert "could not be handed over" in caplog.text


async def test_what_is_said_in_one_turn_leaves_together(server):
    """A hundred messages, one write; and the answers of a connection made anew are heard as well."""
    wire = Wire(Client())
    await wire.client.connect(server.url, max_reconnect_attempts=-1, reconnect_time_wait=0.05)
    heard, all_there = [], asyncio.Event()

    def hear(message):
        heard.append(message.data)
        if message.data == b"99":
            all_there.set()

    number = wire.hear("turn.*", hear)
    await wire.client.flush()
    writer = wire.client._transport._io_writer
    real, writes = writer.write, []
    writer.write = lambda data: (writes.append(data), real(data))
    for payload in range(100):
        wire.post("turn.x", b"%d" % payload, "", {"A": "b"} if payload % 2 else None)
    async with asyncio.timeout(60):
        await all_there.wait()
    assert len([data for data in writes if b"PUB turn.x" in data]) == 1
    assert heard == [b"%d" % payload for payload in range(100)]
    # The server goes and comes back: what was listened to is listened to again.
    server.kill()
    async with asyncio.timeout(60):
        while wire.client.is_connected:
            await asyncio.sleep(0.01)
    server.start()
    async with asyncio.timeout(60):
        while not wire.client.is_connected:
            await asyncio.sleep(0.01)
    all_there.clear()
    async with asyncio.timeout(60):
        wire.post("turn.x", b"99", "", None)
        await all_there.wait()
    wire.unhear(number)
    wire.post("turn.x", b"late", "", None)
    await wire.client.flush()
    assert heard[-1] == b"99"
    await wire.client.close()
    with pytest.raises(errors.ConnectionClosedError):
        wire.post("turn.x", b"", "", None)


async def test_more_than_the_server_takes_at_once(server):
    """What does not fit into the socket is waited for by the library, and arrives whole and in order."""
    wire = Wire(Client())
    await wire.client.connect(server.url)
    heard, all_there = [], asyncio.Event()

    def hear(message):
        heard.append(message.data[:4])
        if len(heard) == 64:
            all_there.set()

    wire.hear("much", hear)
    for number in range(64):
        wire.post("much", b"%04d" % number + b"x" * 500_000, "", None)
        if number % 4 == 0:
            await asyncio.sleep(0)
    async with asyncio.timeout(100):
        await all_there.wait()
    assert heard == [b"%04d" % number for number in range(64)]
    await wire.client.close()


async def test_nothing_piles_up_without_a_connection(server):
    """Beyond what the library keeps for the next connection, whoever sends is told."""
    wire = Wire(Client())
    await wire.client.connect(server.url, pending_size=1000)
    wire.client._status = Client.RECONNECTING
    wire.post("a", b"x" * 900, "", None)
    with pytest.raises(errors.OutboundBufferLimitError):
        wire.post("a", b"x" * 900, "", None)
    wire.client._status = Client.CONNECTED
    await wire.client.close()


async def test_room_is_given_in_the_order_of_coming():
    """Also when somebody goes who waits, or who has just been given his place."""
    room, order = Room(1), []

    async def come(name):
        if not room.take():
            await room.turn()
        order.append(name)

    await come("first")
    tasks = {name: asyncio.ensure_future(come(name)) for name in ("gone", "given", "second", "third")}
    await asyncio.sleep(0)
    tasks["gone"].cancel()
    await asyncio.sleep(0)
    room.leave()
    tasks["given"].cancel()
    async with asyncio.timeout(60):
        await tasks["second"]
        room.leave()
        await tasks["third"]
        room.leave()
    assert order == ["first", "second", "third"]
    assert (room.take(), room.take()) == (True, False)
