"""What is SQLite's own: crashes, disks, clocks, other people's connections, older and newer files."""

from __future__ import annotations

import asyncio
import json
import os
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
)
from amends.stores.sqlite import joined, schema
from tests.stores.clocks import SetClock


def ask(url, statement):
    """What a connection of somebody else's sees."""
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
    """Forty crashes here, a thousand in the soak run; some while the loop writes, some while the thread does."""
    result = crash(tmp_path, 40, 7)
    assert result["crashes"] == 40
    assert {"MainThread", "amends-sqlite-write"} <= set(result["killed"])


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


@pytest.fixture
def small_disk(tmp_path):
    """A file system of four megabytes, where we may mount one."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small tmpfs is not permitted here; the page limit test stands in")
    yield place
    subprocess.run(["umount", place], check=True)


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
        # Room again: life goes on, and trimming keeps it going.
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


async def test_one_write_that_cannot_be_does_not_spoil_its_neighbours(url):
    """Writes share a transaction; a transaction of the user's that breaks it is undone alone."""
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


async def test_a_lock_held_too_long_is_said_and_nothing_written(url):
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
        # What is due at a time of day is due by the wall clock.
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
        # Expired rows go away with later writes, a few each.
        for i in range(5):
            await store.table("t").put(f"k{i}", b"v", expires_in=1)
        clock.pass_(2)
        for i in range(5):
            await store.table("t").put(f"n{i}", b"v", expires_in=100)
    rows = ask(url, "SELECT key FROM amends_rows ORDER BY key")
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


async def test_the_users_effect_and_the_key_happen_together(url):
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


async def test_joining_a_transaction_on_the_users_own_connection(url):
    mine = sqlite3.connect(url.removeprefix("sqlite:///"))
    mine.execute("CREATE TABLE orders (id TEXT)")
    mine.commit()
    side = joined(mine)
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
        heard = asyncio.ensure_future(anext(follower))
        await asyncio.sleep(0.05)
        with mine:
            side.log("l").append(b"more")
        assert (await asyncio.wait_for(heard, 100)).value == b"more"
    mine.close()


async def test_memory_has_no_sql():
    async with await stores.open("memory:") as store:
        with pytest.raises(UnsupportedError):
            await store.transaction(lambda tx: tx.sql("SELECT 1"))


async def test_an_older_file_is_brought_up_to_date(url, monkeypatch):
    async with await stores.open(url) as store:
        await store.log("l").append(b"old")

    def add_column(connection):
        connection.execute("ALTER TABLE amends_logs ADD COLUMN note TEXT")

    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, add_column))
    for _ in range(2):
        async with await stores.open(url) as store:
            assert [e.value for e in await store.log("l").read()] == [b"old"]
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    assert connection.execute("SELECT value FROM amends_meta WHERE key = 'version'").fetchone() == ("2",)
    assert connection.execute("SELECT note FROM amends_logs").fetchone() == (None,)
    connection.close()
    monkeypatch.undo()
    with pytest.raises(DamagedStoreError, match="newer amends"):
        await stores.open(url)


async def test_a_migration_that_fails_leaves_the_file_as_it_was(url, monkeypatch):
    async with await stores.open(url) as store:
        await store.log("l").append(b"old")

    def fails(connection):
        connection.execute("DROP TABLE amends_entries")
        raise RuntimeError("half way")

    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, fails))
        with pytest.raises(RuntimeError):
            await stores.open(url)
    async with await stores.open(url) as store:
        assert [e.value for e in await store.log("l").read()] == [b"old"]


async def test_a_file_that_is_no_store(tmp_path):
    (tmp_path / "text.db").write_text("this is no database, and long enough to be sure about it" * 100)
    with pytest.raises(DamagedStoreError):
        await stores.open(f"sqlite:///{tmp_path}/text.db")


async def test_check_finds_what_is_missing(url):
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


async def test_the_users_own_version_number_is_left_alone(url):
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    connection.execute("PRAGMA user_version = 42")
    connection.close()
    async with await stores.open(url):
        pass
    assert ask(url, "PRAGMA user_version") == [(42,)]


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
    """Read in turn, so that whatever else the machine does hits both alike."""
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


async def test_reading_the_tail_looks_at_the_tail_only(url):
    """What the soak run times, by SQLite's own account: a search by key, not a scan."""
    async with await stores.open(url) as store:
        await fill_log(store, 1000)
    plan = ask(
        url,
        "EXPLAIN QUERY PLAN SELECT id, value, dedupe FROM amends_entries WHERE id BETWEEN 1 AND 2 ORDER BY id",
    )
    assert "SEARCH" in plan[0][3]
    assert "INTEGER PRIMARY KEY" in plan[0][3]
