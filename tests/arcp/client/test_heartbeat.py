"""Heartbeats and acknowledgements, if they were negotiated."""

import asyncio
import time

import pytest

from amends.errors.arcp import (
    HeartbeatLostError,
)
from tests.arcp.client.scripted_client import scripted_client


async def test_pings_are_answered_and_sent():
    """6.4: an idle client sends pings; it answers the runtime's pings with their nonce."""

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

    async with scripted_client(script) as (client, scripted):
        await pinged.wait()
        assert await (await client.submit("echo")).done == "alive"
        assert len(scripted.peers) == 1


async def test_silence_is_detected():
    """6.4: after two intervals without a message the connection counts as lost; the session is resumed, or fails."""

    async def first(peer):
        await peer.welcome(heartbeat_interval_sec=0.5)
        await peer.accept()
        await peer.take("nothing")

    async def second(peer):
        await peer.welcome(token=None, heartbeat_interval_sec=0.5)
        await peer.event(1)
        await peer.take("nothing")

    async with scripted_client(first, second) as (client, scripted):
        handle = await client.submit("echo")
        with pytest.raises(HeartbeatLostError) as caught:
            await handle.done
        assert caught.value.details == {"reason": "silent"}
        assert [event.seq async for event in handle.events()] == [1]
        assert len(scripted.peers) == 2


async def test_heartbeats_without_an_interval(monkeypatch):
    """The runtime may leave the interval open; silence is detected anyway."""
    monkeypatch.setattr("amends.arcp.client.session._DEFAULT_INTERVAL", 0.02)

    async def script(peer):
        await peer.welcome(token=None)
        await peer.accept()
        await peer.take("nothing")

    async with scripted_client(script) as (client, _):
        with pytest.raises(HeartbeatLostError) as caught:
            await (await client.submit("echo")).done
        assert caught.value.details == {"reason": "silent"}


async def test_no_heartbeat_if_it_was_not_negotiated():
    """An interval without the feature is not enough."""

    async def script(peer):
        await peer.welcome(heartbeat_interval_sec=0.01, capabilities={"features": ["ack"]})
        await asyncio.sleep(0.1)
        await peer.goodbye()
        assert not [message for message in peer.received if message["type"] == "session.ping"]

    async with scripted_client(script) as (client, _):
        await asyncio.sleep(0.1)
        assert client._session._interval is None


async def test_the_rate_of_acknowledgements_is_limited():
    """6.5: one per few hundred milliseconds or events, each with the highest number."""

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

    async with scripted_client(script) as (client, _):
        assert await (await client.submit("echo")).done == 1


async def test_no_acknowledgements_if_they_were_not_negotiated():
    """Only the feature enables them."""

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

    async with scripted_client(script) as (client, _):
        assert await (await client.submit("echo")).done == 1
