"""What each store says it can do is what it does."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from amends import stores
from amends.durable.batch import run_without_waiting

SCOPES = {"memory": "process", "sqlite": "machine", "nats": "network", "postgres": "network"}


async def test_the_traits_are_true(store, backend):
    """Transactions, SQL and immediate completion work where the traits say so, and only there."""
    traits = store.traits
    assert traits.scope == SCOPES[backend]
    assert traits.durable is (backend != "memory")
    assert traits.notifies is (backend in {"nats", "postgres"})
    assert traits.transactions is (backend != "nats")
    assert traits.ordered is (backend != "nats")
    for expected, work in (
        (traits.transactions, lambda tx: None),
        (traits.sql, lambda tx: tx.sql("SELECT 1")),
    ):
        try:
            await store.transaction(work)
        except stores.UnsupportedError:
            assert not expected
        else:
            assert expected
    if traits.immediate:
        run_without_waiting(_write(store))
    assert not traits.exclusive


async def test_only_an_unnamed_memory_store_is_exclusive():
    """Two handles on `memory:` are two stores."""
    async with await stores.open("memory:") as one, await stores.open("memory:") as other:
        assert one.traits.exclusive
        assert one.traits.scope == "object"
        await one.table("t").put("k", b"v")
        assert await other.table("t").get("k") is None


def test_traits_are_a_value():
    """They compare by content and cannot be changed."""
    traits = asyncio.run(_memory_traits())
    assert traits == dataclasses.replace(traits)
    with pytest.raises(dataclasses.FrozenInstanceError):
        traits.sql = True


async def _write(store):
    await store.table("t").put("k", b"v")
    await store.log("l").append(b"entry")
    await store.queue("q").put(b"message")
    assert await store.queue("q").take() is not None


async def _memory_traits():
    async with await stores.open("memory:") as store:
        return store.traits
