"""The log, with the same tests for every backend."""

from __future__ import annotations

import asyncio

import pytest

from amends.stores import Bounds, ConflictError, TrimmedError
from tests.stores.conftest import BACKENDS
from tests.stores.odd import ODD_KEYS

pytestmark = pytest.mark.parametrize("backend", [*BACKENDS, "nats-grouped"], indirect=True)


async def first(iterator, count):
    """The next `count` items, within a hundred seconds."""
    items = []

    async def collect():
        async for item in iterator:
            items.append(item)
            if len(items) == count:
                return

    await asyncio.wait_for(collect(), 100)
    await iterator.aclose()
    return items


async def test_numbers_from_one_without_gaps(store):
    log = store.log("jobs")
    assert [await log.append(b"%d" % i) for i in range(5)] == [1, 2, 3, 4, 5]
    assert [(e.seq, e.value) for e in await log.read()] == [(i + 1, b"%d" % i) for i in range(5)]


async def test_an_empty_log_reads_as_empty(store):
    log = store.log("never written")
    assert await log.read() == []
    assert await log.read(7) == []
    assert await log.bounds() == Bounds(1, 0)
    assert await log.trim(5) == 1


async def test_concurrent_appends_are_all_kept_in_one_order(store, other):
    logs = [store.log("l"), other.log("l")]
    seqs = await asyncio.gather(*(logs[i % 2].append(b"%d" % i) for i in range(200)))
    assert sorted(seqs) == list(range(1, 201))
    entries = await store.log("l").read(limit=500)
    assert [e.seq for e in entries] == list(range(1, 201))
    assert {seqs[int(e.value)]: e.value for e in entries} == {e.seq: e.value for e in entries}


async def test_reading_from_a_number_with_a_limit(store):
    log = store.log("l")
    for i in range(10):
        await log.append(b"%d" % i)
    assert [e.seq for e in await log.read(4, limit=3)] == [4, 5, 6]
    assert [e.seq for e in await log.read(9, limit=100)] == [9, 10]
    assert await log.read(11) == []
    assert await log.read(1000) == []
    with pytest.raises(ValueError):
        await log.read(limit=0)


async def test_the_same_dedupe_id_adds_nothing(store, other):
    log = store.log("l")
    one = await log.append(b"first", dedupe="a")
    assert await log.append(b"again", dedupe="a") == one
    assert await other.log("l").append(b"again", dedupe="a") == one
    assert await log.append(b"second", dedupe="b") == one + 1
    assert await store.log("elsewhere").append(b"another log", dedupe="a") == 1
    assert [(e.value, e.dedupe) for e in await log.read()] == [(b"first", "a"), (b"second", "b")]


@pytest.mark.parametrize("dedupe", [*ODD_KEYS, ""])
async def test_dedupe_ids_may_be_any_text(store, dedupe):
    log = store.log("l")
    assert await log.append(b"x", dedupe=dedupe) == 1
    assert await log.append(b"x", dedupe=dedupe) == 1
    assert (await log.read())[0].dedupe == dedupe


async def test_racing_appends_with_one_dedupe_id_make_one_entry(store, other):
    seqs = await asyncio.gather(
        *((store if i % 2 else other).log("l").append(b"x", dedupe="same") for i in range(40))
    )
    assert set(seqs) == {1}
    assert await store.log("l").bounds() == Bounds(1, 1)


async def test_append_only_after_an_expected_number(store):
    log = store.log("l")
    assert await log.append(b"a", last=0) == 1
    with pytest.raises(ConflictError) as caught:
        await log.append(b"b", last=0)
    assert caught.value.expected == 0
    assert caught.value.actual in {1, None}
    assert await log.append(b"b", last=1) == 2
    assert [e.value for e in await log.read()] == [b"a", b"b"]


async def test_of_many_writers_expecting_the_same_number_one_wins(store, other):
    async def attempt(i):
        try:
            return await (store if i % 2 else other).log("l").append(b"%d" % i, last=0)
        except ConflictError:
            return None

    results = await asyncio.gather(*(attempt(i) for i in range(20)))
    assert [r for r in results if r is not None] == [1]


async def test_trimming_removes_the_oldest_and_never_reuses_numbers(store):
    log = store.log("l")
    for i in range(10):
        await log.append(b"%d" % i)
    assert await log.trim(4) == 4
    assert await log.trim(2) == 4
    assert await log.bounds() == Bounds(4, 10)
    assert (await log.read())[0].seq == 4
    with pytest.raises(TrimmedError) as caught:
        await log.read(3)
    assert caught.value.first == 4
    assert await log.trim(1000) == 11
    assert await log.bounds() == Bounds(11, 10)
    assert await log.read() == []
    assert await log.append(b"next") == 11
    assert [e.seq for e in await log.read()] == [11]


async def test_following_yields_existing_and_new_entries(store, other):
    log = store.log("l")
    await log.append(b"1")
    await log.append(b"2")
    following = asyncio.ensure_future(first(log.follow(), 5))
    await asyncio.sleep(0.05)
    for i in (3, 4):
        await log.append(b"%d" % i)
    await other.log("l").append(b"5")
    assert [(e.seq, e.value) for e in await following] == [(i, b"%d" % i) for i in range(1, 6)]


async def test_following_a_log_before_its_first_entry(store, other):
    following = asyncio.ensure_future(first(store.log("later").follow(), 1))
    await asyncio.sleep(0.1)
    await other.log("later").append(b"here")
    assert (await following)[0].value == b"here"


async def test_following_from_the_end_skips_older_entries(store):
    log = store.log("l")
    await log.append(b"old")
    following = asyncio.ensure_future(first(log.follow((await log.bounds()).last + 1), 1))
    await asyncio.sleep(0.05)
    await log.append(b"new")
    assert [(e.seq, e.value) for e in await following] == [(2, b"new")]


async def test_a_slow_follower_loses_no_entries_and_delays_no_writer(store, other):
    log = store.log("l")
    seen = []

    async def slowly():
        async for entry in other.log("l").follow(1):
            seen.append(entry.seq)
            if entry.seq % 100 == 0:
                await asyncio.sleep(0.02)
            if entry.seq == 2000:
                return

    follower = asyncio.ensure_future(slowly())
    for _ in range(20):
        await asyncio.gather(*(log.append(b"x" * 100) for _ in range(100)))
    await asyncio.wait_for(follower, 100)
    assert seen == list(range(1, 2001))


async def test_following_from_a_trimmed_entry_raises(store):
    log = store.log("l")
    for i in range(10):
        await log.append(b"%d" % i)
    await log.trim(6)
    follower = log.follow(3)
    with pytest.raises(TrimmedError):
        await anext(follower)


async def test_a_follower_overtaken_by_a_trim_sees_no_gap(store, other):
    """It may still yield entries that it has fetched; then it raises instead of skipping the trimmed ones."""
    log = store.log("l")
    for _ in range(15):
        await asyncio.gather(*(log.append(b"x") for _ in range(100)))
    follower = other.log("l").follow(1)
    seen = [(await anext(follower)).seq]
    await log.trim(1400)
    with pytest.raises(TrimmedError) as caught:
        while True:
            seen.append((await asyncio.wait_for(anext(follower), 100)).seq)
    assert caught.value.first == 1400
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) < 1400


async def test_large_and_empty_values(store):
    log = store.log("l")
    large = bytes(range(256)) * 3906
    await log.append(large)
    await log.append(b"")
    entries = await first(log.follow(), 2)
    assert [e.value for e in entries] == [large, b""]
    assert [e.value for e in await log.read()] == [large, b""]


async def test_values_must_be_bytes(store):
    with pytest.raises(TypeError):
        await store.log("l").append("text")
    assert await store.log("l").append(bytearray(b"buffer")) == 1


@pytest.mark.parametrize("name", ODD_KEYS)
async def test_names_may_be_any_text(store, name):
    await store.log(name).append(b"x")
    await store.log(name + "!").append(b"y")
    assert [e.value for e in await store.log(name).read()] == [b"x"]
    assert name in (await store.names())["logs"]


async def test_invalid_names(store):
    for name in ("", "\ud800"):
        with pytest.raises(ValueError):
            store.log(name)


async def test_a_dropped_log_starts_again(store):
    log = store.log("l")
    await log.append(b"x")
    await log.drop()
    assert await log.bounds() == Bounds(1, 0)
    assert await log.append(b"y") == 1
    assert [e.value for e in await log.read()] == [b"y"]
    await store.log("never").drop()


async def test_the_newest_entry(store):
    log = store.log("l")
    assert await log.tail() is None
    await log.append(b"1", dedupe="a")
    await log.append(b"2", dedupe="b")
    newest = await log.tail()
    assert (newest.seq, newest.value, newest.dedupe) == (2, b"2", "b")
    await log.trim(10)
    assert await log.tail() is None
    assert await log.append(b"3", last=2) == 3
    assert (await log.tail()).seq == 3


async def test_a_signal_is_notified_of_appends(store, other):
    log = store.log("l")
    await log.append(b"1")
    async with log.watch() as signal:
        for number in (2, 3):
            seen = signal.count
            await asyncio.sleep(0.05)
            await other.log("l").append(b"x")
            while not await log.read(number):
                await asyncio.wait_for(signal.wait(seen), 100)
                seen = signal.count


async def test_a_concurrent_trim_and_append(store, other):
    """The numbers continue, whichever came first."""
    log = store.log("l")
    for _ in range(3):
        await log.append(b"x")
    await asyncio.gather(log.trim(100), other.log("l").append(b"y"))
    bounds = await log.bounds()
    assert bounds.last == 4
    assert bounds.first in {4, 5}
    assert await log.append(b"z", last=4) == 5


async def test_a_log_dropped_and_recreated_by_another_process(store, other):
    """The cached position of the old log causes no wrong append."""
    log = store.log("l")
    for _ in range(5):
        await log.append(b"old", dedupe="one")
        await log.append(b"old")
    await other.log("l").drop()
    assert await other.log("l").append(b"new", dedupe="one") == 1
    with pytest.raises(ConflictError):
        await log.append(b"late", last=6)
    assert await log.append(b"newer", last=1) == 2
    assert [e.value for e in await log.read()] == [b"new", b"newer"]
