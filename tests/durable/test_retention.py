"""Retention: by age and by number, and a deletion that fails or is interrupted is repeated."""

import asyncio
import time

import pytest

from amends import stores
from amends.durable.batch import Batch
from amends.durable.keys import Owner, Owners
from amends.durable.retention import Retention, delete_subject
from amends.stores import StoreUnavailableError
from tests.durable.faulty import HOWS, Faulty


@pytest.mark.parametrize("together", [True, False])
async def test_too_old_and_too_many(together):
    """The oldest are deleted; a second call at the same time does nothing."""
    deleted = []

    async def delete(one):
        await asyncio.sleep(0)
        deleted.append(one)

    kept = Retention(delete, ended=lambda one: one, most=100, age=50, together=together)
    now = time.time()
    ends = [now - 60 + number / 10 for number in range(250)]
    for end in ends:
        kept.add(end)
    assert kept.excess == 150
    await asyncio.gather(kept.expire(), kept.expire())
    assert deleted == ends[:150]
    assert list(kept.kept) == ends[150:]
    old = Retention(delete, ended=lambda one: one, most=1000, age=50, together=together)
    for end in ends:
        old.add(end)
    await old.expire()
    assert 100 <= len(deleted) - 150 < 130


@pytest.mark.parametrize("together", [True, False])
async def test_a_failure_and_an_interruption(together):
    """What was not deleted stays, in its order, and is deleted next time."""
    deleted, failing, hanging = [], {2, 5}, asyncio.Event()

    async def delete(one):
        if one in failing:
            raise StoreUnavailableError("away")
        if one == 4 and not hanging.is_set():
            await asyncio.sleep(100)
        deleted.append(one)

    kept = Retention(delete, ended=float, most=0, age=1e12, together=together)
    for number in range(8):
        kept.add(number)
    interrupted = asyncio.ensure_future(kept.expire())
    await asyncio.sleep(0.01)
    interrupted.cancel()
    await asyncio.gather(interrupted, return_exceptions=True)
    hanging.set()
    with pytest.raises(StoreUnavailableError):
        await kept.expire()
    failing.clear()
    await kept.expire()
    assert not kept.kept
    assert set(deleted) == set(range(8))


async def test_deleting_a_subject(store):
    """Its key, its log and its row; the row is last, so that an interrupted deletion is found again."""
    keys, batch = Owners(store, "keys"), Batch()
    for id in ("a", "b"):
        keys.create(batch, f"k{id}", Owner(id))
        batch.append(f"l/{id}", b"entry")
        batch.put("rows", id, b"row")
    await batch.commit(store)
    for _ in range(2):
        await delete_subject(store, "a", log="l/a", row=("rows", "a"), keys=keys, key="ka")
    # The key belongs to another one.
    await delete_subject(store, "a", log="l/a", row=("rows", "a"), keys=keys, key="kb")
    assert await keys.get("ka") is None
    assert (await keys.get("kb")).id == "b"
    assert await store.log("l/a").tail() is None
    assert [row.key async for row in store.table("rows").scan()] == ["b"]


@pytest.mark.parametrize("how", HOWS)
async def test_every_interruption_and_every_failure(how):
    """While anything of a subject is left, its row is left too, so that another process finds it and deletes the rest."""
    tried = 0
    for point in range(10):
        async with await stores.open("memory:") as memory:
            faults, owners = Faulty(memory, transactions=False), Owners(memory, "keys")
            batch = Batch()
            owners.create(batch, "k", Owner("one"))
            batch.append("l/one", b"entry")
            batch.put("rows", "one", b"row")
            await batch.commit(memory)

            def delete(store):
                keys = Owners(store, "keys")
                return delete_subject(store, "one", log="l/one", row=("rows", "one"), keys=keys, key="k")

            async def left(memory=memory, owners=owners):
                log = (await memory.log("l/one").bounds()).last > 0
                return await owners.get("k") is not None or log, await memory.table("rows").get(
                    "one"
                ) is not None

            faults.point, faults.how = point, how
            faults.caller = asyncio.ensure_future(delete(faults))
            await asyncio.gather(faults.caller, return_exceptions=True)
            if faults.count <= point:
                break
            tried += 1
            rest, row = await left()
            assert row or not rest, point
            await delete(memory)
            assert await left() == (False, False), point
    assert tried >= 4


@pytest.mark.parametrize("together", [True, False])
async def test_how_many_are_deleted_at_once(together, monkeypatch):
    """Those that are too old or too many, at most 64 at a time; exactly the number and the age that are kept stay."""
    monkeypatch.setattr("amends.durable.retention.time.time", lambda: 1000.0)
    running, most, deleted = 0, 0, []

    async def delete(one):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        deleted.append(one)

    for ends, left in (
        ([950.0, 950.0], [950.0, 950.0]),
        ([949.0, 950.0, 951.0], [950.0, 951.0]),
        ([1.0, 2.0], []),
        ([960.0] * 103, [960.0] * 100),
        ([1.0] * 150 + [999.0] * 30, [999.0] * 30),
    ):
        kept = Retention(delete, ended=lambda one: one, most=100, age=50.0, together=together)
        for end in ends:
            kept.add(end)
        assert kept.excess == max(0, len(ends) - 100)
        await kept.expire()
        assert list(kept.kept) == left
        assert kept.excess == 0
    assert most == (64 if together else 1)


async def test_nothing_is_in_excess_while_it_is_deleted():
    """Otherwise a caller would start a second deletion."""
    seen = []

    async def delete(one):
        seen.append(kept.excess)

    kept = Retention(delete, ended=float, most=0, age=1e12)
    kept.add(1)
    assert kept.excess == 1
    await kept.expire()
    assert seen == [0]
