"""Logs that share a stream on NATS: cases that the common tests do not reach."""

from __future__ import annotations

import asyncio

import pytest

from amends import stores
from amends.stores import Bounds, ConflictError, StoreUnavailableError, TrimmedError
from amends.stores.copy_store import copy
from amends.stores.nats import grouped_log, log_positions
from tests.stores.servers import NatsServer

pytestmark = pytest.mark.parametrize("backend", ["nats"], indirect=True)


async def test_one_stream_per_group(store):
    """All logs of a group share one stream; a log without a slash in its name has its own."""
    for number in range(20):
        await store.log(f"job/{number}").append(b"x")
    await store.log("job").append(b"y")
    found = await store._streams.names()
    assert found == {"logs": ["job"], "log": ["job"], "state": ["state"]}
    assert len((await store.names())["logs"]) == 21
    assert await store.check() == []


async def test_names_of_any_length(store):
    """The subject of a long name contains a hash, and the log is listed by its name."""
    long, odd = "job/" + "ü" * 200, "job//*.> "
    for name in (long, odd, "job/", "/"):
        await store.log(name).append(b"x")
        await store.log(name).trim(5)
        assert await store.log(name).append(b"y") == 2
    assert sorted((await store.names())["logs"]) == sorted([long, odd, "job/", "/"])
    assert await store.check() == []


async def test_check_finds_a_log_that_lost_entries(store):
    """The number of messages does not match the bounds."""
    log = store.log("job/1")
    for _ in range(5):
        await log.append(b"x")
    streams = store._streams
    await streams.connection.api(f"STREAM.MSG.DELETE.{streams.stream('logs', 'job')}", {"seq": 3})
    assert await store.check() == ["log 'job/1' should contain 5 entries, but contains 4"]


async def test_copied_with_their_numbers(store):
    """The copy of a log keeps its first number, also if the log was trimmed in part or completely."""
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
        # The log exists already, so start_at does nothing.
        await store.log("job/1").start_at(9)
        assert await store.log("job/1").bounds() == Bounds(3, 5)


async def test_a_dedupe_id_far_back(store, other):
    """The entry is found at any position, also by a process that has read nothing of the log."""
    log = store.log("job/1")
    for number in range(300):
        await log.append(b"x", dedupe=str(number))
    assert await other.log("job/1").append(b"x", dedupe="280") == 281
    assert await log.append(b"x", dedupe="280", last=280) == 281
    with pytest.raises(ConflictError):
        await other.log("job/1").append(b"y", dedupe="new", last=7)


async def test_a_position_that_left_the_cache_is_read_again(store, monkeypatch):
    """A process caches the positions of the logs it used last, and reads the others from the server."""
    monkeypatch.setattr(log_positions, "_CAPACITY", 2)
    logs = [store.log(f"job/{number}") for number in range(5)]
    for turn in range(3):
        for log in logs:
            assert await log.append(b"x", last=turn) == turn + 1


async def test_watchers_are_notified_after_a_reconnect(backend, tmp_path):
    """Notifications may have been lost, so all watchers read again."""
    server = NatsServer(tmp_path)
    server.start()
    try:
        async with await stores.open(f"{server.url}/reconnect") as store:
            log = store.log("job/1")
            await log.append(b"x")
            async with log.watch() as signal, log.watch() as same:
                assert signal is same
                seen = signal.count
                server.kill()
                server.start()
                await asyncio.wait_for(signal.wait(seen), 100)
            assert await log.append(b"y", last=1) == 2
    finally:
        server.stop()


async def test_an_append_during_a_trim_is_kept(store, other, monkeypatch):
    """An append between reading the bounds and writing the marker: the older entries are removed, the new one stays."""
    log = store.log("job/1")
    await log.append(b"1")
    write_marker, first = log._write_marker, True

    async def late(number):
        nonlocal first
        if first:
            first = False
            await other.log("job/1").append(b"2")
        return await write_marker(number)

    monkeypatch.setattr(log, "_write_marker", late)
    assert await log.trim(2) == 2
    assert await log.bounds() == Bounds(2, 2)


async def test_a_replica_that_lags(store, other, monkeypatch):
    """The leader's last number is the limit; a page that a replica lacks is requested again until the timeout."""
    log = other.log("job/1")
    for number in range(3):
        await store.log("job/1").append(b"%d" % number)
    pages, requests = grouped_log.page, []

    async def lagging(*given):
        requests.append(1)
        return await pages(*given) if len(requests) > 2 else []

    monkeypatch.setattr(grouped_log, "page", lagging)
    assert [entry.seq for entry in await log.read(1)] == [1, 2, 3]

    async def absent(*given):
        return []

    monkeypatch.setattr(grouped_log, "page", absent)
    with monkeypatch.context() as patch, pytest.raises(StoreUnavailableError):
        patch.setattr(other._streams.connection, "timeout", 0.1)
        await log.read(1)
    # The newest entry needs no page.
    assert [entry.seq for entry in await log.read(3)] == [3]


async def test_a_log_trimmed_during_a_read(store, other, monkeypatch):
    """The read returns the entries it already has; the next page raises TrimmedError."""
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


async def test_a_notification_contains_the_entry(store, other):
    """A watcher receives stored entries without a read; `entries` returns only entries without a gap from `start`."""
    log, watched = store.log("job/1"), other.log("job/1")
    await log.append(b"1")
    async with watched.watch() as signal:
        assert [entry.value for entry in await watched.read()] == [b"1"]
        await log.append(b"2", dedupe="two")
        async with asyncio.timeout(60):
            while not signal.entries(2):
                await signal.wait(signal.count, 1)
        assert signal.entries(2) == await watched.read(2)
        assert (signal.entries(1), signal.entries(3)) == ([], [])
        # A completely trimmed log has a marker message, which is not an entry.
        await log.trim(9)
        await log.append(b"3")
        async with asyncio.timeout(60):
            while not signal.entries(3):
                await signal.wait(signal.count, 1)
        assert [entry.value for entry in signal.entries(2)] == [b"2", b"3"]
    assert not other._streams.notifications._subscriptions


async def test_a_signal_keeps_few_entries(store, other):
    """A slower watcher reads the log."""
    log = store.log("job/1")
    async with other.log("job/1").watch() as signal:
        await other.log("job/1").read()
        for _ in range(70):
            await log.append(b"x")
        for _ in range(3):
            await log.append(b"y" * 400_000)
        async with asyncio.timeout(60):
            while not signal.entries(73):
                await signal.wait(signal.count, 1)
        assert len(signal.entries(72)) == 2
        assert signal.entries(71) == signal.entries(9) == []


async def test_watchers_do_not_receive_rejected_entries(store, other):
    """The server sends notifications only for entries that it has stored."""
    log = store.log("job/1")
    async with other.log("job/1").watch() as signal:
        await other.log("job/1").read()
        await log.append(b"1", last=0)
        other._streams.positions.get(other.log("job/1").subject).set(0, 0)
        with pytest.raises(ConflictError):
            await other.log("job/1").append(b"no", last=0)
        await log.append(b"2", last=1)
        async with asyncio.timeout(60):
            while not signal.entries(2):
                await signal.wait(signal.count, 1)
        assert [entry.value for entry in signal.entries(1)] == [b"1", b"2"]
