# ruff: noqa: D102  (what a method means is said once, in contract.py)
"""Several changes and the user's own statements in one SQLite transaction."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from amends.stores.arguments import check_name, check_seconds
from amends.stores.clock import Clock, SystemClock
from amends.stores.contract import Lease
from amends.stores.sqlite.access import NO_BOUND, Elsewhere
from amends.stores.sqlite.log import LogRows
from amends.stores.sqlite.queue import SqliteLease
from amends.stores.sqlite.queue_sql import QueueRows
from amends.stores.sqlite.schema import prepare
from amends.stores.sqlite.table import TableRows

__all__ = ["SqliteTransaction", "joined"]

# The transaction is shared with other callers' writes: ending it would commit or undo theirs.
_NOT_YOURS = frozenset({"BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"})
_COMMENTS = re.compile(r"--[^\n]*(\n|$)|/\*.*?\*/", re.DOTALL)


class SqliteTransaction:
    """See `contract.Transaction`."""

    def __init__(
        self, connection: sqlite3.Connection, clock: Clock, room: int = NO_BOUND, place: str | None = None
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._room = room
        self._place = place

    def log(self, name: str) -> LogRows:
        return LogRows(self._connection, check_name(name, "log"), self._room)

    def table(self, name: str) -> TableRows:
        return TableRows(self._connection, self._clock, check_name(name, "table"), self._room)

    def queue(self, name: str) -> QueueRows:
        return QueueRows(self._connection, self._clock, check_name(name, "queue"), self._room)

    def done(self, lease: Lease) -> None:
        held, rows = self._held(lease)
        rows.done(held.number, held.epoch)

    def give_back(self, lease: Lease, *, delay: float = 0.0) -> None:
        held, rows = self._held(lease)
        rows.give_back(held.number, held.epoch, check_seconds(delay, "delay"))

    def bury(self, lease: Lease, reason: str) -> None:
        held, rows = self._held(lease)
        rows.bury(held.number, held.epoch, reason)

    def _held(self, lease: Lease) -> tuple[SqliteLease, QueueRows]:
        if not isinstance(lease, SqliteLease) or self._place not in {None, lease.queue.access.place}:
            raise ValueError("the lease is another store's: it cannot end in this one's transaction")
        if len(lease.value) > self._room:
            raise Elsewhere
        return lease, self.queue(lease.queue.name)

    def sql(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if self._room != NO_BOUND:
            # Nobody knows how long it takes.
            raise Elsewhere
        first = _COMMENTS.sub(" ", statement).split(maxsplit=1)
        if first and first[0].rstrip(";").upper() in _NOT_YOURS:
            raise ValueError(f"{first[0]} is the store's to say: return to commit, raise to roll back")
        return self._connection.execute(statement, parameters).fetchall()


def joined(connection: sqlite3.Connection, clock: Clock | None = None) -> SqliteTransaction:
    """
    The store's side of a transaction that you run on your own connection to the same file.

    For code that has its own connection (an ORM's, say) and wants its effect and the store's record committed together:
    begin your transaction, write through what this returns, commit. Begin it with BEGIN IMMEDIATE: one that reads first
    and writes later can fail as busy half way. The tables are made if the file has none yet, which cannot
    happen inside a transaction: then call this once before you begin.
    """
    clock = clock or SystemClock()
    if not connection.in_transaction:
        isolation, connection.isolation_level = connection.isolation_level, None
        try:
            prepare(connection, clock)
        finally:
            connection.isolation_level = isolation
    return SqliteTransaction(connection, clock)
