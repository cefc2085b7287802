# ruff: noqa: D102  (what a method means is said once, in contract.py)
"""The SQLite backend's store: one file, a thread that writes, one that reads, one that watches."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from amends.stores.address import Address
from amends.stores.arguments import check_lease, check_name
from amends.stores.clock import Clock
from amends.stores.contract import Transaction
from amends.stores.errors import StoreClosedError
from amends.stores.signal import Signal
from amends.stores.sqlite.check import problems
from amends.stores.sqlite.file import File, translated
from amends.stores.sqlite.log import SqliteLog
from amends.stores.sqlite.queue import SqliteQueue
from amends.stores.sqlite.schema import prepare
from amends.stores.sqlite.table import SqliteTable
from amends.stores.sqlite.threads import Reader, Writer
from amends.stores.sqlite.transaction import SqliteTransaction
from amends.stores.sqlite.watch import Watch

__all__ = ["SqliteStore", "open_sqlite"]

T = TypeVar("T")

# Distinct values of an indexed column by jumping from one to the next, instead of reading every row.
_DISTINCT = """
    WITH RECURSIVE found (this) AS (
        SELECT min({column}) FROM {table}
        UNION ALL SELECT (SELECT min({column}) FROM {table} WHERE {column} > this) FROM found WHERE this IS NOT NULL
    )
    SELECT this FROM found WHERE this IS NOT NULL
"""


async def open_sqlite(address: Address, clock: Clock) -> SqliteStore:
    """The store in the file `address` names; the file is made, or brought up to date, first."""
    file = File.at(address)

    def make() -> None:
        connection = file.connect()
        try:
            prepare(connection, clock)
        except sqlite3.Error as error:
            raise translated(error, file) from error
        finally:
            connection.close()

    await asyncio.to_thread(make)
    return SqliteStore(address.shown, file, clock)


class SqliteStore:
    """See `contract.Store`. Belongs to the event loop it was opened in."""

    supports_transactions = True

    def __init__(self, url: str, file: File, clock: Clock) -> None:
        self.url = url
        self.clock = clock
        self.signal = Signal()
        self.closed = False
        self._writer = Writer(file, "amends-sqlite-write", self.signal.ring)
        self._reader = Reader(file, "amends-sqlite-read")
        self._watch = Watch(file, self.signal)
        self.signal.wanted = self._watch.want

    def log(self, name: str) -> SqliteLog:
        return SqliteLog(self, check_name(name, "log"))

    def table(self, name: str) -> SqliteTable:
        return SqliteTable(self, check_name(name, "table"))

    def queue(self, name: str, *, lease: float = 30.0, max_attempts: int | None = None) -> SqliteQueue:
        check_lease(lease, max_attempts)
        return SqliteQueue(self, check_name(name, "queue"), lease, max_attempts)

    async def transaction(self, work: Callable[[Transaction], T]) -> T:
        def run(connection: sqlite3.Connection) -> T:
            return work(SqliteTransaction(connection, self.clock))

        return await self._open(self._writer).submit(run, isolated=True)

    async def names(self) -> dict[str, list[str]]:
        def distinct(connection: sqlite3.Connection, table: str, column: str) -> list[str]:
            return sorted(row[0] for row in connection.execute(_DISTINCT.format(table=table, column=column)))

        return await self.read(
            lambda c: {
                "logs": distinct(c, "amends_logs", "name"),
                "tables": distinct(c, "amends_rows", "tbl"),
                "queues": distinct(c, "amends_tasks", "queue"),
            }
        )

    async def check(self) -> list[str]:
        return await self.read(problems)

    async def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.signal.ring()
        await self._writer.close()
        await self._reader.close()
        await self._watch.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def write(self, work: Callable[[sqlite3.Connection], T], *, alone: bool = False) -> asyncio.Future[T]:
        """
        Have it done by the writer; it must look before it writes, because it shares its transaction.

        `alone` work is safe without any: each of its statements stands for itself.
        """
        return self._open(self._writer).submit(work, alone=alone)

    def read(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """Have it done by the reader."""
        return self._open(self._reader).submit(work)

    def _open(self, thread: T) -> T:
        if self.closed:
            raise StoreClosedError(self.url)
        return thread
