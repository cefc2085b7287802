"""The threads of a SQLite store: the event loop runs no statement, and writes that wait together are committed together."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import threading
from collections import Counter
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from amends import stores
from amends.stores import ConflictError, LeaseLostError, StoreUnavailableError
from amends.stores.sqlite import threads

LOOP, WRITER, READER = "MainThread", "amends-sqlite-write", "amends-sqlite-read"


@pytest.fixture
def path(tmp_path):
    return f"{tmp_path}/store.db"


@pytest.fixture
async def store(path):
    async with await stores.open(f"sqlite:///{path}?synchronous=normal") as opened:
        yield opened


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


@contextmanager
def locked_by_another(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


async def use_everything(store, name):
    """Call each method once, from a single caller."""
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
    assert await queue.take(wait=0.02) is None
    assert await store.transaction(lambda tx: threading.current_thread().name) == WRITER
    assert await store.check() == []


async def test_the_event_loop_runs_no_statement(statements, store):
    """Writes run in the writer thread, reads in the reader thread."""
    statements.clear()
    await use_everything(store, "n")
    assert {thread for thread, _ in statements} == {WRITER, READER}
    assert {keyword for thread, keyword in statements if thread == READER} <= {"SELECT", "PRAGMA", "--"}


async def test_concurrent_writers_share_commits(statements, store):
    """Thirty-two writers need far fewer commits than writes."""
    statements.clear()

    async def writer(i):
        for step in range(50):
            await store.table("t").put(f"{i}", b"%d" % step)

    await asyncio.gather(*(writer(i) for i in range(32)))
    assert statements[WRITER, "INSERT"] == 32 * 50
    assert statements[WRITER, "COMMIT"] < 32 * 50 / 4


@pytest.mark.parametrize("use", ["put", "create", "append", "take"])
async def test_a_lock_blocks_the_caller_and_not_the_loop(path, use):
    """Other tasks run and read while a write waits for another process."""
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


async def test_a_write_waits_until_a_lock_is_released(path, store):
    """It succeeds afterwards."""
    with locked_by_another(path):
        waiting = asyncio.ensure_future(store.log("l").append(b"1"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
    assert await waiting == 1


async def test_a_slow_write_does_not_delay_reads_or_the_loop(path, store):
    """A write whose caller was cancelled still happens, and does not block the next one."""
    await store.log("l").append(b"1")
    begun, goes_on = threading.Event(), threading.Event()

    def slow(tx):
        begun.set()
        assert goes_on.wait(30)
        return tx.log("l").append(b"2")

    waiting = asyncio.ensure_future(store.transaction(slow))
    while not begun.is_set():
        await asyncio.sleep(0.001)
    beside = asyncio.ensure_future(store.log("l").append(b"3"))
    unneeded = asyncio.ensure_future(store.log("l").append(b"never"))
    assert (await store.log("l").bounds()).last == 1
    unneeded.cancel()
    waiting.cancel()
    await asyncio.sleep(0)
    goes_on.set()
    assert await beside == 3
    for task in (waiting, unneeded):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [entry.value for entry in await store.log("l").read()] == [b"1", b"2", b"3"]


async def test_the_write_ahead_log_stays_small(tmp_path, store):
    """The writer checkpoints it."""
    for i in range(3000):
        await store.table("t").put(f"{i}", b"x" * 4000)
    assert (tmp_path / "store.db-wal").stat().st_size < 12_000_000


async def test_the_writer_checkpoints_after_it_has_returned_the_results(statements, store, monkeypatch):
    """The last writer does not wait for the checkpoint."""
    monkeypatch.setattr(threads, "_CHECKPOINT_EVERY", 4)
    checkpoint, goes_on, begun = threads.Writer._checkpoint, threading.Event(), threading.Event()

    def held(writer):
        begun.set()
        assert goes_on.wait(30)
        checkpoint(writer)

    monkeypatch.setattr(threads.Writer, "_checkpoint", held)
    table = store.table("t")
    async with asyncio.timeout(60):
        while not begun.is_set():
            await table.put("k", b"v")
        waiting = asyncio.ensure_future(table.put("k", b"w"))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        goes_on.set()
        await waiting
    assert (await table.get("k")).value == b"w"


async def test_a_checkpoint_that_a_reader_blocks_is_harmless(store, path, monkeypatch):
    """Another connection reads all the time: the log is checkpointed when it has finished."""
    monkeypatch.setattr(threads, "_CHECKPOINT_EVERY", 4)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        assert other.execute("SELECT count(*) FROM amends_rows").fetchone() == (0,)
        for n in range(50):
            await store.table("t").put(f"{n}", b"")
        assert other.execute("SELECT count(*) FROM amends_rows").fetchone() == (0,)
        other.execute("COMMIT")
        assert other.execute("SELECT count(*) FROM amends_rows").fetchone() == (50,)


async def test_the_file_is_polled_only_while_a_coroutine_waits(statements, store, path):
    """A commit of another process wakes the waiters."""
    await store.table("t").put("k", b"v")
    statements.clear()
    await asyncio.sleep(0.05)
    assert not statements
    async with await stores.open(f"sqlite:///{path}") as other:
        waiting = asyncio.ensure_future(store.queue("q").take(wait=100))
        while not statements[WRITER, "PRAGMA"]:
            await asyncio.sleep(0.001)
        await other.queue("q").put(b"x")
        async with asyncio.timeout(60):
            assert (await waiting).value == b"x"


@pytest.mark.parametrize("how", ["deleted", "replaced", "moved and put back"])
async def test_a_file_deleted_or_replaced_is_noticed(path, how):
    """Nothing more is acknowledged, and nothing more is read, until the store is opened again."""
    async with await stores.open(f"sqlite:///{path}") as store:
        await store.table("t").put("k", b"v")
        lease = asyncio.ensure_future(store.queue("q").take(wait=100))
        await asyncio.sleep(0.02)
        if how == "replaced":
            shutil.copy(path, f"{path}.copy")
            Path(f"{path}.copy").replace(path)
        else:
            Path(path).rename(f"{path}.moved")
        calls = (
            lambda: store.table("t").put("k", b"w"),
            lambda: store.log("l").append(b"x"),
            lambda: store.transaction(lambda tx: tx.table("t").put("k", b"w")),
            lambda: store.table("t").get("k"),
            lambda: lease,
        )
        for call in calls:
            with pytest.raises(StoreUnavailableError, match="while it was open: restart") as caught:
                async with asyncio.timeout(60):
                    await call()
            assert caught.value.executed == "maybe"
        if how == "moved and put back":
            Path(f"{path}.moved").rename(path)
            assert await store.table("t").put("k", b"x")


async def test_a_store_in_another_event_loop(tmp_path):
    """It is refused with what to do, and nothing is written."""
    async with await stores.open(f"sqlite:///{tmp_path}/s.db") as store:

        async def write():
            await store.table("t").put("k", b"v")

        with pytest.raises(RuntimeError, match="was opened in another event loop: open it in each loop"):
            await asyncio.to_thread(asyncio.run, write())
        assert await store.table("t").get("k") is None
