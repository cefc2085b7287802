"""The send queue: one write per turn of the loop, in order; nothing is kept of a lost connection."""

import asyncio
import json

import pytest

from amends.arcp.client.outbox import Outbox
from amends.arcp.transports import ConnectionLost
from amends.arcp.wire import MAX_FRAME, envelope
from amends.errors.arcp import InvalidRequestError


class Wire:
    """Records writes; with `busy`, `post` refuses."""

    def __init__(self, busy=False, lost=False):
        self.writes = []
        self.busy, self.lost, self.closed = busy, lost, False

    def post(self, frames):
        if self.busy:
            return False
        self.writes.append([json.loads(frame)["payload"]["n"] for frame in frames])
        return True

    async def send_all(self, frames):
        await asyncio.sleep(0)
        if self.lost:
            raise ConnectionLost
        self.writes.append([json.loads(frame)["payload"]["n"] for frame in frames])

    async def close(self):
        self.closed = True


def message(number):
    return envelope("session.ack", {"n": number}, session_id="sess_1")


async def turns(count=5):
    for _ in range(count):
        await asyncio.sleep(0)


async def test_the_messages_of_a_turn_are_one_write():
    outbox, wire = Outbox(), Wire()
    outbox.attach(wire)
    for number in range(3):
        outbox.post(message(number))
    assert wire.writes == []
    await turns()
    outbox.post(message(3), alone=True)
    assert wire.writes == [[0, 1, 2], [3]]


async def test_a_busy_connection_is_waited_for():
    """In order, also for what is posted meanwhile."""
    outbox, wire = Outbox(), Wire(busy=True)
    outbox.attach(wire)
    outbox.post(message(0), alone=True)
    outbox.post(message(1), alone=True)
    await turns()
    assert wire.writes == [[0], [1]]
    await outbox.close()


async def test_nothing_is_kept_of_a_lost_connection():
    """The session repeats the requests that can be repeated."""
    outbox, wire = Outbox(), Wire(busy=True, lost=True)
    outbox.attach(wire)
    outbox.post(message(0))
    await turns()
    outbox.drop()
    await turns()
    assert (wire.closed, outbox.connection) == (True, None)
    fresh = Wire()
    outbox.attach(fresh)
    outbox.post(message(1))
    await turns()
    assert fresh.writes == [[1]]


async def test_what_cannot_be_sent_raises_where_it_is_posted():
    outbox = Outbox()
    outbox.attach(Wire())
    with pytest.raises(InvalidRequestError) as caught:
        outbox.post(envelope("job.submit", {"input": "x" * MAX_FRAME}))
    assert caught.value.details["limit"] == MAX_FRAME
    with pytest.raises(TypeError):
        outbox.post(envelope("job.submit", {"input": object()}))
