# ruff: noqa: D102, S608  (contract.py documents the methods; only our own names are written into statements)
"""The Postgres backend's store: one database and the connections to it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import TypeVar

from amends.stores.address import Address
from amends.stores.clock import Clock
from amends.stores.contract import Transaction
from amends.stores.local import LocalStore, async_work
from amends.stores.postgres.connect import Database
from amends.stores.postgres.engine import PostgresEngine
from amends.stores.postgres.rows import PostgresTransaction
from amends.stores.postgres.schema import DEAD, prepare
from amends.stores.traits import Traits

__all__ = ["PostgresStore", "open_postgres"]

T = TypeVar("T")


async def open_postgres(address: Address, clock: Clock) -> PostgresStore:
    """Open the store in the database that `address` names; creates its tables if there are none."""
    database = Database.at(address)
    place = await asyncio.to_thread(_prepare, database)
    return PostgresStore(address.display_url, PostgresEngine(database, clock, place), database)


def _with_options(database: Database) -> str:
    options = f"pooled={'yes' if database.pooled else 'no'}&lock_timeout={database.lock_timeout:g}"
    return f"{database.conninfo}{'&' if '?' in database.conninfo else '?'}{options}"


def _prepare(database: Database) -> str:
    with contextlib.closing(database.connect()) as connection:
        try:
            return prepare(connection)
        except Exception as error:
            known = database.translate(error, committing=False)
            if known is error:
                raise
            raise known from error


class PostgresStore(LocalStore):
    """See `contract.Store`. It belongs to the event loop in which it was opened."""

    def __init__(self, url: str, engine: PostgresEngine, database: Database) -> None:
        super().__init__(url, engine)
        self.engine = engine
        self.full_url = _with_options(database)
        """The URL with its password, for another event loop of this process."""
        self.traits = Traits(
            scope="network",
            durable=True,
            transactions=True,
            sql=True,
            immediate=False,
            notifies=not database.pooled,
            ordered=True,
        )

    async def transaction(self, work: Callable[[Transaction], T]) -> T:
        if iscoroutinefunction(work):
            raise async_work()
        return await self.engine.write(work, isolated=True)

    async def names(self) -> dict[str, list[str]]:
        return await self.engine.read(_names)

    async def check(self) -> list[str]:
        return await self.engine.read(_problems)


_DISTINCT = """
    WITH RECURSIVE found (this) AS (
        (SELECT {column} FROM {table} ORDER BY {column} LIMIT 1)
        UNION ALL SELECT (SELECT {column} FROM {table} WHERE {column} > this ORDER BY {column} LIMIT 1)
        FROM found WHERE this IS NOT NULL
    )
    SELECT coalesce(names.name, this) FROM found LEFT JOIN amends_names AS names ON names.ref = this WHERE this IS NOT NULL
"""


def _names(rows: PostgresTransaction) -> dict[str, list[str]]:
    def distinct(table: str, column: str) -> list[str]:
        found = rows.execute(_DISTINCT.format(table=table, column=column))
        return sorted(bytes(name).decode() for (name,) in found)

    return {
        "logs": distinct("amends_logs", "ref"),
        "tables": distinct("amends_rows", "tbl"),
        "queues": distinct("amends_messages", "queue"),
    }


def _problems(rows: PostgresTransaction) -> list[str]:
    """One sentence for each problem found. The database checks its own files."""
    found = [
        f"log {bytes(name).decode('utf-8', 'replace')!r} should run from {oldest} to {last} without gaps, "
        f"but contains {count} entries"
        for name, oldest, last, count in rows.execute(
            "SELECT logs.ref, logs.oldest, logs.last, count(entries.seq) FROM amends_logs AS logs "
            "LEFT JOIN amends_entries AS entries ON entries.log = logs.id AND entries.seq BETWEEN logs.oldest AND logs.last "
            "GROUP BY logs.id HAVING count(entries.seq) <> logs.last - logs.oldest + 1"
        )
    ]
    ((orphans,),) = rows.execute(
        "SELECT count(*) FROM amends_entries AS entries LEFT JOIN amends_logs AS logs ON logs.id = entries.log "
        "WHERE logs.id IS NULL OR entries.seq NOT BETWEEN logs.oldest AND logs.last"
    )
    if orphans:
        found.append(f"{orphans} entries belong to no log")
    ((wrong,),) = rows.execute(
        f"SELECT count(*) FROM amends_messages WHERE state NOT IN (0, 1, {DEAD}) OR attempts < 0 OR epoch < attempts"
    )
    if wrong:
        found.append(f"{wrong} messages are in an invalid state")
    return found
