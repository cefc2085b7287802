"""Batches: one transaction, or changes in the given order."""

import asyncio
import math

import pytest

from amends import stores
from amends.durable.batch import Batch, run_without_waiting
from amends.durable.index import IndexRow
from amends.stores import ConflictError


def whole(lease=None):
    batch = Batch()
    batch.create("t", "new", b"1")
    batch.put("t", "k", b"2")
    batch.index(IndexRow("i", "row", b'{"seq":1}', 1))
    batch.append("l/x", b"entry", last=0)
    batch.enqueue("q", b"message", "key")
    batch.delete("t", "gone")
    batch.retire("t", "old")
    if lease is not None:
        batch.keep_or_end(lease, math.inf)
    return batch


async def stored(store):
    return (
        {row.key: row.value async for row in store.table("t").scan() if row.value},
        [row.value async for row in store.table("i").scan()],
        [entry.value for entry in await store.log("l/x").read(1)],
        (await store.queue("q").size()).ready,
        (await store.queue("work").size()).leased,
    )


async def test_all_changes_are_made(store):
    """Each kind of change is made, on stores with transactions and without."""
    await store.table("t").put("gone", b"x")
    await store.table("t").put("old", b"x")
    await store.queue("work").put(b"m")
    await store.queue("work").put(b"n")
    await whole(await store.queue("work").take()).commit(store)
    back = Batch()
    back.keep_or_end(await store.queue("work").take(), 60)
    await back.commit(store)
    await asyncio.sleep(0.05)
    assert await stored(store) == ({"new": b"1", "k": b"2"}, [b'{"seq":1}'], [b"entry"], 1, 0)
    assert (await store.queue("work").size()).delayed == 1


async def test_a_conflict_undoes_all_changes(store):
    """With transactions nothing is left; the error has the name of the log or table."""
    await store.log("l/x").append(b"first")
    with pytest.raises(ConflictError) as caught:
        await whole().commit(store)
    assert (caught.value.name, caught.value.key) == ("l/x", None)
    if store.traits.transactions:
        assert await stored(store) == ({}, [], [b"first"], 0, 0)
    await store.table("t").discard("new")
    await store.table("t").put("new", b"0")
    with pytest.raises(ConflictError) as caught:
        await whole().commit(store)
    assert (caught.value.name, caught.value.key) == ("t", "new")


async def test_without_waiting():
    """A coroutine on a memory store completes at once; one that waits is an error."""
    async with await stores.open("memory:") as store:
        run_without_waiting(whole().commit(store))
        with pytest.raises(RuntimeError, match="suspended"):
            run_without_waiting(asyncio.sleep(0))
