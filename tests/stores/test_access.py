"""Whether the event loop or a thread runs a statement: the rules of `sqlite/access.py`, checked by tracing SQLite."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import Counter
from contextlib import closing, contextmanager, suppress

import pytest

from amends import stores
from amends.stores import ConflictError, LeaseLostError, StoreUnavailableError
from amends.stores.sqlite import access, loop_budget, threads

BIG = b"x" * (access.INLINE_BYTES + 1)
LOOP, WRITER, READER = "MainThread", "amends-sqlite-write", "amends-sqlite-read"


@pytest.fixture
def path(tmp_path):
    return f"{tmp_path}/store.db"


@pytest.fixture
async def normal(path):
    async with await stores.open(f"sqlite:///{path}?synchronous=normal") as store:
        yield store


@pytest.fixture
def statements(monkeypatch):
    """How many statements each thread began, by the statement's first keyword."""
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
def no_time_limits(monkeypatch):
    """Disable the time limits: on a busy machine they would send work to the thread earlier than a test expects."""
    monkeypatch.setattr(access, "_LOOP_BUDGET", 60.0)
    for name in ("_BUDGET", "_STALL", "_SLOW"):
        monkeypatch.setattr(loop_budget, name, 60.0)
    for name in ("_MAX_PAUSE", "_FIRST_PAUSE"):
        monkeypatch.setattr(loop_budget, name, 0.0)
    monkeypatch.setattr(loop_budget, "_MAX_CONSECUTIVE", 10_000)


@contextmanager
def run_by(statements, *expected):
    """Check which threads run statements in the block, apart from the poll for other processes' commits."""
    statements.clear()
    yield
    assert {thread for thread, keyword in statements if keyword != "PRAGMA"} == set(expected)


@contextmanager
def locked_by_another(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


async def use_everything(store, name):
    """Call each method once, from a single caller; the results are the same wherever it runs."""
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


async def test_the_loop_serves_a_single_caller_without_fsync(statements, no_time_limits, normal):
    with run_by(statements, LOOP):
        await use_everything(normal, "n")


async def test_the_thread_runs_commits_that_wait_for_the_disk(statements, path):
    async with await stores.open(f"sqlite:///{path}") as full:
        with run_by(statements, LOOP, WRITER):
            await use_everything(full, "n")
        assert {keyword for thread, keyword in statements if thread == LOOP} == {"SELECT"}


async def test_the_loop_waits_for_the_disk_once_it_has_proved_fast(
    statements, no_time_limits, path, monkeypatch
):
    monkeypatch.setattr(loop_budget, "_QUICK", 60.0)
    monkeypatch.setattr(access, "_BLOCK_FOR", 60.0)
    async with await stores.open(f"sqlite:///{path}") as full:
        for n in range(loop_budget._REQUIRED):
            with run_by(statements, WRITER):
                await full.table("t").put("k", b"%d" % n)
        with run_by(statements, LOOP):
            await use_everything(full, "n")
        monkeypatch.setattr(loop_budget, "_QUICK", 0.0)
        with run_by(statements, LOOP):
            await full.table("t").put("k", b"")
        with run_by(statements, WRITER):
            await full.table("t").put("k", b"")


async def test_threads_read_and_write_large_values(statements, no_time_limits, normal):
    log, table, queue = normal.log("l"), normal.table("t"), normal.queue("q")
    with run_by(statements, WRITER):
        await log.append(BIG)
        await table.put("k", BIG)
        await queue.put(BIG)
    for read in (lambda: table.get("k"), lambda: log.read(), lambda: anext(log.follow())):
        with run_by(statements, LOOP, READER):
            await read()
        assert ("amends-sqlite-read", "SELECT") in statements
    assert (await table.get("k")).value == (await log.read())[0].value == BIG
    with run_by(statements, LOOP, WRITER):
        lease = await queue.take()
        assert lease.value == BIG
    with run_by(statements, WRITER):
        await lease.done()


async def test_the_reader_thread_reads_large_pages(statements, no_time_limits, normal):
    await normal.transaction(lambda tx: [tx.log("l").append(b"%d" % i) for i in range(1000)])
    with run_by(statements, LOOP):
        assert len(await normal.log("l").read(limit=200)) == 200
    with run_by(statements, LOOP, READER):
        assert [e.seq for e in await normal.log("l").read(limit=1000)] == list(range(1, 1001))


async def test_the_thread_dead_letters_a_message_taken_too_often(statements, no_time_limits, normal):
    queue = normal.queue("q", max_attempts=1)
    await queue.put(b"x")
    await (await queue.take()).give_back()
    with run_by(statements, LOOP, WRITER):
        assert await queue.take() is None
    assert (await queue.dead())[0].attempts == 1


async def test_transactions_run_off_the_loop(normal):
    names = await normal.transaction(lambda tx: threading.current_thread().name)
    assert names == WRITER


async def test_short_transactions_run_on_the_loop_if_possible(statements, no_time_limits, normal):
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
        # Catching Exception must not make the transaction continue on the loop.
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


async def test_concurrent_writers_share_commits(statements, normal, request):
    statements.clear()

    async def writer(i):
        for step in range(50):
            await normal.table("t").put(f"{i}", b"%d" % step)

    await asyncio.gather(*(writer(i) for i in range(32)))
    by_loop = sum(
        count for (thread, keyword), count in statements.items() if thread == LOOP and keyword == "INSERT"
    )
    assert by_loop < 32 * 50 / 2
    assert statements[WRITER, "COMMIT"] < (32 * 50 - by_loop) / 4
    # With a single caller again, the loop writes after one more write in the thread.
    request.getfixturevalue("no_time_limits")
    await normal.table("t").put("k", b"")
    with run_by(statements, LOOP):
        await normal.table("t").put("k", b"")


@pytest.mark.parametrize("use", ["put", "create", "append", "take"])
async def test_a_lock_blocks_the_caller_and_not_the_loop(path, use):
    async with await stores.open(f"sqlite:///{path}?synchronous=normal&busy_timeout=0.2") as store:
        await store.log("l").append(b"1")
        await store.queue("q").put(b"1")
        calls = {
            "put": lambda: store.table("t").put("k", b"v"),
            "create": lambda: store.table("t").create("k", b"v"),
            "append": lambda: store.log("l").append(b"2"),
            "take": lambda: store.queue("q").take(),
        }
        with locked_by_another(path):
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


async def test_a_write_waits_until_a_lock_is_released(path, normal):
    assert normal.access.connection.execute("PRAGMA busy_timeout").fetchone() == (0,)
    with locked_by_another(path):
        waiting = asyncio.ensure_future(normal.log("l").append(b"1"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
    assert await waiting == 1


async def test_continuous_callers_yield_to_other_tasks(normal, monkeypatch):
    monkeypatch.setattr(access, "_LOOP_BUDGET", 0.001)
    monkeypatch.setattr(loop_budget, "_BUDGET", 0.001)

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


async def test_the_write_ahead_log_stays_small(tmp_path, normal):
    for i in range(3000):
        await normal.table("t").put(f"{i}", b"x" * 4000)
        await asyncio.sleep(0)
    assert (tmp_path / "store.db-wal").stat().st_size < 12_000_000


async def test_the_thread_checkpoints_after_returning_results_and_before_the_next_write(
    statements, no_time_limits, normal, monkeypatch
):
    """The last writer does not wait for the checkpoint; the next one does, so that the log restarts from its beginning."""
    monkeypatch.setattr(loop_budget, "_MAX_CONSECUTIVE", 8)
    table, checkpoint, goes_on = normal.table("t"), threads.Writer._checkpoint, threading.Event()

    def held(writer):
        assert goes_on.wait(30)
        checkpoint(writer)

    monkeypatch.setattr(threads.Writer, "_checkpoint", held)
    with run_by(statements, LOOP):
        for n in range(8):
            await table.put("k", b"%d" % n)
    with run_by(statements, WRITER):
        await table.put("k", b"8")
        assert (WRITER, "PRAGMA") not in statements
        waiting = asyncio.ensure_future(table.put("k", b"9"))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        goes_on.set()
        await waiting
        assert statements[WRITER, "PRAGMA"] == 1
    with run_by(statements, LOOP):
        await table.put("k", b"10")
    assert (await table.get("k")).value == b"10"


async def test_a_checkpoint_that_a_reader_blocks_is_harmless(normal, path, monkeypatch):
    """Another connection reads all the time: the log is checkpointed when it has finished."""
    monkeypatch.setattr(loop_budget, "_MAX_CONSECUTIVE", 4)
    monkeypatch.setattr(threads, "_CHECKPOINT_EVERY", 4)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        assert other.execute("SELECT count(*) FROM amends_rows").fetchone() == (0,)
        for n in range(50):
            await normal.table("t").put(f"{n}", b"")
        assert other.execute("SELECT count(*) FROM amends_rows").fetchone() == (0,)
        other.execute("COMMIT")
        assert other.execute("SELECT count(*) FROM amends_rows").fetchone() == (50,)


async def test_a_read_passed_to_the_thread_leaves_no_old_snapshot(path, normal):
    log = normal.log("l")
    await log.append(b"1")
    await log.append(BIG)
    async with await stores.open(f"sqlite:///{path}?synchronous=normal") as other:
        reading = [asyncio.ensure_future(log.read()) for _ in range(20)]
        await asyncio.sleep(0)
        assert await other.log("l").append(b"3") == 3
        assert (await log.bounds()).last == 3
        assert [len(await r) for r in reading]


async def test_the_loop_waits_briefly_for_the_disk(path, no_time_limits, monkeypatch):
    """A write that finishes in that time returns at once; a longer one is awaited, and its result is not lost."""
    async with await stores.open(f"sqlite:///{path}") as full:
        turns = 0

        async def turn():
            nonlocal turns
            await asyncio.sleep(0)
            turns += 1

        monkeypatch.setattr(access, "_BLOCK_FOR", 60.0)
        turning = asyncio.ensure_future(turn())
        assert await full.log("l").append(b"1") == 1
        assert turns == 0
        await turning
        monkeypatch.setattr(access, "_BLOCK_FOR", 0.001)
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
        # A write whose caller was cancelled still happens, and does not block the next one.
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


async def test_results_that_arrive_just_at_the_timeout(path, no_time_limits, monkeypatch):
    monkeypatch.setattr(loop_budget, "_QUICK", 0.0)
    async with await stores.open(f"sqlite:///{path}?synchronous=full") as full:
        for n in range(1, 401):
            monkeypatch.setattr(access, "_BLOCK_FOR", 0.000005 * (n % 80))
            assert await full.log("l").append(b"") == n
        with pytest.raises(ConflictError):
            await full.log("l").append(b"", last=1)
        assert full.access._writer._pending == 0


async def test_the_loop_waits_more_rarely_for_a_disk_that_stays_slow(path, monkeypatch):
    monkeypatch.setattr(access, "_BLOCK_FOR", 0.0)
    monkeypatch.setattr(loop_budget, "_MAX_PAUSE", 60.0)
    monkeypatch.setattr(loop_budget, "_FIRST_PAUSE", 60.0)
    async with await stores.open(f"sqlite:///{path}") as full:
        waited = []
        run_within = full.access._writer.run_within
        monkeypatch.setattr(
            full.access._writer, "run_within", lambda *a, **k: (waited.append(1), run_within(*a, **k))[1]
        )
        for _ in range(10):
            await full.log("l").append(b"")
        assert len(waited) < 10


async def test_a_slow_commit_pauses_the_writes_of_the_loop(statements, no_time_limits, normal, monkeypatch):
    monkeypatch.setattr(loop_budget, "_SLOW", -1.0)
    monkeypatch.setattr(loop_budget, "_MAX_PAUSE", 60.0)
    monkeypatch.setattr(loop_budget, "_FIRST_PAUSE", 60.0)
    await normal.table("t").put("k", b"")
    with run_by(statements, WRITER):
        await normal.table("t").put("k", b"")
        await normal.table("t").put("k", b"")
    monkeypatch.setattr(normal.access._budget, "_paused_until", 0.0)
    with run_by(statements, LOOP):
        await normal.table("t").put("k", b"")
