"""The index of a long record finds what reading every entry finds, and reads few of them."""

import itertools
import random
import time

import pytest

from amends import Fault, stores
from amends.recorder import Filter, Reader
from amends.recorder.event import Event, encode_events
from amends.recorder.index import INDEX, IndexWriter, read_blocks
from amends.recorder.thread import LOG
from tests.stores.conftest import nats_server  # noqa: F401

CODES = ("TIMEOUT", "TIMEOUT_LONG", "CONFLICT", "Ä\nÖ", "x" * 90)
WHERE = ("gateway", "http server", "http client", "mcp client")
OUTCOMES = ("retry", "gave-up", "sent")


def entries(count, seed=1):
    """Entries of one to three events; some are not of a recorder."""
    chance = random.Random(seed)
    for number in range(count):
        if chance.random() < 0.02:
            yield chance.choice([b"garbage", b"[]", b'[{"at":1}]'])
            continue
        yield encode_events(
            [
                Event(
                    at=float(number),
                    where=chance.choice(WHERE),
                    outcome=chance.choice(OUTCOMES),
                    fault=Fault(
                        code=chance.choices(CODES, (60, 30, 1, 1, 1))[0],
                        trace_id=chance.choice([None, f"theirs-{chance.getrandbits(32):08x}"]),
                    ),
                    trace_id=chance.choice(
                        ["", f"{chance.getrandbits(128):032x}", f"order 4711/{number:07}"]
                    ),
                    upstream=chance.choice(["", "shop", "seats"]),
                    sent=chance.choices(["", "GONE"], (300, 1))[0],
                )
                for _ in range(chance.randint(1, 3))
            ]
        )


def filters(found, pairs=16):
    """Filters for every member, for pairs of the first of them, and for the traces of events."""
    single = [
        *({"code": code} for code in (*CODES, "GONE", "TIME", "NONE")),
        *({"where": where} for where in (*WHERE, "http", "mcp", "server")),
        *({"outcome": outcome} for outcome in (*OUTCOMES, "doubt")),
        *({"upstream": upstream} for upstream in ("shop", "sho")),
        {"since": 900.0},
        {"until": 100.0},
        {"since": 300.0, "until": 310.0},
        *({"trace": id[:length]} for id in found for length in (3, 15, 16, 17, 40)),
    ]
    yield from single
    yield from (one | other for one, other in itertools.combinations(single[:pairs], 2))


@pytest.mark.parametrize("backend", ["memory", "sqlite", "nats"])
async def test_a_reader_with_an_index_finds_the_same(backend, tmp_path, request):
    """Also while entries are added, removed, and not indexed yet."""
    url = {"memory": "memory:", "sqlite": f"sqlite:///{tmp_path}/events.db"}.get(backend)
    async with await stores.open(url or f"{request.getfixturevalue('nats_server').url}/index") as store:
        log = store.log(LOG)
        made = list(entries(1000))
        for entry in made[:700]:
            await log.append(entry)
        one, other = IndexWriter(store, log), IndexWriter(store, log)
        reader = Reader(store)

        async def expect_the_same(first, last):
            events = [each async for each in plain(first, last)]
            ids = [each.trace_id for each in events[:: max(1, len(events) // 4)] if each.trace_id]
            theirs = [each.fault.trace_id for each in events[::200] if each.fault.trace_id]
            some = filters(ids + theirs) if backend == "memory" else filters(ids[:1], pairs=3)
            for members in some:
                wanted = Filter(**members)
                expected = [each.id for each in events if wanted.matches(each)]
                assert [each.id for each in await reader.events(wanted, limit=5000)] == expected, members
                assert [each.id for each in await reader.events(wanted, limit=2)] == expected[:2], members

        async def plain(first, last):
            from amends.recorder.event import decode_events

            for number in range(last, first - 1, -1):
                for each in reversed(decode_events(made[number - 1], number)):
                    yield each

        await one.apply(60)
        await other.apply(60)
        assert [(each.first, each.last) async for each in read_blocks(store.log(INDEX), log)] == [
            (257, 512),
            (1, 256),
        ]
        await expect_the_same(1, 700)
        await log.trim(300)
        await expect_the_same(300, 700)
        for entry in made[700:]:
            await log.append(entry)
        await other.apply(60)
        await one.apply(60)
        assert [(each.first, each.last) async for each in read_blocks(store.log(INDEX), log)] == [
            (513, 768),
            (257, 512),
        ]
        await expect_the_same(300, 1000)


async def test_rare_events_are_found_with_few_reads():
    """Of 20,000 entries with one wanted event, one block and the newest entries are read."""
    async with await stores.open("memory:") as store:
        log = store.log(LOG)
        for number in range(20_000):
            code = "CONFLICT" if number == 1234 else "TIMEOUT"
            fault = Fault(code=code)
            event = Event(
                at=1.0, where="call", outcome="gave-up", fault=fault, trace_id=f"{number:032x}"[::-1]
            )
            await log.append(encode_events([event]))
        await IndexWriter(store, log).apply(600)
        reader, read = Reader(store), []

        class CountedLog:
            def __getattr__(self, name):
                return getattr(log, name)

            async def read(self, start=None, *, limit=100):
                read.append(limit)
                return await log.read(start, limit=limit)

        reader._log = CountedLog()
        for members in ({"code": "CONFLICT"}, {"trace": f"{1234:032x}"[::-1]}):
            read.clear()
            assert len(await reader.events(Filter(**members))) == 1
            assert sum(read) <= 600
        (trace,) = await reader.trace(f"{1234:032x}"[::-1][:20])
        assert trace.code == "CONFLICT"


async def test_an_index_of_another_log_is_not_used():
    """A log that was removed and begun again, and a damaged index: every event is found, and the index is made anew."""
    async with await stores.open("memory:") as store:
        log, index = store.log(LOG), store.log(INDEX)

        async def fill(code):
            for number in range(300):
                event = Event(at=float(number), where="call", outcome="sent", fault=Fault(code=code))
                await log.append(encode_events([event]))

        await fill("TIMEOUT")
        await IndexWriter(store, log).apply(60)
        await log.drop()
        await fill("CONFLICT")
        reader = Reader(store)
        assert len(await reader.events(Filter(code="CONFLICT"), limit=1000)) == 300
        await IndexWriter(store, log).apply(60)
        (block,) = [each async for each in read_blocks(index, log)]
        assert "CONFLICT" in block.terms
        assert "TIMEOUT" not in block.terms
        await index.append(b"garbage")
        assert len(await reader.events(Filter(code="CONFLICT"), limit=1000)) == 300
        await IndexWriter(store, log).apply(60)
        assert [(each.first, each.last) async for each in read_blocks(index, log)] == [(1, 256)]


async def test_the_index_is_trimmed_with_the_events():
    """A block goes with its last entry, all of them with all."""
    async with await stores.open("memory:") as store:
        log, index = store.log(LOG), store.log(INDEX)
        for entry in entries(1200):
            await log.append(entry)
        writer = IndexWriter(store, log)
        await writer.apply(60)
        assert (await index.bounds()).kept == 4
        await log.trim(600)
        await writer.apply(60)
        assert (await index.bounds()).kept == 2
        await log.trim(1201)
        await writer.apply(60)
        await log.append(b"garbage")
        await writer.apply(60)
        assert (await index.bounds()).kept == 0
        assert await Reader(store).events(Filter(code="TIMEOUT")) == []


async def test_the_recorder_writes_the_index(tmp_path, monkeypatch):
    """With each pass that removes old events."""
    from amends.core import recording
    from amends.recorder import record, thread

    monkeypatch.setattr(thread, "_RETAIN_EVERY", 0.0)
    url = f"sqlite:///{tmp_path}/events.db"
    async with await stores.open(url) as store:
        for _ in range(300):
            event = Event(at=time.time(), where="call", outcome="sent", fault=Fault(code="TIMEOUT"))
            await store.log(LOG).append(encode_events([event]))
    with record(url) as recorder:
        for _ in range(3):
            recording.emit("call", "gave-up", Fault(code="CONFLICT"))
            assert recorder.flush(20)
    async with await stores.open(url) as store:
        assert (await store.log(INDEX).bounds()).kept == 1
