"""Logs that share a stream on NATS: what the common suite does not reach."""

from __future__ import annotations

import asyncio

import pytest

from amends import stores
from amends.stores import Bounds, ConflictError, StoreUnavailableError, TrimmedError
from amends.stores.copy_store import copy
from amends.stores.nats import grouped_log, log_positions
from tests.stores.servers import NatsServer

pytestmark = pytest.mark.parametrize("backend", ["nats"], indirect=True)


async def test_one_stream_for_all(store):
    """However many logs there are; and one that is named otherwise has its own."""
    for number in range(20):
        await store.log(f"job/{number}").append(b"x")
    await store.log("job").append(b"y")
    found = await store._streams.names()
    assert found == {"logs": ["job"], "log": ["job"]}
    assert len((await store.names())["logs"]) == 21
    assert await store.check() == []


async def test_names_of_any_length(store):
    """A long one is a hash in its subject, and is listed by its name."""
    long, odd = "job/" + "ü" * 200, "job//*.> "
    for name in (long, odd, "job/", "/"):
        await store.log(name).append(b"x")
        await store.log(name).trim(5)
        assert await store.log(name).append(b"y") == 2
    assert sorted((await store.names())["logs"]) == sorted([long, odd, "job/", "/"])
    assert await store.check() == []


async def test_a_log_that_lost_entries_is_found(store):
    """What does not add up is said."""
    log = store.log("job/1")
    for _ in range(5):
        await log.append(b"x")
    streams = store._streams
    await streams.link.api(f"STREAM.MSG.DELETE.{streams.stream('logs', 'job')}", {"seq": 3})
    assert await store.check() == ["log 'job/1' should hold 5 entries and holds 4"]


async def test_copied_with_their_numbers(store):
    """A log whose front was trimmed, and one that was trimmed whole, begin where they did."""
    async with await stores.open("memory:") as source:
        for name, before in (("job/1", 3), ("job/2", 100)):
            for number in range(5):
                await source.log(name).append(b"%d" % number, dedupe=str(number))
            await source.log(name).trim(before)
        copied = await copy(source, store)
        assert copied.differences == []
        assert await store.log("job/1").bounds() == Bounds(3, 5)
        assert await store.log("job/2").bounds() == Bounds(6, 5)
        assert (await copy(source, store)).differences == []
        assert await store.log("job/2").append(b"next", last=5) == 6
        # Begun already: there is nothing to begin.
        await store.log("job/1").start_at(9)
        assert await store.log("job/1").bounds() == Bounds(3, 5)


async def test_a_dedupe_id_far_back(store, other):
    """The entry is found wherever it lies, also by somebody who has read nothing of the log."""
    log = store.log("job/1")
    for number in range(300):
        await log.append(b"x", dedupe=str(number))
    assert await other.log("job/1").append(b"x", dedupe="280") == 281
    assert await log.append(b"x", dedupe="280", last=280) == 281
    with pytest.raises(ConflictError):
        await other.log("job/1").append(b"y", dedupe="new", last=7)


async def test_what_is_forgotten_is_asked_for_again(store, monkeypatch):
    """A process remembers the places of the logs it used last; of the others it asks."""
    monkeypatch.setattr(log_positions, "_MOST", 2)
    logs = [store.log(f"job/{number}") for number in range(5)]
    for turn in range(3):
        for log in logs:
            assert await log.append(b"x", last=turn) == turn + 1


async def test_a_bell_rings_when_a_connection_was_made_anew(backend, tmp_path):
    """Words may have been lost meanwhile: whoever listens looks."""
    server = NatsServer(tmp_path)
    server.start()
    try:
        async with await stores.open(f"{server.url}/bells") as store:
            log = store.log("job/1")
            await log.append(b"x")
            async with log.watched() as bell, log.watched() as same:
                assert bell is same
                seen = bell.count
                server.kill()
                server.start()
                await asyncio.wait_for(bell.wait(seen), 100)
            assert await log.append(b"y", last=1) == 2
    finally:
        server.stop()


async def test_a_trim_that_loses_its_race(store, other, monkeypatch):
    """An append between looking and marking: what was to go is gone, the newcomer stays."""
    log = store.log("job/1")
    await log.append(b"1")
    mark, first = log._mark, True

    async def late(number):
        nonlocal first
        if first:
            first = False
            await other.log("job/1").append(b"2")
        return await mark(number)

    monkeypatch.setattr(log, "_mark", late)
    assert await log.trim(2) == 2
    assert await log.bounds() == Bounds(2, 2)


async def test_a_replica_that_lags(store, other, monkeypatch):
    """The leader says how far to read; a page that is not there yet is asked for again, for as long as a request may take."""
    log = other.log("job/1")
    for number in range(3):
        await store.log("job/1").append(b"%d" % number)
    pages, asked = grouped_log.page, []

    async def lagging(*given):
        asked.append(1)
        return await pages(*given) if len(asked) > 2 else []

    monkeypatch.setattr(grouped_log, "page", lagging)
    assert [entry.seq for entry in await log.read(1)] == [1, 2, 3]

    async def absent(*given):
        return []

    monkeypatch.setattr(grouped_log, "page", absent)
    with monkeypatch.context() as patch, pytest.raises(StoreUnavailableError):
        patch.setattr(other._streams.link, "timeout", 0.1)
        await log.read(1)
    # The newest alone needs no page.
    assert [entry.seq for entry in await log.read(3)] == [3]


async def test_trimmed_while_it_is_read(store, other, monkeypatch):
    """What was got is given; the next page says what is gone."""
    log = store.log("job/1")
    for _ in range(400):
        await log.append(b"x")
    pages, first = grouped_log.page, True

    async def trimming(*given):
        nonlocal first
        found = await pages(*given)
        if first:
            first = False
            await other.log("job/1").trim(390)
        return found

    monkeypatch.setattr(grouped_log, "page", trimming)
    entries = await log.read(1, limit=400)
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert len(entries) < 390
    with pytest.raises(TrimmedError):
        await log.read(len(entries) + 1)


async def test_a_ring_brings_the_entry(store, other):
    """Whoever listens is brought what was stored, and need not read it; what it does not know of, it does not have."""
    log, heard = store.log("job/1"), other.log("job/1")
    await log.append(b"1")
    async with heard.watched() as bell:
        assert [entry.value for entry in await heard.read()] == [b"1"]
        await log.append(b"2", dedupe="two")
        async with asyncio.timeout(60):
            while not bell.brought(2):
                await bell.wait(bell.count, 1)
        assert bell.brought(2) == await heard.read(2)
        assert (bell.brought(1), bell.brought(3)) == ([], [])
        # Trimmed as a whole, a log keeps its count in a message that is no entry.
        await log.trim(9)
        await log.append(b"3")
        async with asyncio.timeout(60):
            while not bell.brought(3):
                await bell.wait(bell.count, 1)
        assert [entry.value for entry in bell.brought(2)] == [b"2", b"3"]
    assert not other._streams.bells._bells


async def test_a_bell_remembers_little(store, other):
    """Whoever is slower than that reads the log."""
    log = store.log("job/1")
    async with other.log("job/1").watched() as bell:
        await other.log("job/1").read()
        for _ in range(70):
            await log.append(b"x")
        for _ in range(3):
            await log.append(b"y" * 400_000)
        async with asyncio.timeout(60):
            while not bell.brought(73):
                await bell.wait(bell.count, 1)
        assert len(bell.brought(72)) == 2
        assert bell.brought(71) == bell.brought(9) == []


async def test_refused_entries_are_not_brought(store, other):
    """The server calls for what it has stored only."""
    log = store.log("job/1")
    async with other.log("job/1").watched() as bell:
        await other.log("job/1").read()
        await log.append(b"1", last=0)
        other._streams.places.of(other.log("job/1").subject).set(0, 0)
        with pytest.raises(ConflictError):
            await other.log("job/1").append(b"no", last=0)
        await log.append(b"2", last=1)
        async with asyncio.timeout(60):
            while not bell.brought(2):
                await bell.wait(bell.count, 1)
        assert [entry.value for entry in bell.brought(1)] == [b"1", b"2"]


async def test_a_stream_made_before_servers_called(store, other):
    """It is told to call, by whoever listens first or writes first, and is as it was otherwise."""
    streams = store._streams
    for group, first in (("heard", "listens"), ("written", "writes")):
        stream, subject = streams.stream("logs", group), streams.subject("logs", group)
        config = {"name": stream, "subjects": [f"{subject}.>"], "max_msgs": 12345, "allow_direct": True}
        await streams.link.api(f"STREAM.CREATE.{stream}", config)
        log = other.log(f"{group}/1")
        if first == "writes":
            await log.append(b"0")
        async with store.log(f"{group}/1").watched() as bell:
            # As a process of that time does: it writes, and calls whoever listens itself.
            await streams.link.publish(f"{subject}.1", b"x", {"Amends-Number": str(1 + (first == "writes"))})
            async with asyncio.timeout(60):
                while not bell.brought(1 + (first == "writes")):
                    await bell.wait(bell.count, 1)
            seen = bell.count
            streams.link.tell(f"{streams.subject('bell', group)}.1")
            async with asyncio.timeout(60):
                await bell.wait(seen)
        found = (await streams.link.api(f"STREAM.INFO.{stream}"))["config"]
        assert (found["max_msgs"], "republish" in found) == (12345, True)
