"""
The ledger's table in Postgres.

    effects = Effects("postgresql://user@host/database")

`PostgresStore` has tables only, which is what a ledger needs; each operation is one statement. `InTransaction` writes the
record of an effect in a transaction of the user's own, together with the effect: there "once" is exact.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Any, NoReturn, Self
from urllib.parse import urlsplit

from amends.stores.arguments import check_key, check_value
from amends.stores.clock import Clock, SystemClock
from amends.stores.contract import Row
from amends.stores.errors import ConflictError, StoreClosedError, StoreUnavailableError, UnsupportedError
from amends.stores.traits import Traits

__all__ = ["DDL", "PostgresStore", "PostgresTable", "is_postgres", "open_postgres"]

DDL = """
CREATE SEQUENCE IF NOT EXISTS amends_effects_revision;
CREATE TABLE IF NOT EXISTS amends_effects (
    tbl      text   NOT NULL,
    key      text   NOT NULL,
    revision bigint NOT NULL DEFAULT nextval('amends_effects_revision'),
    expires  timestamptz,
    value    bytea  NOT NULL,
    PRIMARY KEY (tbl, key)
);
CREATE INDEX IF NOT EXISTS amends_effects_expires ON amends_effects (expires) WHERE expires IS NOT NULL;
"""
"""What the ledger needs in the database. It is created at the first use, if the role may do that."""

_LOCK = 7_236_451_190
"""The advisory lock under which the table is created: two processes may start at the same time."""
_SWEEP_EVERY = 200
_PATIENCE = 30.0
"""Seconds that a statement may take, which may have to wait for a transaction of the user's own."""

_GET = """
    SELECT value, revision, CAST(extract(epoch FROM expires - clock_timestamp()) AS float8)
    FROM amends_effects WHERE tbl = %s AND key = %s AND (expires IS NULL OR expires > clock_timestamp())
"""
_EXPIRES = "clock_timestamp() + %s * interval '1 second'"
_PUT = f"""
    INSERT INTO amends_effects (tbl, key, expires, value) VALUES (%s, %s, {_EXPIRES}, %s)
    ON CONFLICT (tbl, key) DO UPDATE
    SET expires = excluded.expires, value = excluded.value, revision = nextval('amends_effects_revision')
"""  # noqa: S608 - no values in the text
_CREATE = f"{_PUT} WHERE amends_effects.expires <= clock_timestamp() RETURNING revision"
_UPDATE = f"""
    UPDATE amends_effects SET expires = {_EXPIRES}, value = %s, revision = nextval('amends_effects_revision')
    WHERE tbl = %s AND key = %s AND revision = %s RETURNING revision
"""  # noqa: S608
_SCAN = """
    SELECT key, value, revision, CAST(extract(epoch FROM expires - clock_timestamp()) AS float8)
    FROM amends_effects WHERE tbl = %s AND starts_with(key, %s)
    AND (expires IS NULL OR expires > clock_timestamp())
"""


def is_postgres(url: object) -> bool:
    """Return whether a store's URL names a Postgres database."""
    return isinstance(url, str) and url.startswith(("postgresql://", "postgres://"))


async def open_postgres(url: str) -> PostgresStore:
    """
    Connect to the database, and create the ledger's table if there is none.

    Raises:
        ImportError: psycopg is missing; the message names the line that installs it.
        StoreUnavailableError: the server does not answer, or the table cannot be created.

    """
    store = PostgresStore(url)
    try:
        await store.execute("SELECT 1")
        if (await store.execute("SELECT to_regclass('amends_effects')"))[0][0] is None:
            await store.create()
    except BaseException:
        await store.close()
        raise
    return store


class PostgresStore:
    """Tables in one Postgres table. It belongs to the event loop in which it was opened."""

    traits = Traits(
        scope="network", durable=True, transactions=False, sql=False, immediate=False, notifies=False
    )

    def __init__(self, url: str) -> None:
        self.url = urlsplit(url)._replace(netloc=urlsplit(url).netloc.rpartition("@")[2]).geturl()
        self._address = url
        self.clock: Clock = SystemClock()
        self._connection: Any = None
        self._lock = asyncio.Lock()
        self._closed = False
        self._writes = 0

    def table(self, name: str) -> PostgresTable:
        """Return the table with that name."""
        return PostgresTable(self, name)

    def log(self, name: str) -> NoReturn:
        """Postgres holds the ledger's table only."""
        raise UnsupportedError(
            "Postgres holds the ledger of effects only: use SQLite or NATS for logs and queues"
        )

    def queue(self, name: str, *, lease: float = 30.0, max_attempts: int | None = None) -> NoReturn:
        """See `log`."""
        self.log(name)

    async def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """
        Run one statement in a transaction of its own, and return its rows.

        Raises:
            StoreUnavailableError: the server does not answer.

        """
        psycopg = _psycopg()
        async with self._lock:
            if self._closed:
                raise StoreClosedError(self.url)
            try:
                async with asyncio.timeout(_PATIENCE):
                    return await self._execute(psycopg, statement, values)
            except TimeoutError:
                # Another transaction has the row, for example. The statement is cancelled with its connection.
                await self._disconnect()
                raise StoreUnavailableError(f"Postgres at {self.url} does not answer", "maybe") from None
            except psycopg.Error as error:
                raise StoreUnavailableError(
                    f"Postgres at {self.url} failed: {type(error).__name__}", "maybe"
                ) from error

    async def _execute(self, psycopg: Any, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        if self._connection is None or self._connection.closed:
            self._connection = await psycopg.AsyncConnection.connect(
                self._address, autocommit=True, connect_timeout=10
            )
        cursor = await self._connection.execute(statement, values)
        return await cursor.fetchall() if cursor.description is not None else []

    async def create(self) -> None:
        """Create the ledger's table."""
        psycopg = _psycopg()
        async with self._lock:
            try:
                async with self._connection.transaction():
                    await self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                    await self._connection.execute(DDL)
            except psycopg.Error as error:
                raise StoreUnavailableError(
                    f"the table amends_effects cannot be created in {self.url}; docs/effects.md has its DDL"
                ) from error

    async def sweep(self) -> None:
        """Delete expired rows, now and then."""
        self._writes += 1
        if self._writes % _SWEEP_EVERY == 0:
            await self.execute(
                "DELETE FROM amends_effects WHERE expires < clock_timestamp() - interval '1 minute'"
            )

    async def transaction(self, work: Any, *, short: bool = False) -> NoReturn:
        """Statements are single; see `traits`."""
        raise UnsupportedError("the ledger's table in Postgres has no transactions of its own")

    async def names(self) -> dict[str, list[str]]:
        """Return the names of the tables."""
        rows = await self.execute("SELECT DISTINCT tbl FROM amends_effects ORDER BY tbl")
        return {"logs": [], "tables": [row[0] for row in rows], "queues": []}

    async def check(self) -> list[str]:
        """Return no problems: the database checks its own files."""
        return []

    async def close(self) -> None:
        """Close the connection."""
        self._closed = True
        await self._disconnect()

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class PostgresTable:
    """See `stores.contract.Table`."""

    def __init__(self, store: PostgresStore, name: str) -> None:
        self._store, self.name = store, name

    async def get(self, key: str) -> Row | None:
        """See `Table.get`."""
        rows = await self._store.execute(_GET, (self.name, check_key(key)))
        return Row(key, bytes(rows[0][0]), rows[0][1], rows[0][2]) if rows else None

    async def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        """See `Table.put`."""
        check_key(key)
        value = check_value(value)
        await self._store.sweep()
        if revision is None:
            rows = await self._store.execute(
                f"{_PUT} RETURNING revision", (self.name, key, expires_in, value)
            )
        elif revision == 0:
            rows = await self._store.execute(_CREATE, (self.name, key, expires_in, value))
        else:
            rows = await self._store.execute(_UPDATE, (expires_in, value, self.name, key, revision))
        if not rows:
            raise await self._conflict(key, revision or 0)
        return int(rows[0][0])

    async def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        """See `Table.create`."""
        return await self.put(key, value, revision=0, expires_in=expires_in)

    async def delete(self, key: str, *, revision: int | None = None) -> bool:
        """See `Table.delete`."""
        statement = "DELETE FROM amends_effects WHERE tbl = %s AND key = %s"
        values: tuple[Any, ...] = (self.name, check_key(key))
        if revision is not None:
            statement, values = f"{statement} AND revision = %s", (*values, revision)
        rows = await self._store.execute(f"{statement} RETURNING revision", values)
        if not rows and revision is not None:
            raise await self._conflict(key, revision)
        return bool(rows)

    async def discard(self, key: str) -> None:
        """See `Table.discard`."""
        await self.delete(key)

    async def scan(self, prefix: str = "") -> AsyncIterator[Row]:
        """See `Table.scan`."""
        for key, value, revision, left in await self._store.execute(_SCAN, (self.name, prefix)):
            yield Row(key, bytes(value), revision, left)

    async def drop(self) -> None:
        """See `Table.drop`."""
        await self._store.execute("DELETE FROM amends_effects WHERE tbl = %s", (self.name,))

    async def _conflict(self, key: str, expected: int) -> ConflictError:
        found = await self.get(key)
        return ConflictError(self.name, expected, 0 if found is None else found.revision, key)


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError as missing:
        raise ImportError("a ledger in Postgres needs psycopg 3: pip install 'amends[postgres]'") from missing
    return psycopg
