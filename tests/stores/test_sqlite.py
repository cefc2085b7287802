"""Cases specific to SQLite: crashes, disks, clocks, other connections, older and newer files."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from amends import stores
from amends.stores import (
    ConflictError,
    DamagedStoreError,
    LeaseLostError,
    StoreFullError,
    StoreUnavailableError,
    UnsupportedError,
    versions,
)
from amends.stores.sqlite import schema, transaction_on
from amends.stores.sqlite.log import LogRows
from tests.stores.clocks import SetClock


def query(url, statement):
    """The result of a statement on another connection."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        return connection.execute(statement).fetchall()


def crash(directory, count, seed):
    done = subprocess.run(
        [sys.executable, "-m", "tests.stores.crashing", str(directory), str(count), str(seed)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_killed_between_any_two_statements(tmp_path):
    """Forty crashes here, a thousand in the soak run."""
    result = crash(tmp_path, 40, 7)
    assert result["crashes"] == 40
    assert "amends-sqlite-write" in result["killed"]


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_a_thousand_crash_points(tmp_path):
    start = time.monotonic()
    result = crash(tmp_path, 1000, 11)
    print(
        f"{result['crashes']} crashes in {time.monotonic() - start:.0f} s in {result['killed']}; last file: {result['acknowledged']}"
    )
    assert result["crashes"] == 1000


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/store.db"


async def fill(store):
    acked = 0
    with pytest.raises(StoreFullError) as caught:
        for _ in range(10_000):
            acked = await store.log("l").append(os.urandom(5000))
    assert caught.value.executed == "no"
    return acked


async def test_a_full_disk_loses_nothing_acknowledged(small_disk):
    url = f"sqlite:///{small_disk}/store.db"
    async with await stores.open(url) as store:
        await store.table("t").put("k", b"v")
        (small_disk / "ballast").write_bytes(bytes(2_000_000))
        acked = await fill(store)
        assert (await store.log("l").bounds()).last == acked
        assert (await store.table("t").get("k")).value == b"v"
    async with await stores.open(url) as store:
        assert await store.check() == []
        assert (await store.log("l").bounds()).last == acked
        with pytest.raises(StoreFullError):
            await store.log("l").append(bytes(500_000))
        # With free space again, appends succeed after a trim.
        (small_disk / "ballast").unlink()
        await store.log("l").trim(acked // 2)
        assert await store.log("l").append(b"more") == acked + 1


async def test_a_page_limit_loses_nothing_acknowledged(url, monkeypatch):
    connect = sqlite3.connect

    def limited(*args, **kwargs):
        connection = connect(*args, **kwargs)
        connection.execute("PRAGMA max_page_count = 300")
        return connection

    monkeypatch.setattr(sqlite3, "connect", limited)
    async with await stores.open(url) as store:
        acked = await fill(store)
        results = await asyncio.gather(
            *(store.log("l").append(os.urandom(200_000)) for _ in range(5)),
            store.table("t").get("k"),
            return_exceptions=True,
        )
        assert all(isinstance(result, StoreFullError) for result in results[:5])
        assert (await store.log("l").bounds()).last == acked
        assert await store.check() == []


async def test_a_failing_write_does_not_affect_those_that_share_its_transaction(url):
    """Writes share a transaction; a user transaction that breaks it is undone alone."""
    async with await stores.open(url) as store:

        def commits(tx):
            tx.log("l").append(b"never")
            tx.sql("-- now;\n/* or never */ commit;")

        results = await asyncio.gather(
            *(store.log("l").append(b"%d" % i) for i in range(5)),
            store.transaction(commits),
            store.transaction(lambda tx: tx.sql("SELECT nonsense")),
            *(store.log("l").append(b"%d" % i) for i in range(5)),
            return_exceptions=True,
        )
        assert isinstance(results[5], ValueError)
        assert isinstance(results[6], sqlite3.OperationalError)
        assert sorted(r for i, r in enumerate(results) if i not in {5, 6}) == list(range(1, 11))


async def test_a_lock_held_too_long_raises_and_nothing_is_written(url):
    async with await stores.open(f"{url}?busy_timeout=0.2") as store:
        await store.log("l").append(b"1")
        other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailableError) as caught:
            await store.log("l").append(b"2")
        assert caught.value.executed == "no"
        assert [e.value for e in await store.log("l").read()] == [b"1"]
        other.execute("ROLLBACK")
        other.close()
        assert await store.log("l").append(b"2") == 2


async def test_a_lock_held_briefly_is_waited_for(url):
    async with await stores.open(url) as store:
        await store.log("l").append(b"1")
        other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        writing = asyncio.ensure_future(store.log("l").append(b"2"))
        await asyncio.sleep(0.3)
        assert not writing.done()
        other.execute("COMMIT")
        other.close()
        assert await writing == 2


@pytest.mark.parametrize("scheme", ["memory", "sqlite"])
async def test_a_clock_that_jumps_ends_no_lease(scheme, url):
    clock = SetClock()
    async with await stores.open("memory:" if scheme == "memory" else url, clock=clock) as store:
        queue = store.queue("q", lease=30)
        await queue.put(b"x")
        await queue.put(b"later", delay=3600)
        lease = await queue.take()
        clock.now += 3000
        assert await queue.take() is None
        clock.now -= 1_000_000
        assert await queue.take() is None
        assert lease.expires_in == 30
        clock.now += 1_000_000
        clock.up += 31
        again = await queue.take()
        assert (again.value, again.attempt) == (b"x", 2)
        with pytest.raises(LeaseLostError):
            await lease.done()
        await again.done()
        # A delayed message is due by the wall clock.
        assert await queue.take() is None
        clock.now += 601
        assert (await queue.take()).value == b"later"


async def test_expiry_follows_the_wall_clock(url):
    clock = SetClock()
    async with await stores.open(url, clock=clock) as store:
        await store.table("t").put("k", b"v", expires_in=60)
        clock.pass_(59)
        assert await store.table("t").get("k")
        clock.now += 2
        assert await store.table("t").get("k") is None
        # Later writes remove expired rows, a few each.
        for i in range(5):
            await store.table("t").put(f"k{i}", b"v", expires_in=1)
        clock.pass_(2)
        for i in range(5):
            await store.table("t").put(f"n{i}", b"v", expires_in=100)
    rows = query(url, "SELECT key FROM amends_rows WHERE key < x'' ORDER BY key")
    assert rows == [(f"n{i}",) for i in range(5)]


async def test_leases_do_not_survive_a_reboot(url):
    clock = SetClock()
    async with await stores.open(url, clock=clock) as store:
        await store.queue("q", lease=3600).put(b"x")
        lost = await store.queue("q", lease=3600).take()
    clock.booted, clock.up = "second boot", 3.0
    async with await stores.open(url, clock=clock) as store:
        taken = await store.queue("q", lease=3600).take()
        assert taken.attempt == 2
        assert taken.epoch > lost.epoch


@pytest.mark.parametrize(("option", "number"), [("full", 2), ("extra", 3), ("normal", 1)])
async def test_only_leases_do_not_wait_for_the_disk(url, option, number):
    """They end with the machine in any case. Every other write does, also in one batch with a take and after one."""

    def level(tx):
        return tx.sql("PRAGMA synchronous")[0][0]

    async with await stores.open(f"{url}?synchronous={option}") as store:
        queue, statements = store.queue("q"), []
        assert await store.transaction(level) == number
        await queue.put(b"x")
        store.connections._writer._connection.set_trace_callback(statements.append)
        lease = await queue.take()
        await lease.extend()
        relaxed = [] if option == "normal" else ["PRAGMA synchronous = normal"]
        assert [each for each in statements if each.startswith("PRAGMA")] == relaxed
        assert await store.transaction(level) == number
        _, both = await asyncio.gather(queue.take(), store.transaction(level))
        assert both == number
        await queue.take()
        await lease.done()
        assert await store.transaction(level) == number


async def test_delays_survive_a_reboot(url):
    clock = SetClock()
    async with await stores.open(url, clock=clock) as store:
        await store.queue("q").put(b"x", delay=7200)
    clock.booted, clock.up = "second boot", 3.0
    clock.now += 7100
    async with await stores.open(url, clock=clock) as store:
        assert await store.queue("q").take() is None
        clock.now += 101
        assert (await store.queue("q").take()).value == b"x"


async def test_the_users_effect_and_the_key_are_committed_together(url):
    async with await stores.open(url) as store:
        await store.transaction(lambda tx: tx.sql("CREATE TABLE orders (id TEXT PRIMARY KEY)"))

        def order(tx):
            tx.table("keys").create("key-1", b"order-1")
            tx.sql("INSERT INTO orders VALUES (?)", ("order-1",))
            return tx.sql("SELECT count(*) FROM orders")[0][0]

        assert await store.transaction(order) == 1
        with pytest.raises(ConflictError):
            await store.transaction(order)

        def fails(tx):
            tx.table("keys").create("key-2", b"order-1")
            tx.sql("INSERT INTO orders VALUES (?)", ("order-1",))

        with pytest.raises(sqlite3.IntegrityError):
            await store.transaction(fails)
        assert await store.table("keys").get("key-2") is None


async def test_writing_in_a_transaction_on_the_users_own_connection(url):
    mine = sqlite3.connect(url.removeprefix("sqlite:///"))
    mine.execute("CREATE TABLE orders (id TEXT)")
    mine.commit()
    side = transaction_on(mine)
    with mine:
        mine.execute("INSERT INTO orders VALUES ('1')")
        side.table("keys").create("key-1", b"1")
        side.log("l").append(b"ordered")
    with pytest.raises(ConflictError), mine:
        mine.execute("INSERT INTO orders VALUES ('2')")
        side.table("keys").create("key-1", b"2")
    assert mine.execute("SELECT id FROM orders").fetchall() == [("1",)]
    async with await stores.open(url) as store:
        assert (await store.table("keys").get("key-1")).value == b"1"
        follower = store.log("l").follow()
        assert (await anext(follower)).value == b"ordered"
        following = asyncio.ensure_future(anext(follower))
        await asyncio.sleep(0.05)
        with mine:
            side.log("l").append(b"more")
        assert (await asyncio.wait_for(following, 100)).value == b"more"
    mine.close()


async def test_memory_has_no_sql():
    async with await stores.open("memory:") as store:
        with pytest.raises(UnsupportedError):
            await store.transaction(lambda tx: tx.sql("SELECT 1"))


async def test_a_file_of_another_version_is_refused(url):
    """The message says what to do, and the file is not changed."""
    async with await stores.open(url) as store:
        await store.log("l").append(b"kept")
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    for version, sentence in (
        (versions.VERSION - 1, "finish its work with the version that wrote it"),
        (versions.VERSION + 1, "upgrade amends"),
        ("odd", "upgrade amends"),
        (versions.VERSION, None),
    ):
        connection.execute("UPDATE amends_meta SET value = ? WHERE key = 'version'", (str(version),))
        if sentence is not None:
            with pytest.raises(DamagedStoreError, match=sentence):
                await stores.open(url)
    async with await stores.open(url) as store:
        assert [e.value for e in await store.log("l").read()] == [b"kept"]
    connection.execute("DROP TABLE amends_meta")
    with pytest.raises(DamagedStoreError, match="without a number"):
        await stores.open(url)
    connection.close()


async def test_opening_waits_for_a_process_that_creates_the_file(url):
    """SQLite itself refuses at once to change the mode of a file that is being written."""
    other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("CREATE TABLE amends_other (id)")
    opening = asyncio.ensure_future(stores.open(url))
    await asyncio.sleep(0.1)
    assert not opening.done()
    other.execute("COMMIT")
    other.close()
    async with await opening as store:
        assert await store.check() == []


async def test_a_log_without_entries_has_no_id_and_ids_are_unique(url):
    """The entries determine the next id: logs that are emptied, dropped and created in any order never share one."""
    names = [f"l{i}" for i in range(6)]
    rng = random.Random(5)
    async with await stores.open(f"{url}?synchronous=normal") as store:
        lasts = dict.fromkeys(names, 0)
        for step in range(400):
            name = rng.choice(names)
            log, what = store.log(name), rng.randrange(5)
            if what == 0:
                await log.drop()
                lasts[name] = 0
            elif what == 1:
                assert await log.trim(lasts[name] + 1) == lasts[name] + 1
                assert await log.read() == []
                assert await log.tail() is None
            else:
                last = None if what == 2 else lasts[name]
                lasts[name] += 1
                assert await log.append(b"%s %d" % (name.encode(), lasts[name]), last=last) == lasts[name]
            if step % 20 == 0:
                assert await store.check() == []
        for name in names:
            bounds = await store.log(name).bounds()
            assert bounds.last == lasts[name]
            assert [e.value for e in await store.log(name).read()] == [
                b"%s %d" % (name.encode(), seq) for seq in range(bounds.first, bounds.last + 1)
            ]
    assert query(url, "SELECT count(*) FROM amends_logs WHERE id IS NULL")[0][0] > 0


async def test_a_read_ignores_an_id_that_was_assigned_to_another_log(url):
    """Between looking up the id and reading by it, the log may be dropped and its id assigned to another."""
    async with await stores.open(url) as store:
        await store.log("a").append(b"a's")
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        side = transaction_on(connection)

        class Swapping:
            """The connection, with another writer between the first statement and the second."""

            def __init__(self):
                self.statements = 0

            def execute(self, *statement):
                self.statements += 1
                if self.statements == 2:
                    side.log("a").drop()
                    side.log("b").append(b"b's")
                return connection.execute(*statement)

        assert LogRows(Swapping(), "a").read(1, 10) == []
        assert [e.value for e in await store.log("b").read()] == [b"b's"]
        connection.close()


async def test_when_the_highest_id_is_in_use_others_are_found(url):
    async with await stores.open(url) as store:
        await store.log("first").append(b"1")
        highest = schema.LOGS - 1
        await store.transaction(
            lambda tx: (
                tx.sql("INSERT INTO amends_logs VALUES ('highest', ?, 1)", (highest,)),
                tx.sql("INSERT INTO amends_entries VALUES (?, x'00', NULL)", ((highest << 36) + 1,)),
            )
        )
        for i in range(20):
            assert await store.log(f"l{i}").append(b"1", last=0 if i % 2 else None) == 1
            assert await store.log(f"l{i}").append(b"2", last=1) == 2
        assert await store.log("highest").append(b"2") == 2
        assert [e.value for e in await store.log("l7").read()] == [b"1", b"2"]
        assert await store.check() == []


async def test_a_first_append_outside_a_transaction_uses_one(url):
    """On a user's connection without a transaction: an id without its entry could be assigned to another log too."""
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    side, keywords = transaction_on(connection), []
    connection.set_trace_callback(lambda statement: keywords.append(statement.split(maxsplit=1)[0]))
    assert side.log("a").append(b"1", last=0) == 1
    assert side.log("b").append(b"1") == 1
    assert keywords.count("BEGIN") == keywords.count("COMMIT") == 2
    connection.close()


async def test_revisions_grow_across_dropped_tables_and_leave_one_row(url):
    async with await stores.open(url) as store:
        for i in range(5):
            table = store.table(f"t{i}")
            await table.put("k", b"")
            await table.put("k", b"")
            assert await table.delete("k")
            before = await table.create("k", b"")
            await table.drop()
            assert await table.create("k", b"") > before
            await table.drop()
        assert (await store.names())["tables"] == []
        assert [row async for row in store.table("t0").scan()] == []
    assert len(query(url, "SELECT 1 FROM amends_rows")) == 1


async def test_the_floor_row_of_a_table_is_not_listed(url):
    async with await stores.open(url) as store:
        table = store.table("t")
        keys = ["", "\0", "a", "\U0010ffff", "\U0010ffff\U0010ffff"]
        for key in (*keys, "gone"):
            await table.put(key, key.encode())
        await table.delete("gone")
        assert [row.key async for row in table.scan()] == keys
        assert [row.key async for row in table.scan("\U0010ffff")] == keys[3:]
        for key in keys:
            await table.delete(key)
        assert [row.key async for row in table.scan()] == []
        assert (await store.names())["tables"] == []
        assert await store.check() == []


async def test_a_file_that_is_not_a_store(tmp_path):
    (tmp_path / "text.db").write_text("this is not a database, and long enough to be sure about it" * 100)
    with pytest.raises(DamagedStoreError):
        await stores.open(f"sqlite:///{tmp_path}/text.db")


async def test_check_finds_missing_entries(url):
    async with await stores.open(url) as store:
        for i in range(5):
            await store.log("l").append(b"%d" % i)
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.execute(f"DELETE FROM amends_entries WHERE id & {schema.SEQ_MASK} = 3")
        connection.execute("INSERT INTO amends_entries VALUES (99 << 36, x'00', NULL)")
        connection.commit()
        connection.close()
        problems = await store.check()
        assert len(problems) == 2
        assert "from 1 to 5 without gaps" in problems[0]
        with pytest.raises(DamagedStoreError):
            await store.log("l").read()


async def test_check_finds_wrong_ids(url):
    async with await stores.open(url) as store:
        for name in ("a", "b", "c"):
            await store.log(name).append(name.encode())
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.execute("UPDATE amends_logs SET id = 1 WHERE name = 'b'")
        connection.execute("UPDATE amends_logs SET id = 77 WHERE name = 'c'")
        connection.commit()
        connection.close()
        assert await store.check() == [
            "log 'c' should contain entries from 1 on, but contains none",
            "1 ids belong to more than one log",
            "2 entries belong to no log",
        ]


async def test_the_users_own_version_number_is_not_changed(url):
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    connection.execute("PRAGMA user_version = 42")
    connection.close()
    async with await stores.open(url):
        pass
    assert query(url, "PRAGMA user_version") == [(42,)]


async def fill_log(store, count):
    for start in range(0, count, 50_000):

        def add(tx, start=start):
            log = tx.log("l")
            for i in range(start, min(start + 50_000, count)):
                log.append(b"entry %d" % i)

        await store.transaction(add)


async def tail_time(store, count):
    start = time.perf_counter()
    entries = await store.log("l").read(count - 99, limit=100)
    assert len(entries) == 100
    return time.perf_counter() - start


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_the_tail_of_ten_million_reads_like_that_of_ten_thousand(tmp_path):
    """The reads alternate, so that other load on the machine affects both alike."""
    few, many = 10_000, 10_000_000
    async with (
        await stores.open(f"sqlite:///{tmp_path}/few.db?synchronous=normal") as small,
        await stores.open(f"sqlite:///{tmp_path}/many.db?synchronous=normal") as large,
    ):
        await fill_log(small, few)
        start = time.monotonic()
        await fill_log(large, many)
        print(f"{many} entries in {time.monotonic() - start:.0f} s")
        pairs = [(await tail_time(small, few), await tail_time(large, many)) for _ in range(1000)]
    medians = [sorted(pair[i] for pair in pairs)[500] * 1e6 for i in (0, 1)]
    print(f"last hundred of {few}: {medians[0]:.0f} us, of {many}: {medians[1]:.0f} us")
    assert medians[1] < medians[0] * 1.25


async def test_reading_the_tail_searches_by_key(url):
    """SQLite's query plan for what the soak run measures: a search by key, not a scan."""
    async with await stores.open(url) as store:
        await fill_log(store, 1000)
    plan = query(
        url,
        "EXPLAIN QUERY PLAN SELECT id, value, dedupe FROM amends_entries WHERE id BETWEEN 1 AND 2 ORDER BY id",
    )
    assert "SEARCH" in plan[0][3]
    assert "INTEGER PRIMARY KEY" in plan[0][3]
