"""Who does the work on SQLite, the event loop or a thread: the rule of `sqlite/access.py`, by what SQLite was asked where."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import Counter
from contextlib import closing, contextmanager, suppress

import pytest

from amends import stores
from amends.stores import ConflictError, LeaseLostError, StoreUnavailableError
from amends.stores.sqlite import access, patience, threads

BIG = b"x" * (access.ROOM + 1)
LOOP, WRITER, READER = "MainThread", "amends-sqlite-write", "amends-sqlite-read"


@pytest.fixture
def path(tmp_path):
    return f"{tmp_path}/store.db"


@pytest.fixture
async def normal(path):
    async with await stores.open(f"sqlite:///{path}?synchronous=normal") as store:
        yield store


@pytest.fixture
def asked(monkeypatch):
    """How often which thread began a statement, by its first word."""
    seen = Counter()
    connect = sqlite3.connect

    def traced(*args, **kwargs):
        connection = connect(*args, **kwargs)

        def before(statement):
            seen[threading.current_thread().name, statement.split(maxsplit=1)[0]] += 1

        connection.set_trace_callback(before)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    return seen


@pytest.fixture
def unhurried(monkeypatch):
    """A busy machine makes everything look slow, and would have the thread asked sooner than meant here."""
    monkeypatch.setattr(access, "_LENT", 60.0)
    for name in ("_LENT", "_STALL", "_SLOW"):
        monkeypatch.setattr(patience, name, 60.0)
    for name in ("_SPARED", "_SPARED_FIRST"):
        monkeypatch.setattr(patience, name, 0.0)
    monkeypatch.setattr(patience, "_IN_A_ROW", 10_000)


@contextmanager
def places(asked, *expected):
    """Whose statements ran meanwhile, the look for other processes' commits aside."""
    asked.clear()
    yield
    assert {who for who, word in asked if word != "PRAGMA"} == set(expected)


@contextmanager
def somebody_elses_lock(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


async def everything(store, name):
    """Each primitive once, a caller at a time; what it says is the same wherever it runs."""
    log, table, queue = store.log(name), store.table(name), store.queue(name)
    assert [await log.append(b"1"), await log.append(b"2", dedupe="d", last=1)] == [1, 2]
    revision = await table.create("k", b"1")
    assert (await table.get("k")).revision == revision
    with pytest.raises(ConflictError):
        await table.create("k", b"2")
    await table.put("k", b"2", revision=revision, expires_in=60)
    assert await table.delete("k")
    assert [entry.value for entry in await log.read()] == [b"1", b"2"]
    assert await queue.put(b"x", key="k")
    lease = await queue.take()
    await lease.extend()
    await lease.done()
    with pytest.raises(LeaseLostError):
        await lease.done()
    assert await queue.take() is None


async def test_a_single_caller_without_fsync_is_served_by_the_loop(asked, unhurried, normal):
    with places(asked, LOOP):
        await everything(normal, "n")


async def test_commits_that_wait_for_the_disk_are_the_threads(asked, path):
    async with await stores.open(f"sqlite:///{path}") as full:
        with places(asked, LOOP, WRITER):
            await everything(full, "n")
        assert {word for who, word in asked if who == LOOP} == {"SELECT"}


async def test_commits_wait_for_a_disk_on_the_loop_once_it_has_shown_to_be_quick(
    asked, unhurried, path, monkeypatch
):
    monkeypatch.setattr(patience, "_QUICK", 60.0)
    monkeypatch.setattr(access, "_MOMENT", 60.0)
    async with await stores.open(f"sqlite:///{path}") as full:
        for n in range(patience._PROOF):
            with places(asked, WRITER):
                await full.table("t").put("k", b"%d" % n)
        with places(asked, LOOP):
            await everything(full, "n")
        monkeypatch.setattr(patience, "_QUICK", 0.0)
        with places(asked, LOOP):
            await full.table("t").put("k", b"")
        with places(asked, WRITER):
            await full.table("t").put("k", b"")


async def test_large_values_are_the_threads(asked, unhurried, normal):
    log, table, queue = normal.log("l"), normal.table("t"), normal.queue("q")
    with places(asked, WRITER):
        await log.append(BIG)
        await table.put("k", BIG)
        await queue.put(BIG)
    for read in (lambda: table.get("k"), lambda: log.read(), lambda: anext(log.follow())):
        with places(asked, LOOP, READER):
            await read()
        assert ("amends-sqlite-read", "SELECT") in asked
    assert (await table.get("k")).value == (await log.read())[0].value == BIG
    with places(asked, LOOP, WRITER):
        lease = await queue.take()
        assert lease.value == BIG
    with places(asked, WRITER):
        await lease.done()


async def test_many_small_entries_at_once_are_the_readers(asked, unhurried, normal):
    await normal.transaction(lambda tx: [tx.log("l").append(b"%d" % i) for i in range(1000)])
    with places(asked, LOOP):
        assert len(await normal.log("l").read(limit=200)) == 200
    with places(asked, LOOP, READER):
        assert [e.seq for e in await normal.log("l").read(limit=1000)] == list(range(1, 1001))


async def test_a_task_that_was_taken_too_often_is_buried_by_the_thread(asked, unhurried, normal):
    queue = normal.queue("q", max_attempts=1)
    await queue.put(b"x")
    await (await queue.take()).give_back()
    with places(asked, LOOP, WRITER):
        assert await queue.take() is None
    assert (await queue.dead())[0].attempts == 1


async def test_transactions_run_off_the_loop(normal):
    names = await normal.transaction(lambda tx: threading.current_thread().name)
    assert names == WRITER


async def test_short_transactions_run_on_the_loop_unless_they_cannot(asked, unhurried, normal):
    def short(tx):
        tx.log("l").append(b"1")
        tx.table("t").put("k", b"1")
        tx.queue("q").put(b"1")
        return threading.current_thread().name

    def large(tx):
        tx.log("l").append(BIG)
        return threading.current_thread().name

    def sql(tx):
        tx.log("l").append(b"3")
        # Handling everything does not make it run by half.
        with suppress(Exception):
            tx.sql("CREATE TABLE mine (id TEXT)")
        return threading.current_thread().name

    await normal.queue("q").put(BIG)
    held = await normal.queue("q").take()
    assert await normal.transaction(short, short=True) == LOOP
    assert await normal.transaction(short) == WRITER
    assert await normal.transaction(large, short=True) == WRITER
    assert await normal.transaction(sql, short=True) == WRITER
    assert await normal.transaction(lambda tx: (tx.done(held), short(tx))[1], short=True) == WRITER
    assert (await normal.log("l").bounds()).last == 5
    assert await normal.transaction(lambda tx: tx.sql("SELECT count(*) FROM mine")) == [(0,)]


async def test_writers_that_come_together_share_commits(asked, normal, request):
    asked.clear()

    async def writer(i):
        for step in range(50):
            await normal.table("t").put(f"{i}", b"%d" % step)

    await asyncio.gather(*(writer(i) for i in range(32)))
    by_loop = sum(count for (who, word), count in asked.items() if who == LOOP and word == "INSERT")
    assert by_loop < 32 * 50 / 2
    assert asked[WRITER, "COMMIT"] < (32 * 50 - by_loop) / 4
    # The crowd is gone: after one more trip the caller has the loop to itself again.
    request.getfixturevalue("unhurried")
    await normal.table("t").put("k", b"")
    with places(asked, LOOP):
        await normal.table("t").put("k", b"")


@pytest.mark.parametrize("use", ["put", "create", "append", "take"])
async def test_a_lock_keeps_the_caller_and_not_the_loop(path, use):
    async with await stores.open(f"sqlite:///{path}?synchronous=normal&busy_timeout=0.2") as store:
        await store.log("l").append(b"1")
        await store.queue("q").put(b"1")
        calls = {
            "put": lambda: store.table("t").put("k", b"v"),
            "create": lambda: store.table("t").create("k", b"v"),
            "append": lambda: store.log("l").append(b"2"),
            "take": lambda: store.queue("q").take(),
        }
        with somebody_elses_lock(path):
            waiting = asyncio.ensure_future(calls[use]())
            turns = 0
            while not waiting.done():
                await asyncio.sleep(0.01)
                turns += 1
                assert await store.table("t").get("k") is None
            assert turns > 2
            with pytest.raises(StoreUnavailableError) as caught:
                waiting.result()
            assert caught.value.executed == "no"
        assert await calls[use]()


async def test_a_lock_that_goes_away_is_waited_for(path, normal):
    assert normal.access.connection.execute("PRAGMA busy_timeout").fetchone() == (0,)
    with somebody_elses_lock(path):
        waiting = asyncio.ensure_future(normal.log("l").append(b"1"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
    assert await waiting == 1


async def test_endless_callers_leave_turns_to_others(normal, monkeypatch):
    monkeypatch.setattr(access, "_LENT", 0.001)
    monkeypatch.setattr(patience, "_LENT", 0.001)

    async def turns_during(step):
        async def count():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        turns, counter = 0, asyncio.ensure_future(count())
        for _ in range(3000):
            await step()
        counter.cancel()
        return turns

    table = normal.table("t")
    assert await turns_during(lambda: table.put("k", b"v")) > 3
    assert await turns_during(lambda: table.get("k")) > 3


async def test_the_write_ahead_log_does_not_grow_without_end(tmp_path, normal):
    for i in range(3000):
        await normal.table("t").put(f"{i}", b"x" * 4000)
        await asyncio.sleep(0)
    assert (tmp_path / "store.db-wal").stat().st_size < 12_000_000


async def test_the_thread_tidies_up_when_it_has_answered_and_before_others_write(
    asked, unhurried, normal, monkeypatch
):
    """Whoever wrote last does not wait for the checkpoint; whoever writes next does, or the log would not begin anew."""
    monkeypatch.setattr(patience, "_IN_A_ROW", 8)
    table, checkpoint, goes_on = normal.table("t"), threads.Writer._checkpoint, threading.Event()

    def held(writer):
        assert goes_on.wait(30)
        checkpoint(writer)

    monkeypatch.setattr(threads.Writer, "_checkpoint", held)
    with places(asked, LOOP):
        for n in range(8):
            await table.put("k", b"%d" % n)
    with places(asked, WRITER):
        await table.put("k", b"8")
        assert (WRITER, "PRAGMA") not in asked
        waiting = asyncio.ensure_future(table.put("k", b"9"))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        goes_on.set()
        await waiting
        assert asked[WRITER, "PRAGMA"] == 1
    with places(asked, LOOP):
        await table.put("k", b"10")
    assert (await table.get("k")).value == b"10"


async def test_a_checkpoint_that_cannot_be_harms_nobody(normal, path, monkeypatch):
    """Somebody reads the log all the time: it is moved when they have done."""
    monkeypatch.setattr(patience, "_IN_A_ROW", 4)
    monkeypatch.setattr(threads, "_CHECKPOINT_EVERY", 4)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        assert other.execute("SELECT count(*) FROM amends_rows").fetchone() == (0,)
        for n in range(50):
            await normal.table("t").put(f"{n}", b"")
        assert other.execute("SELECT count(*) FROM amends_rows").fetchone() == (0,)
        other.execute("COMMIT")
        assert other.execute("SELECT count(*) FROM amends_rows").fetchone() == (50,)


async def test_a_read_that_was_handed_over_leaves_no_old_snapshot_behind(path, normal):
    log = normal.log("l")
    await log.append(b"1")
    await log.append(BIG)
    async with await stores.open(f"sqlite:///{path}?synchronous=normal") as other:
        reading = [asyncio.ensure_future(log.read()) for _ in range(20)]
        await asyncio.sleep(0)
        assert await other.log("l").append(b"3") == 3
        assert (await log.bounds()).last == 3
        assert [len(await r) for r in reading]


async def test_the_loop_waits_a_moment_for_the_disk_and_no_longer(path, unhurried, monkeypatch):
    """What is done within it is answered at once; what is not is awaited, and its answer is not lost."""
    async with await stores.open(f"sqlite:///{path}") as full:
        turns = 0

        async def turn():
            nonlocal turns
            await asyncio.sleep(0)
            turns += 1

        monkeypatch.setattr(access, "_MOMENT", 60.0)
        turning = asyncio.ensure_future(turn())
        assert await full.log("l").append(b"1") == 1
        assert turns == 0
        await turning
        monkeypatch.setattr(access, "_MOMENT", 0.001)
        goes_on = threading.Event()
        waiting = asyncio.ensure_future(
            full.transaction(lambda tx: (goes_on.wait(30), tx.log("l").append(b"2")))
        )
        await turn()
        assert not waiting.done()
        beside = asyncio.ensure_future(full.log("l").append(b"3"))
        await turn()
        goes_on.set()
        assert await waiting == (True, 2)
        assert await beside == 3
        # Given up by its caller, it happens all the same, and the next is not kept by it.
        goes_on.clear()
        begun = threading.Event()
        waiting = asyncio.ensure_future(
            full.transaction(lambda tx: (begun.set(), goes_on.wait(30), tx.log("l").append(b"4")))
        )
        await turn()
        while not begun.is_set():
            await asyncio.sleep(0.001)
        waiting.cancel()
        goes_on.set()
        assert await full.log("l").append(b"5") == 5
        with pytest.raises(asyncio.CancelledError):
            await waiting


async def test_answers_that_come_just_when_patience_ends(path, unhurried, monkeypatch):
    monkeypatch.setattr(patience, "_QUICK", 0.0)
    async with await stores.open(f"sqlite:///{path}?synchronous=full") as full:
        for n in range(1, 401):
            monkeypatch.setattr(access, "_MOMENT", 0.000005 * (n % 80))
            assert await full.log("l").append(b"") == n
        with pytest.raises(ConflictError):
            await full.log("l").append(b"", last=1)
        assert full.access._writer._under_way == 0


async def test_a_disk_that_stays_slow_is_waited_for_ever_more_rarely(path, monkeypatch):
    monkeypatch.setattr(access, "_MOMENT", 0.0)
    monkeypatch.setattr(patience, "_SPARED", 60.0)
    monkeypatch.setattr(patience, "_SPARED_FIRST", 60.0)
    async with await stores.open(f"sqlite:///{path}") as full:
        waited = []
        do_soon = full.access._writer.do_soon
        monkeypatch.setattr(
            full.access._writer, "do_soon", lambda *a, **k: (waited.append(1), do_soon(*a, **k))[1]
        )
        for _ in range(10):
            await full.log("l").append(b"")
        assert len(waited) < 10


async def test_a_slow_commit_spares_the_loop_for_a_while(asked, unhurried, normal, monkeypatch):
    monkeypatch.setattr(patience, "_SLOW", -1.0)
    monkeypatch.setattr(patience, "_SPARED", 60.0)
    monkeypatch.setattr(patience, "_SPARED_FIRST", 60.0)
    await normal.table("t").put("k", b"")
    with places(asked, WRITER):
        await normal.table("t").put("k", b"")
        await normal.table("t").put("k", b"")
    monkeypatch.setattr(normal.access._patience, "_spared_until", 0.0)
    with places(asked, LOOP):
        await normal.table("t").put("k", b"")
