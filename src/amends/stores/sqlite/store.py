# ruff: noqa: D102  (contract.py documents the methods)
"""The SQLite backend's store: one file and its connections."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TypeVar

from amends.stores.address import Address
from amends.stores.clock import Clock
from amends.stores.contract import Transaction
from amends.stores.errors import DamagedStoreError
from amends.stores.local import LocalStore, async_work
from amends.stores.sqlite.check import problems, quick_problem
from amends.stores.sqlite.connections import Connections
from amends.stores.sqlite.file import File, store_error
from amends.stores.sqlite.schema import FLOOR_KEY, prepare
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
    writer, reader = await asyncio.to_thread(_connect, file, clock)
    return SqliteStore(address.display_url, Connections(address.display_url, file, clock, writer, reader))


def _connect(file: File, clock: Clock) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """Connect to the file, create its tables and check it. Runs in a thread, because it may wait for a lock."""
    with contextlib.ExitStack() as undo:
        writer = undo.enter_context(contextlib.closing(file.connect()))
        try:
            prepare(writer, clock)
            found = quick_problem(writer)
        except sqlite3.Error as error:
            raise store_error(error, file)  # noqa: B904  (it sets its cause)
        if found is not None:
            raise DamagedStoreError(f"{file.path} is damaged ({found}): restore it from a backup")
        reader = undo.enter_context(contextlib.closing(file.connect()))
        file.remember()
        undo.pop_all()
        return writer, reader


class SqliteStore(LocalStore):
    """See `contract.Store`. It belongs to the event loop in which it was opened."""

    traits = Traits(
        scope="machine",
        durable=True,
        transactions=True,
        sql=True,
        immediate=False,
        notifies=False,
        ordered=True,
    )

    def __init__(self, url: str, connections: Connections) -> None:
        super().__init__(url, connections)
        self.connections = connections
        self.path = Path(connections.place)
        """The file, as an absolute path."""

    async def transaction(self, work: Callable[[Transaction], T]) -> T:
        if iscoroutinefunction(work):
            raise async_work()
        return await self.connections.write(work, isolated=True)

    async def names(self) -> dict[str, list[str]]:
        return await self.connections.read(lambda rows: _names(rows.connection))

    async def check(self) -> list[str]:
        return await self.connections.read(lambda rows: problems(rows.connection))


def _names(connection: sqlite3.Connection) -> dict[str, list[str]]:
    def distinct(table: str, column: str) -> list[str]:
        return sorted(row[0] for row in connection.execute(_DISTINCT.format(table=table, column=column)))

    def has_rows(table: str) -> bool:
        return connection.execute(_HAS_ROWS, (table,)).fetchone() is not None

    return {
        "logs": distinct("amends_logs", "name"),
        "tables": [table for table in distinct("amends_rows", "tbl") if has_rows(table)],
        "queues": distinct("amends_tasks", "queue"),
    }
