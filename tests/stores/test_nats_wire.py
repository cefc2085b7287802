"""The read and write path that replaces nats-py's, and the limiter of requests."""

from __future__ import annotations

import asyncio
import random

import pytest
from nats import errors
from nats.aio.client import Client

from amends.stores.nats.limiter import Limiter
from amends.stores.nats.wire import Wire, _Parser
from tests.stores.servers import NatsServer


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server for this file, because its tests stop and start it."""
    server = NatsServer(tmp_path_factory.mktemp("wire"))
    server.start()
    yield server
    server.stop()


class Parsed:
    """A parser with one subscription, the messages it received, and the lines passed to nats-py."""

    def __init__(self):
        self.received, self.others = [], []
        self.feed = _Parser({1: self.received.append}, self.others.append).feed


MESSAGES = (
    b"MSG a.b 1 5\r\nhello\r\n"
    b"PONG\r\n"
    b"MSG c 1 _INBOX.x 0\r\n\r\n"
    b"HMSG d 1 $JS.ACK.y 22 25\r\nNATS/1.0\r\nA: b\r\nC:\r\n\r\nxyz\r\n"
    b"+OK\r\n"
    b"HMSG e 1 26 26\r\nNATS/1.0 408 Timed Out\r\n\r\n\r\n"
    b"MSG unsubscribed 99 2\r\n\r\n\r\n"
    b"MSG f 1 4\r\nMSG \r\n"
)


@pytest.mark.parametrize("seed", range(20))
def test_messages_split_at_any_byte(seed):
    """Every message is received once and in order, however the bytes are split; other lines go to nats-py."""
    parsed = Parsed()
    dice = random.Random(seed)
    cuts = sorted(dice.sample(range(1, len(MESSAGES)), dice.choice([0, 1, 3, 40, len(MESSAGES) - 1])))
    for begin, end in zip([0, *cuts], [*cuts, len(MESSAGES)], strict=True):
        parsed.feed(MESSAGES[begin:end])
    assert [(m.subject, m.reply, m.data, m.headers) for m in parsed.received] == [
        ("a.b", "", b"hello", {}),
        ("c", "_INBOX.x", b"", {}),
        ("d", "$JS.ACK.y", b"xyz", {"A": "b", "C": ""}),
        ("e", "", b"", {"Status": "408", "Description": "Timed Out"}),
        ("f", "", b"MSG ", {}),
    ]
    assert parsed.others == [b"PONG\r\n", b"+OK\r\n"]


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
async def test_invalid_lines_go_to_nats_py(line):
    """nats-py reports a protocol error for them and reconnects."""
    parsed = Parsed()
    parsed.feed(line)
    assert (parsed.received, len(parsed.others)) == ([], 1)
    with pytest.raises(errors.ProtocolError):
        await Client()._ps.parse(parsed.others[0])


def test_a_failing_handler_does_not_stop_the_others(caplog):
    """The next message is received too."""

    def fail(_):
        raise RuntimeError

    received = []
    _Parser({1: fail, 2: received.append}, pytest.fail).feed(b"MSG a 1 1\r\nx\r\nMSG b 2 1\r\ny\r\n")
    assert [m.data for m in received] == [b"y"]
    assert "the handler of a NATS message failed" in caplog.text


async def test_messages_of_one_turn_are_sent_with_one_write(server):
    """A hundred messages, one write; and the subscription still works after a reconnect."""
    wire = Wire(Client())
    await wire.client.connect(server.url, max_reconnect_attempts=-1, reconnect_time_wait=0.05)
    received, all_there = [], asyncio.Event()

    def receive(message):
        received.append(message.data)
        if message.data == b"99":
            all_there.set()

    number = wire.subscribe("turn.*", receive)
    await wire.client.flush()
    writer = wire.client._transport._io_writer
    real, writes = writer.write, []
    writer.write = lambda data: (writes.append(data), real(data))
    for payload in range(100):
        wire.publish("turn.x", b"%d" % payload, "", {"A": "b"} if payload % 2 else None)
    async with asyncio.timeout(60):
        await all_there.wait()
    assert len([data for data in writes if b"PUB turn.x" in data]) == 1
    assert received == [b"%d" % payload for payload in range(100)]
    # After a restart of the server the subscription is renewed.
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
        wire.publish("turn.x", b"99", "", None)
        await all_there.wait()
    wire.unsubscribe(number)
    wire.publish("turn.x", b"late", "", None)
    await wire.client.flush()
    assert received[-1] == b"99"
    await wire.client.close()
    with pytest.raises(errors.ConnectionClosedError):
        wire.publish("turn.x", b"", "", None)


async def test_more_data_than_the_socket_buffer_takes(server):
    """nats-py waits for the socket, and the messages arrive complete and in order."""
    wire = Wire(Client())
    await wire.client.connect(server.url)
    received, all_there = [], asyncio.Event()

    def receive(message):
        received.append(message.data[:4])
        if len(received) == 64:
            all_there.set()

    wire.subscribe("much", receive)
    for number in range(64):
        wire.publish("much", b"%04d" % number + b"x" * 500_000, "", None)
        if number % 4 == 0:
            await asyncio.sleep(0)
    async with asyncio.timeout(100):
        await all_there.wait()
    assert received == [b"%04d" % number for number in range(64)]
    await wire.client.close()


async def test_the_buffer_without_a_connection_is_limited(server):
    """Publishing raises when the buffer that nats-py keeps for the next connection is full."""
    wire = Wire(Client())
    await wire.client.connect(server.url, pending_size=1000)
    wire.client._status = Client.RECONNECTING
    wire.publish("a", b"x" * 900, "", None)
    with pytest.raises(errors.OutboundBufferLimitError):
        wire.publish("a", b"x" * 900, "", None)
    wire.client._status = Client.CONNECTED
    await wire.client.close()


async def test_the_limiter_serves_waiters_in_order():
    """Also if a waiter is cancelled while it waits, or just after it was assigned a slot."""
    limiter, order = Limiter(1), []

    async def acquire(name):
        if not limiter.try_acquire():
            await limiter.wait()
        order.append(name)

    await acquire("first")
    tasks = {name: asyncio.ensure_future(acquire(name)) for name in ("gone", "assigned", "second", "third")}
    await asyncio.sleep(0)
    tasks["gone"].cancel()
    await asyncio.sleep(0)
    limiter.release()
    tasks["assigned"].cancel()
    async with asyncio.timeout(60):
        await tasks["second"]
        limiter.release()
        await tasks["third"]
        limiter.release()
    assert order == ["first", "second", "third"]
    assert (limiter.try_acquire(), limiter.try_acquire()) == (True, False)
