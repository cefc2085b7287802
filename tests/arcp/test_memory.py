"""Connections in memory: back-pressure, and senders that are cancelled."""

from __future__ import annotations

import asyncio

import pytest

from amends.arcp.transports import ConnectionLost, memory


async def test_memory_waits_for_a_slow_reader():
    """A sender waits while the queue is full, a posted batch is refused as a whole, and no frame is lost."""
    near, far = memory.pair(frames=3)
    assert near.post(["0", "1"])
    assert not near.post(["2", "3"])
    await near.send("2")
    sender = asyncio.create_task(near.send("3"))
    given_up = asyncio.create_task(near.send("4"))
    await asyncio.sleep(0)
    assert not sender.done()
    assert not near.post([])
    given_up.cancel()
    assert await far.receive() == "0"
    await sender
    assert [await far.receive() for _ in range(3)] == ["1", "2", "3"]
    assert near.post(["5"])
    assert await far.receive() == "5"
    await asyncio.gather(given_up, return_exceptions=True)


async def test_a_cancelled_sender_wakes_the_next():
    """If a sender is cancelled when it gets room, the next waiting sender gets it."""
    near, far = memory.pair(frames=1)
    await near.send("0")
    first, second = asyncio.create_task(near.send("1")), asyncio.create_task(near.send("2"))
    await asyncio.sleep(0)
    assert await far.receive() == "0"
    first.cancel()
    await asyncio.wait_for(second, 100)
    assert await far.receive() == "2"
    blocked = asyncio.create_task(near.send_all(["3", "4"]))
    await asyncio.sleep(0)
    await far.close()
    with pytest.raises(ConnectionLost):
        await blocked
