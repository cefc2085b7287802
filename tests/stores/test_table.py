"""The table, with the same tests for every backend."""

from __future__ import annotations

import asyncio

import pytest

from amends import stores
from amends.stores import ConflictError
from tests.stores.clocks import SetClock
from tests.stores.odd import ODD_KEYS


async def keys(table, prefix=""):
    return sorted([row.key async for row in table.scan(prefix)])


async def test_put_and_get(store, other):
    table = store.table("t")
    assert await table.get("k") is None
    revision = await table.put("k", b"v")
    row = await other.table("t").get("k")
    assert (row.key, row.value, row.revision, row.expires_in) == ("k", b"v", revision, None)


async def test_put_if_revision(store):
    table = store.table("t")
    one = await table.put("k", b"1")
    two = await table.put("k", b"2", revision=one)
    assert two > one
    with pytest.raises(ConflictError) as caught:
        await table.put("k", b"3", revision=one)
    assert (caught.value.expected, caught.value.actual) == (one, two)
    assert (await table.get("k")).value == b"2"
    with pytest.raises(ConflictError):
        await table.put("absent", b"x", revision=one)


async def test_create_fails_if_the_key_exists(store):
    table = store.table("t")
    one = await table.create("k", b"1")
    with pytest.raises(ConflictError) as caught:
        await table.create("k", b"2")
    assert caught.value.actual == one
    assert await table.delete("k")
    assert await table.create("k", b"3") > one


async def test_delete(store):
    table = store.table("t")
    assert not await table.delete("k")
    one = await table.put("k", b"1")
    with pytest.raises(ConflictError):
        await table.delete("k", revision=one + 1000)
    assert await table.delete("k", revision=one)
    assert await table.get("k") is None
    assert not await table.delete("k")
    with pytest.raises(ConflictError):
        await table.delete("k", revision=one)


async def test_revisions_grow_across_deletions(store):
    table = store.table("t")
    one = await table.put("k", b"1")
    await table.delete("k")
    assert await table.put("k", b"2") > one
    with pytest.raises(ConflictError):
        await table.put("k", b"3", revision=one)


async def test_of_many_creators_one_wins(store, other):
    async def attempt(i):
        try:
            await (store if i % 2 else other).table("t").create("k", b"%d" % i)
        except ConflictError:
            return None
        return b"%d" % i

    results = await asyncio.gather(*(attempt(i) for i in range(30)))
    winners = [r for r in results if r is not None]
    assert winners == [(await store.table("t").get("k")).value]


async def test_compare_and_set_loses_no_increment(store, other):
    await store.table("t").put("n", b"0")

    async def add(table):
        while True:
            row = await table.get("n")
            try:
                return await table.put("n", b"%d" % (int(row.value) + 1), revision=row.revision)
            except ConflictError:
                continue

    await asyncio.gather(*(add((store if i % 2 else other).table("t")) for i in range(30)))
    assert (await store.table("t").get("n")).value == b"30"


async def test_expiry(store):
    table = store.table("t")
    one = await table.put("k", b"v", expires_in=0.6)
    await table.put("stays", b"v", expires_in=600)
    assert 0 < (await table.get("stays")).expires_in <= 600
    async with asyncio.timeout(100):
        while (row := await table.get("k")) is not None:
            assert 0 < row.expires_in <= 0.6
            await asyncio.sleep(0.05)
    assert await keys(table) == ["stays"]
    assert not await table.delete("k")
    assert await table.create("k", b"again") > one
    with pytest.raises(ConflictError):
        await table.put("k", b"w", revision=one)
    assert (await table.get("k")).expires_in is None


async def test_a_put_without_expiry_makes_a_key_permanent(store):
    table = store.table("t")
    await table.put("k", b"v", expires_in=0.2)
    await table.put("k", b"v")
    await asyncio.sleep(0.3)
    assert (await table.get("k")).value == b"v"


async def test_scan_by_prefix(store):
    table = store.table("t")
    names = [
        "",
        "a",
        "a/1",
        "a/10",
        "a/1/x",
        "a/2",
        "ab",
        "b",
        "a.1",
        "ä/1",
        "a\U0010ffff",
        "\U0010ffffz",
        "\ud7ff",
    ]
    for name in names:
        await table.put(name, name.encode())
    await table.delete("b")
    names.remove("b")
    for prefix in ("", "a", "a/", "a/1", "a/1/", "a.", "ä", "zzz", "a\U0010ffff", "\U0010ffff", "\ud7ff"):
        assert await keys(table, prefix) == sorted(n for n in names if n.startswith(prefix)), prefix
    assert await keys(store.table("empty")) == []


async def test_scan_of_many(store):
    table = store.table("t")
    await asyncio.gather(*(table.put(f"k/{i}", b"%d" % i) for i in range(700)))
    await asyncio.gather(*(table.put(f"k/{i}", b"new") for i in range(0, 700, 7)))
    rows = {row.key: row.value async for row in table.scan("k/")}
    assert rows == {f"k/{i}": b"new" if i % 7 == 0 else b"%d" % i for i in range(700)}


async def test_scan_behind_a_key(store):
    """Only greater keys come, in order if the store says so, also for keys that were removed or written again."""
    table = store.table("t")
    names = [f"k/{i:03}" for i in range(600)] + ["j", "k", "l", "k/\U0010ffff", "k/\ud7ff", "k/ä"]
    await asyncio.gather(*(table.put(name, b"1") for name in reversed(names)))
    assert await keys(table) == sorted(names)
    for name in names[100:300:2]:
        await table.delete(name)
        names.remove(name)
    for name in ("k/0", "k/0015", "k/100"):
        await table.put(name, b"2")
        names.append(name)
    for after in ("", "a", "k/", "k/001", "k/0015", "k/100", "k/102", "k/ä", "k/\U0010ffff", "l", "z"):
        for prefix in ("", "k/", "k/1", "none"):
            found = [row.key async for row in table.scan(prefix, after=after)]
            expected = sorted(name for name in names if name.startswith(prefix) and name > after)
            assert (found if store.traits.ordered else sorted(found)) == expected, (prefix, after)


@pytest.mark.parametrize("key", [*ODD_KEYS, ""])
async def test_keys_may_be_any_text(store, key):
    table = store.table(key or "t")
    await table.put(key, b"x")
    await table.put(key + "!", b"y")
    row = await table.get(key)
    assert (row.key, row.value) == (key, b"x")
    assert await keys(table) == sorted([key, key + "!"])
    assert await table.delete(key)
    assert await keys(table) == [key + "!"]


async def test_different_keys_are_separate(store):
    table = store.table("t")
    for key in [*ODD_KEYS, ""]:
        await table.put(key, key.encode())
    assert await keys(table) == sorted([*ODD_KEYS, ""])
    for key in [*ODD_KEYS, ""]:
        assert (await table.get(key)).value == key.encode()


async def test_a_megabyte(store):
    table = store.table("t")
    await table.put("k", b"x" * 1_000_000)
    assert (await table.get("k")).value == b"x" * 1_000_000
    await table.put("k", b"")
    assert (await table.get("k")).value == b""


async def test_bad_arguments(store):
    table = store.table("t")
    with pytest.raises(ValueError):
        await table.put("\ud800", b"")
    with pytest.raises(TypeError):
        await table.put(b"bytes", b"")
    with pytest.raises(TypeError):
        await table.put("k", None)
    for expiry in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError):
            await table.put("k", b"", expires_in=expiry)


async def test_tables_are_separate_and_can_be_dropped(store):
    one, two = store.table("one"), store.table("two")
    revision = await one.put("k", b"1")
    await two.put("k", b"2")
    await one.drop()
    assert await one.get("k") is None
    assert (await two.get("k")).value == b"2"
    await one.put("k", b"3")
    assert (await one.get("k")).value == b"3"
    assert revision


async def test_discard_accepts_an_absent_key(store):
    table = store.table("t")
    await table.discard("never there")
    await table.put("k", b"1")
    await table.discard("k")
    assert await table.get("k") is None
    assert await table.create("k", b"2") > 0
    assert (await table.get("k")).value == b"2"


async def test_expired_rows_of_a_memory_store_are_removed_by_later_writes():
    """Rows that expire unread leave no memory behind; a row that was written again stays."""
    clock = SetClock()
    async with await stores.open("memory:", clock=clock) as store:
        table = store.table("t")
        await table.put("renewed", b"1", expires_in=1)
        await table.put("renewed", b"2", expires_in=1e6)
        await table.put("permanent", b"1", expires_in=1)
        await table.put("permanent", b"2")
        for number in range(3000):
            clock.pass_(0.1)
            await table.put(str(number), b"x" * 100, expires_in=1)
        rows = store._engine._rows.tables["t"]
        assert len(rows._cells) < 20
        assert len(rows._expiries) < 120
        for _ in range(500):
            await table.put("renewed", b"3", expires_in=1e6)
        assert len(rows._expiries) < 120
        assert (await table.get("renewed")).value == b"3"
        assert (await table.get("permanent")).value == b"2"
