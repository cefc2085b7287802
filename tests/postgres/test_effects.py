"""The ledger in a real Postgres, and records in the user's own transaction. Runs with `make postgres`."""

import asyncio
import os
import signal
import subprocess
import sys
import threading

import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row, scalar_row

from amends import stores
from amends.effects import (
    AlreadyDoneError,
    Effects,
    InDoubtError,
    KeyReusedError,
    LedgerUnavailableError,
    SimilarError,
    current_key,
)
from amends.stores import ConflictError

pytestmark = pytest.mark.postgres


def payments(url):
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT count(*) FROM payments").fetchone()[0]


@pytest.fixture
def paying(url):
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE payments (id serial PRIMARY KEY, number int)")
    return url


async def test_the_table_keeps_the_contract(url):
    """Create, compare-and-set, expiry, scan and delete."""
    first, second = await asyncio.gather(stores.open(url), stores.open(url))
    async with first, second:
        one, two = first.table("t"), second.table("t")
        revision = await one.create("a", b"1")
        for wrong in (
            two.create("a", b"x"),
            two.put("a", b"x", revision=revision + 1),
            two.delete("a", revision=99),
        ):
            with pytest.raises(ConflictError):
                await wrong
        changed = await two.put("a", b"\x00\xff", revision=revision)
        assert changed > revision
        assert ((await one.get("a")).value, (await one.get("a")).revision) == (b"\x00\xff", changed)
        await one.put("b", b"", expires_in=60)
        assert 0 < (await two.get("b")).expires_in <= 60
        await one.put("b", b"", expires_in=0.05)
        while await two.get("b") is not None:
            await asyncio.sleep(0.01)
        assert await two.create("b", b"new") > changed
        assert {row.key async for row in one.scan()} == {"a", "b"}
        assert [row.key async for row in one.scan("a")] == ["a"]
        assert await one.delete("a")
        assert not await two.delete("a")
        assert (await first.names())["tables"] == ["t"]


async def test_the_ledger(url):
    """Once, refused, concurrent, in doubt and answered: as on every store."""
    async with Effects(url) as effects, Effects(url) as others:
        runs, fail = [], []

        async def work(order, amount):
            runs.append(order)
            await asyncio.sleep(0.02)
            if fail:
                raise fail.pop()
            return {"receipt": order}

        pay, elsewhere = (each.once(key="order", name="pay")(work) for each in (effects, others))
        assert await asyncio.gather(pay(1, 5), elsewhere(1, 5), pay(1, 5)) == [{"receipt": 1}] * 3
        assert runs == [1]
        with pytest.raises(KeyReusedError):
            await pay(1, 6)
        fail.append(TimeoutError())
        with pytest.raises(InDoubtError):
            await pay(2, 5)
        assert [each.key for each in await others.pending()] == ["pay:2"]
        await others.averify("pay:2", happened=False)
        assert await elsewhere(2, 5) == {"receipt": 2}


def test_plain_functions_and_the_command(url, capsys):
    """A plain function uses the same table, and `amends effects` reads it."""
    from amends.commands import main

    with Effects(url) as effects:

        @effects.once(key="order")
        def pay(order):
            return order

        assert pay(1) == pay(1) == 1
    assert main(["effects", "list", "--store", url, "--output", "text"]) == 0
    assert "pay:1" in capsys.readouterr().out


def test_in_the_transaction_of_a_psycopg_connection(paying):
    """Record and effect are committed together, or neither."""
    with Effects(paying) as effects, psycopg.connect(paying) as connection:

        @effects.once(key="number", transaction="connection")
        def pay(number, connection):
            connection.execute("INSERT INTO payments (number) VALUES (%s)", (number,))
            if number < 0:
                raise TimeoutError
            return {"paid": number}

        assert pay(1, connection) == {"paid": 1}
        connection.rollback()
        assert (payments(paying), effects.get("pay:1")) == (0, None)
        assert pay(1, connection) == {"paid": 1}
        connection.commit()
        assert (payments(paying), effects.get("pay:1").state) == (1, "done")
        assert pay(1, connection) == {"paid": 1}
        with pytest.raises(TimeoutError):
            pay(-1, connection)
        connection.commit()
        # The failure undid its record and its effect, although the rest was committed: nothing is in doubt.
        assert (payments(paying), list(effects.pending())) == (1, [])
    with psycopg.connect(paying, autocommit=True) as connection:
        assert pay(2, connection) == {"paid": 2}
        assert payments(paying) == 2
    with pytest.raises(TypeError, match="psycopg 3"):
        pay(3, object())
    with pytest.raises(TypeError, match="Postgres"):
        Effects("memory:").once(transaction="connection")(lambda connection: None)


def test_a_concurrent_transaction_waits(paying):
    """The second one waits at the insert; after the first commits it gets the outcome, after a rollback it runs."""
    with Effects(paying) as effects:

        @effects.once(key="number", transaction="connection")
        def pay(number, connection):
            connection.execute("INSERT INTO payments (number) VALUES (%s)", (number,))
            return {"by": connection.info.backend_pid}

        for number, commits in ((1, True), (2, False)):
            with psycopg.connect(paying) as first, psycopg.connect(paying) as second:
                mine, theirs = pay(number, first), []
                thread = threading.Thread(target=lambda: theirs.append(pay(number, second)))  # noqa: B023
                thread.start()
                thread.join(0.1)
                assert thread.is_alive()
                (first.commit if commits else first.rollback)()
                thread.join(30)
                assert (theirs[0] == mine) is commits
        assert payments(paying) == 2


async def test_in_an_async_connection_and_derived_keys(paying):
    """The same with psycopg's async connection; a derived key is answered "already done", and `again` works."""
    async with Effects(paying) as effects:

        @effects.once(transaction="connection")
        async def pay(number, connection):
            await connection.execute("INSERT INTO payments (number) VALUES (%s)", (number,))
            return number

        async with await psycopg.AsyncConnection.connect(paying) as connection:
            assert await pay(1, connection) == 1
            with pytest.raises(AlreadyDoneError):
                await pay(1, connection)
            assert await pay(1, connection, again="another one") == 1
            await connection.commit()
        assert payments(paying) == 2


def test_in_a_sqlalchemy_session(paying):
    """A session, and an async session."""
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
    from sqlalchemy.orm import Session

    address = paying.replace("postgres://", "postgresql+psycopg://")
    insert = sqlalchemy.text("INSERT INTO payments (number) VALUES (:number)")
    with Effects(paying) as effects:

        @effects.once(key="number", transaction="session")
        def pay(number, session):
            session.execute(insert, {"number": number})
            return number

        engine = sqlalchemy.create_engine(address)
        with Session(engine) as session:
            assert pay(1, session) == 1
            session.rollback()
            assert pay(1, session) == pay(1, session) == 1
            session.commit()
        assert payments(paying) == 1
        engine.dispose()

        @effects.once(key="number", transaction="session", name="pay_async")
        async def pay_async(number, session):
            await session.execute(insert, {"number": number})
            return number

        async def main():
            engine = create_async_engine(address)
            async with AsyncSession(engine) as session:
                assert await pay_async(2, session) == await pay_async(2, session) == 2
                await session.commit()
            await engine.dispose()
            await effects.aclose()

        asyncio.run(main())
        assert payments(paying) == 2


CHILD = """
import sys, psycopg
from amends.effects import Effects
url, number = sys.argv[1], int(sys.argv[2])
effects = Effects(url)
connection = psycopg.connect(url)
@effects.once(key="number", transaction="connection")
def pay(number, connection):
    connection.execute("INSERT INTO payments (number) VALUES (%s)", (number,))
    print("paid", flush=True)
    sys.stdin.readline()
    return number
pay(number, connection)
print("recorded", flush=True)
sys.stdin.readline()
connection.commit()
print("committed", flush=True)
sys.stdin.readline()
"""


def test_a_process_that_is_killed(paying):
    """Killed before, during and after the commit: one payment in the end, and never a doubt."""
    for number, until in enumerate(("paid", "recorded", "committed"), 1):
        with subprocess.Popen(
            [sys.executable, "-c", CHILD, paying, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as child:
            while child.stdout.readline().strip() != until:
                child.stdin.write("\n")
                child.stdin.flush()
            os.kill(child.pid, signal.SIGKILL)
        with Effects(paying) as effects, psycopg.connect(paying) as connection:

            @effects.once(key="number", transaction="connection")
            def pay(number, connection):
                connection.execute("INSERT INTO payments (number) VALUES (%s)", (number,))
                return number

            assert pay(number, connection) == number
            connection.commit()
            assert not list(effects.pending())
        assert payments(paying) == number


def test_a_repeat_in_a_transaction_has_a_key_of_its_own(paying):
    """A service that honours keys would not do it once more under the key of the first time."""
    with Effects(paying) as effects, psycopg.connect(paying) as connection:
        keys = []

        @effects.once(transaction="connection")
        def pay(number, connection):
            keys.append(current_key())
            return number

        pay(1, connection)
        pay(1, connection, again="another one")
        assert keys[1] == f"{keys[0]}#1"
        connection.commit()
        (effect,) = effects.list()
        assert (effect.times, effect.state) == (2, "done")


def test_a_repeat_that_fails_in_a_transaction(paying):
    """The record of the first time is as before."""
    with Effects(paying) as effects, psycopg.connect(paying) as connection:
        failing = []

        @effects.once(transaction="connection")
        def pay(number, connection):
            if failing:
                raise TimeoutError
            return number

        pay(1, connection)
        failing.append(1)
        with pytest.raises(TimeoutError):
            pay(1, connection, again="another one")
        connection.commit()
        (effect,) = effects.list()
        assert (effect.times, effect.state, effect.outcome) == (1, "done", 1)


def test_similar_calls_in_a_transaction(paying):
    """They are asked about, as without a transaction."""
    with Effects(paying) as effects, psycopg.connect(paying) as connection:

        @effects.once(similar=600, transaction="connection")
        def send(text, connection):
            return text

        send("Hello Ann, how are you?", connection)
        connection.commit()
        with pytest.raises(SimilarError):
            send("Hello Ann, how are you", connection)
        assert (
            send("Hello Ann, how are you", connection, again="she asked for it") == "Hello Ann, how are you"
        )

        @effects.once(similar=600, transaction="connection", name="asend")
        async def asend(text, connection):
            return text

        async def main():
            async with await psycopg.AsyncConnection.connect(paying) as own:
                await asend("Hello Ann, how are you?", own)
                await own.commit()
                with pytest.raises(SimilarError):
                    await asend("Hello Ann, how are you", own)
            await effects.aclose()

        asyncio.run(main())


def test_connections_with_rows_and_cursors_of_their_own(paying):
    """The ledger's statements do not depend on what the user set for theirs."""

    def rows(connection):
        return connection.execute("SELECT 1 AS one").fetchall()

    with Effects(paying) as effects:

        @effects.once(key="number", transaction="connection")
        def pay(number, connection):
            return number

        for number, options in enumerate(
            ({"row_factory": dict_row}, {"row_factory": scalar_row}, {"cursor_factory": psycopg.RawCursor})
        ):
            with psycopg.connect(paying, **options) as connection:
                before = rows(connection)
                assert pay(number, connection) == pay(number, connection) == number
                assert rows(connection) == before

        async def main():
            async with await psycopg.AsyncConnection.connect(paying, row_factory=dict_row) as connection:

                @effects.once(key="number", transaction="connection", name="apay")
                async def apay(number, connection):
                    return number

                assert await apay(9, connection) == await apay(9, connection) == 9
            await effects.aclose()

        asyncio.run(main())


def test_a_row_that_another_transaction_has(paying):
    """A call without a transaction does not wait for it without bound, and other calls go on."""
    with Effects(f"{paying}?lock_timeout=0.2") as effects, psycopg.connect(paying) as connection:
        inside = effects.once(key="number", transaction="connection", name="pay", ignore="connection")
        outside = effects.once(key="number", name="pay")
        inside(lambda number, connection: number)(1, connection)
        with pytest.raises(LedgerUnavailableError):
            outside(lambda number: number)(1)
        assert outside(lambda number: number)(2) == 2
        connection.commit()
        assert outside(lambda number: number)(1) == 1
