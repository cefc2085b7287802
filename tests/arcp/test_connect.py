"""Connecting to a runtime object, which is started and stopped with its clients."""

from __future__ import annotations

import asyncio

import pytest

from amends import Policy
from amends.arcp import Limits, Runtime, connect
from amends.core.backoff import Backoff
from amends.errors.arcp import (
    HeartbeatLostError,
    UnauthenticatedError,
)
from tests.arcp.test_client_runtime import register


async def test_connect_starts_and_stops_a_runtime_object():
    """A runtime object is started by the first client and stopped with the last; one that runs is not stopped."""
    runtime = Runtime(tokens={"secret": "alice"}, limits=Limits(cancel_grace=0.1))
    register(runtime)
    async with asyncio.timeout(100):
        for _ in range(2):
            async with connect(runtime, token="secret") as one:
                async with connect(runtime, token="secret") as two:
                    assert await (await two.submit("echo", 2)).done == 2
                assert await (await one.submit("echo", 1)).done == 1
                await one.submit("slow")
            assert not runtime.running
        with pytest.raises(UnauthenticatedError):
            async with connect(runtime, token="wrong"):
                pass
        assert not runtime.running
        async with runtime:
            async with connect(runtime, token="secret"):
                pass
            assert runtime.running


async def test_a_runtime_that_cannot_be_started():
    """The store's error is raised, and the runtime is not running."""
    runtime = Runtime("nonsense:", tokens={"secret": "alice"})
    for _ in range(2):
        with pytest.raises(ValueError):
            async with connect(runtime, token="secret"):
                pass
        assert not runtime.running


async def test_a_runtime_object_that_is_stopped():
    """Connecting to a stopped runtime raises; after it stops, resuming fails as unreachable."""
    runtime = Runtime(tokens={"secret": "alice"}, limits=Limits(drain=0.0, cancel_grace=0.1))
    register(runtime)
    with pytest.raises(RuntimeError):
        await connect(runtime, token="secret")
    async with asyncio.timeout(100):
        await runtime.start()
        client = await connect(
            runtime, token="secret", resuming=Policy(attempts=2, backoff=Backoff(first=0.001))
        )
        handle = await client.submit("slow")
        await runtime.abandon()
        with pytest.raises(HeartbeatLostError) as caught:
            await handle.done
        assert caught.value.details == {"reason": "unreachable"}
        await client.close()
