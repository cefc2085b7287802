"""Idempotency keys in a store: leases that expire, and take-overs."""

import asyncio

import pytest

from amends import FaultError, stores
from amends.http.idempotency_store import Keys


async def test_completing_after_the_lease_resolves_the_doubt():
    """A request that completes after its lease expired replaces the record that is in doubt."""
    async with await stores.open("memory:") as store:
        keys = Keys(store, expires_in=60, lease=0.1)
        expired = await keys.claim("n", "f", transactional=False)
        await asyncio.sleep(0.2)
        with pytest.raises(FaultError) as caught:
            await keys.claim("n", "f", transactional=False)
        assert caught.value.code == "EFFECT_UNKNOWN"
        await keys.complete(expired, status=201, body=b"{}")
        assert (await keys.claim("n", "f", transactional=False)).status == 201
        other = await keys.claim("m", "f", transactional=True)
        await asyncio.sleep(0.2)
        await Keys(store, expires_in=60, lease=60).claim("m", "f", transactional=True)
        await keys.release(other)
        with pytest.raises(FaultError) as caught:
            await keys.claim("m", "f", transactional=True)
        assert caught.value.code == "CONFLICT"


async def test_completing_after_a_takeover_changes_nothing():
    """The record of the process that took over is kept."""
    async with await stores.open("memory:") as store:
        first, second = Keys(store, expires_in=60, lease=0.1), Keys(store, expires_in=60, lease=60)
        expired = await first.claim("n", "f", transactional=True)
        await asyncio.sleep(0.3)
        taken = await second.claim("n", "f", transactional=True)
        await second.complete(taken, status=201, body=b"theirs")
        await first.complete(expired, status=200, body=b"ours")
        assert (await second.claim("n", "f", transactional=True)).body == b"theirs"
