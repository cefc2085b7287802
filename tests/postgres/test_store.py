"""The store in a real Postgres: what is particular to it. The tests of all stores run on it with AMENDS_TEST_STORE=postgres."""

import asyncio
import os
import signal
import subprocess
import sys

import psycopg
import pytest

from amends import stores
from amends.stores import ConflictError, DamagedStoreError, StoreUnavailableError
from amends.stores.postgres.schema import DDL, ref
from tests.postgres.server import PostgresServer

pytestmark = pytest.mark.postgres

OPEN = """
import asyncio, sys
from amends import stores
async def main():
    async with await stores.open(sys.argv[1]) as store:
        print(await store.log("starts").append(b"x"))
asyncio.run(main())
"""


def test_ten_processes_start_at_once(url):
    """Each finds or creates the tables, and writes."""
    started = [
        subprocess.Popen([sys.executable, "-c", OPEN, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(10)
    ]
    ended = [each.communicate(timeout=120) for each in started]
    assert sorted(int(out) for out, _ in ended) == list(range(1, 11)), [err for _, err in ended]


async def test_a_role_without_create(url, capsys):
    """The error names the command; with the tables it prints, the role can do everything."""
    from amends.commands import main

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS plain")
        connection.execute("CREATE ROLE plain LOGIN")
        connection.execute("REVOKE CREATE ON SCHEMA public FROM public")
    plain = url.replace("//amends@", "//plain@")
    with pytest.raises(StoreUnavailableError, match="amends store sql"):
        await stores.open(plain)
    assert main(["store", "sql"]) == 0
    printed = capsys.readouterr().out
    assert DDL.strip() in printed
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(2):
            connection.execute(printed)
        with connection.cursor() as cursor, pytest.raises(StoreUnavailableError, match="may not"):
            cursor.execute("SELECT 1")
            async with await stores.open(plain) as store:
                await store.log("l").append(b"x")
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO plain")
        connection.execute("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO plain")
    async with await stores.open(plain) as store:
        assert await store.log("l").append(b"x") == 1
        await store.table("t").put("k", b"v")
        await store.queue("q").put(b"m")
        assert (await store.queue("q").take()).value == b"m"
        assert await store.check() == []


async def test_tables_of_another_version(url):
    """They are refused, with what to do."""
    await (await stores.open(url)).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE amends_meta SET value = '4' WHERE key = 'version'")
    with pytest.raises(DamagedStoreError, match="drop the tables"):
        await stores.open(url)


async def test_the_fence_waits_for_the_old_owner(url):
    """An append whose commit is late makes a take-over wait, which then finds the old owner's number."""
    async with await stores.open(url) as store:
        log = store.log("job")
        await log.append(b"owner 1")
        with psycopg.connect(url) as late:
            late.execute("UPDATE amends_logs SET last = last + 1 WHERE ref = %s AND last = 1", (ref("job"),))
            late.execute("INSERT INTO amends_entries SELECT id, 2, NULL, 'old' FROM amends_logs")
            taking = asyncio.ensure_future(log.append(b"owner 2", last=1))
            await asyncio.sleep(0.2)
            assert not taking.done()
            late.commit()
        with pytest.raises(ConflictError) as conflict:
            await taking
        assert conflict.value.actual == 2
        assert [entry.value for entry in await log.read()] == [b"owner 1", b"old"]


async def test_a_lock_that_is_held_too_long(url):
    """A write ends within `lock_timeout`, did not happen, and delays no read; the next write works."""
    async with await stores.open(f"{url}?lock_timeout=0.3") as store:
        table = store.table("t")
        revision = await table.put("k", b"1")
        with psycopg.connect(url) as holder:
            holder.execute("SELECT * FROM amends_rows FOR UPDATE")
            writing = asyncio.ensure_future(table.put("k", b"2", revision=revision))
            assert (await table.get("k")).value == b"1"
            with pytest.raises(StoreUnavailableError) as locked:
                await writing
            assert locked.value.executed == "no"
        assert await table.put("k", b"3", revision=revision) > revision


async def test_of_transactions_that_read_what_is_absent_each_counts(url):
    """Forty increments by two handles, of keys that do not exist at first, lose none."""
    async with await stores.open(url) as one, await stores.open(url) as two:

        def add(tx):
            row = tx.table("t").get("n")
            tx.table("t").put("n", b"%d" % (int(row.value if row else 0) + 1))

        await asyncio.gather(*(store.transaction(add) for _ in range(20) for store in (one, two)))
        assert (await one.table("t").get("n")).value == b"40"


async def test_behind_a_pooler_in_transaction_mode(url):
    """`pooled=yes` uses no notification and no prepared statement; a waiting worker of another store still gets its message."""
    async with await stores.open(f"{url}?pooled=yes") as one, await stores.open(f"{url}?pooled=yes") as two:
        assert not one.traits.notifies
        taking = asyncio.ensure_future(one.queue("q").take(wait=60))
        await asyncio.sleep(0.1)
        await two.queue("q").put(b"m")
        assert (await taking).value == b"m"
        for number in range(30):
            await one.log("l").append(b"%d" % number)
        with psycopg.connect(url) as connection:
            ((listening,),) = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()"
            ).fetchall()
        assert listening == 0


WRITE = """
import asyncio, sys
from amends import stores
async def main():
    async with await stores.open(sys.argv[1]) as store:
        for number in range(100000):
            await asyncio.gather(*(store.log(f"l/{log}").append(b"x") for log in range(4)), store.queue("q").put(b"m"))
            print(number + 1, flush=True)
asyncio.run(main())
"""


async def test_a_killed_writer_loses_nothing_acknowledged(url):
    """After kill -9 every log has what was acknowledged, at most one round more, and the store is whole."""
    with subprocess.Popen([sys.executable, "-c", WRITE, url], stdout=subprocess.PIPE, text=True) as child:
        while int(child.stdout.readline()) < 40:
            pass
        os.kill(child.pid, signal.SIGKILL)
        acknowledged = 40 + len(child.stdout.readlines())
    async with await stores.open(url) as store:
        lasts = [(await store.log(f"l/{log}").bounds()).last for log in range(4)]
        assert all(acknowledged - 1 <= last <= acknowledged + 1 for last in lasts), (acknowledged, lasts)
        assert await store.check() == []


async def test_a_server_that_is_killed_and_started_again():
    """
    While it is away for a moment, reads and writes wait, and so do workers; for longer, they raise. Nothing acknowledged is lost.
    """
    server = PostgresServer()
    server.start()
    try:
        async with await stores.open(server.url) as store:
            log, acknowledged = store.log("l"), 0
            taking = asyncio.ensure_future(store.queue("q").take(wait=120))
            for _ in range(50):
                await log.append(b"x")
                acknowledged += 1
            await asyncio.to_thread(server.crash)
            writing, reading = asyncio.ensure_future(log.append(b"x")), asyncio.ensure_future(log.bounds())
            await asyncio.sleep(0.3)
            assert not writing.done()
            await asyncio.to_thread(server.restart)
            assert await writing == acknowledged + 1
            assert acknowledged <= (await reading).last <= acknowledged + 1
            await store.queue("q").put(b"after")
            assert (await taking).value == b"after"
            assert await store.check() == []
        async with await stores.open(f"{server.url}?lock_timeout=0.3") as store:
            log = store.log("l")
            last = await log.append(b"x")
            await asyncio.to_thread(server.crash)
            with pytest.raises(StoreUnavailableError) as away:
                await log.append(b"x")
            with pytest.raises(StoreUnavailableError):
                await log.read()
            await asyncio.to_thread(server.restart)
            assert await log.append(b"x") - last == 1 + (away.value.executed == "maybe")
    finally:
        server.stop()
