# ruff: noqa: D102  (contract.py documents the methods)
"""The SQLite backend's store: one file and its connections."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from amends.stores.address import Address
from amends.stores.arguments import check_lease, check_name
from amends.stores.clock import Clock
from amends.stores.contract import Transaction
from amends.stores.signal import Signal
from amends.stores.sqlite.access import Access, Rows
from amends.stores.sqlite.check import problems
from amends.stores.sqlite.file import File, store_error
from amends.stores.sqlite.log import SqliteLog
from amends.stores.sqlite.queue import SqliteQueue
from amends.stores.sqlite.schema import FLOOR_KEY, prepare
from amends.stores.sqlite.table import SqliteTable
from amends.stores.sqlite.threads import Reader, Writer
from amends.stores.sqlite.transaction import SqliteTransaction
from amends.stores.sqlite.watch import Watch
from amends.stores.traits import Traits

__all__ = ["SqliteStore", "open_sqlite"]

T = TypeVar("T")

# The distinct values of an indexed column, found by seeking from one to the next instead of reading every row.
_DISTINCT = """
    WITH RECURSIVE found (this) AS (
        SELECT min({column}) FROM {table}
        UNION ALL SELECT (SELECT min({column}) FROM {table} WHERE {column} > this) FROM found WHERE this IS NOT NULL
    )
    SELECT this FROM found WHERE this IS NOT NULL
"""
# A table that has only its floor row counts as empty.
_HAS_ROWS = f"SELECT 1 FROM amends_rows WHERE tbl = ? AND key < {FLOOR_KEY} LIMIT 1"  # noqa: S608


async def open_sqlite(address: Address, clock: Clock) -> SqliteStore:
    """Open the store in the file that `address` names; creates the file if there is none."""
    file = File.at(address)
    connections = await asyncio.to_thread(_connect, file, clock)
    return SqliteStore(address.display_url, file, clock, connections)


class _Connections(NamedTuple):
    writer: sqlite3.Connection
    reader: sqlite3.Connection
    loop: sqlite3.Connection


def _connect(file: File, clock: Clock) -> _Connections:
    """Connect to the file and migrate it. Runs in a thread, because it may wait for a lock."""
    with contextlib.ExitStack() as undo:

        def connect(*, for_loop: bool = False) -> sqlite3.Connection:
            return undo.enter_context(contextlib.closing(file.connect(for_loop=for_loop)))

        try:
            prepare(writer := connect(), clock)
        except sqlite3.Error as error:
            raise store_error(error, file)  # noqa: B904  (it sets its cause)
        connections = _Connections(writer, connect(), connect(for_loop=True))
        undo.pop_all()
        return connections


class SqliteStore:
    """See `contract.Store`. It belongs to the event loop in which it was opened."""

    traits = Traits(
        scope="machine", durable=True, transactions=True, sql=True, immediate=False, notifies=False
    )
    supports_transactions = traits.transactions

    def __init__(self, url: str, file: File, clock: Clock, connections: _Connections) -> None:
        self.url = url
        self.clock = clock
        self.signal = Signal()
        self.access = Access(
            url,
            file,
            connections.loop,
            Writer(file, connections.writer, "amends-sqlite-write", self.signal.notify),
            Reader(file, connections.reader, "amends-sqlite-read"),
        )
        path = self.access.real_path
        self._transactions = Rows(self.access, lambda c, limit: SqliteTransaction(c, clock, limit, path))
        self._watch = Watch(connections.loop, self.signal)
        self.signal.on_wait = self._watch.schedule

    def log(self, name: str) -> SqliteLog:
        return SqliteLog(self, check_name(name, "log"))

    def table(self, name: str) -> SqliteTable:
        return SqliteTable(self, check_name(name, "table"))

    def queue(self, name: str, *, lease: float = 30.0, max_attempts: int | None = None) -> SqliteQueue:
        check_lease(lease, max_attempts)
        return SqliteQueue(self, check_name(name, "queue"), lease, max_attempts)

    async def transaction(self, work: Callable[[Transaction], T], *, short: bool = False) -> T:
        if short:
            return await self.access.write(self._transactions, work, isolated=True)
        return await self.access.write_in_thread(self._transactions.on(work), isolated=True)

    async def names(self) -> dict[str, list[str]]:
        def distinct(connection: sqlite3.Connection, table: str, column: str) -> list[str]:
            return sorted(row[0] for row in connection.execute(_DISTINCT.format(table=table, column=column)))

        def has_rows(connection: sqlite3.Connection, table: str) -> bool:
            found = connection.execute(_HAS_ROWS, (table,)).fetchone()
            return found is not None

        return await self.access.read_in_thread(
            lambda c: {
                "logs": distinct(c, "amends_logs", "name"),
                "tables": [table for table in distinct(c, "amends_rows", "tbl") if has_rows(c, table)],
                "queues": distinct(c, "amends_tasks", "queue"),
            }
        )

    async def check(self) -> list[str]:
        return await self.access.read_in_thread(problems)

    async def close(self) -> None:
        self._watch.stop()
        self.access.reject_work()
        self.signal.notify()
        await self.access.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
