"""Heartbeats and acknowledgements, where they were agreed."""

import asyncio
import time

import pytest

from amends.errors.arcp import (
    HeartbeatLostError,
)
from tests.arcp.client.talking import talking


async def test_pings_are_answered_and_sent():
    """6.4: an idle client pings; the runtime's pings are answered with their nonce."""

    pinged = asyncio.Event()

    async def script(peer):
        await peer.welcome(heartbeat_interval_sec=1.0)
        await peer.send("session.ping", {"nonce": "n1"})
        pong = await peer.take("session.pong")
        assert pong["payload"]["ping_nonce"] == "n1"
        await peer.send("session.ping", {"nonce": 5})
        await peer.take("session.pong")
        for _ in range(3):
            ping = await peer.take("session.ping")
            assert ping["payload"]["nonce"]
            await peer.send("session.pong", {"ping_nonce": ping["payload"]["nonce"]})
        pinged.set()
        await peer.accept()
        await peer.result(1, "alive")
        await peer.goodbye()

    async with talking(script) as (client, scripted):
        await pinged.wait()
        assert await (await client.submit("echo")).done == "alive"
        assert len(scripted.peers) == 1


async def test_silence_is_noticed():
    """6.4: two intervals without a word, and the connection counts as dead; then it is resumed, or lost."""

    async def first(peer):
        await peer.welcome(heartbeat_interval_sec=0.5)
        await peer.accept()
        await peer.take("nothing")

    async def second(peer):
        await peer.welcome(token=None, heartbeat_interval_sec=0.5)
        await peer.event(1)
        await peer.take("nothing")

    async with talking(first, second) as (client, scripted):
        handle = await client.submit("echo")
        with pytest.raises(HeartbeatLostError) as caught:
            await handle.done
        assert caught.value.details == {"reason": "silent"}
        assert [event.seq async for event in handle.events()] == [1]
        assert len(scripted.peers) == 2


async def test_heartbeats_whose_interval_was_left_open(monkeypatch):
    """Agreed on is agreed on: silence is noticed all the same."""
    monkeypatch.setattr("amends.arcp.client.session._INTERVAL", 0.02)

    async def script(peer):
        await peer.welcome(token=None)
        await peer.accept()
        await peer.take("nothing")

    async with talking(script) as (client, _):
        with pytest.raises(HeartbeatLostError) as caught:
            await (await client.submit("echo")).done
        assert caught.value.details == {"reason": "silent"}


async def test_no_heartbeat_where_it_was_not_agreed():
    """An interval alone is no agreement."""

    async def script(peer):
        await peer.welcome(heartbeat_interval_sec=0.01, capabilities={"features": ["ack"]})
        await asyncio.sleep(0.1)
        await peer.goodbye()
        assert not [message for message in peer.received if message["type"] == "session.ping"]

    async with talking(script) as (client, _):
        await asyncio.sleep(0.1)
        assert client._link._interval is None


async def test_acknowledgements_come_at_a_bounded_rate():
    """6.5: a few hundred milliseconds apart, or after a few hundred events; the highest number each time."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        begun = time.monotonic()
        for seq in range(1, 1001):
            await peer.event(seq)
        ack = await peer.take("session.ack")
        while ack["payload"]["last_processed_seq"] < 1000:
            ack = await peer.take("session.ack")
        acks = [message for message in peer.received if message["type"] == "session.ack"]
        assert len(acks) <= 5 + (time.monotonic() - begun) / 0.2
        await peer.result(1001, 1)
        await peer.goodbye()

    async with talking(script) as (client, _):
        assert await (await client.submit("echo")).done == 1


async def test_no_acknowledgements_where_they_were_not_agreed():
    """The feature decides."""

    async def script(peer):
        await peer.welcome(capabilities={"features": []})
        await peer.accept()
        for seq in range(1, 601):
            await peer.event(seq)
        await peer.result(601, 1)
        await peer.goodbye()
        assert {message["type"] for message in peer.received} == {
            "session.hello",
            "job.submit",
            "session.close",
        }

    async with talking(script) as (client, _):
        assert await (await client.submit("echo")).done == 1
