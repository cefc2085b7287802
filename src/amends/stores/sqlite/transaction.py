# ruff: noqa: D102  (contract.py documents the methods)
"""A transaction on SQLite: several changes of the store, and the user's own statements."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from amends.stores.arguments import check_name, check_seconds
from amends.stores.clock import Clock, SystemClock
from amends.stores.contract import Lease
from amends.stores.sqlite.log import LogRows
from amends.stores.sqlite.queue import SqliteLease
from amends.stores.sqlite.queue_sql import QueueRows
from amends.stores.sqlite.schema import prepare
from amends.stores.sqlite.table import TableRows

__all__ = ["SqliteTransaction", "transaction_on"]

# Other callers' writes may share the transaction: ending it would commit or undo theirs.
_FORBIDDEN = frozenset({"BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"})
_COMMENTS = re.compile(r"--[^\n]*(\n|$)|/\*.*?\*/", re.DOTALL)


class SqliteTransaction:
    """See `contract.Transaction`."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock, path: str | None = None) -> None:
        self._connection = connection
        self._clock = clock
        self._path = path

    def log(self, name: str) -> LogRows:
        return LogRows(self._connection, check_name(name, "log"))

    def table(self, name: str) -> TableRows:
        return TableRows(self._connection, self._clock, check_name(name, "table"))

    def queue(self, name: str) -> QueueRows:
        return QueueRows(self._connection, self._clock, check_name(name, "queue"))

    def check_lease(self, lease: Lease) -> None:
        held, rows = self._held(lease)
        rows.check_lease(held.number, held.epoch)

    def done(self, lease: Lease) -> None:
        held, rows = self._held(lease)
        rows.done(held.number, held.epoch)

    def give_back(self, lease: Lease, *, delay: float = 0.0) -> None:
        held, rows = self._held(lease)
        rows.give_back(held.number, held.epoch, check_seconds(delay, "delay"))

    def dead_letter(self, lease: Lease, reason: str) -> None:
        held, rows = self._held(lease)
        rows.dead_letter(held.number, held.epoch, reason)

    def _held(self, lease: Lease) -> tuple[SqliteLease, QueueRows]:
        if not isinstance(lease, SqliteLease) or self._path not in {None, lease.queue.connections.real_path}:
            raise ValueError("the lease belongs to another store: end it in a transaction of that store")
        return lease, self.queue(lease.queue.name)

    def sql(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        first = _COMMENTS.sub(" ", statement).split(maxsplit=1)
        if first and first[0].rstrip(";").upper() in _FORBIDDEN:
            raise ValueError(f"{first[0]} is not allowed here: return to commit, raise to roll back")
        return self._connection.execute(statement, parameters).fetchall()


def transaction_on(connection: sqlite3.Connection, clock: Clock | None = None) -> SqliteTransaction:
    """
    Write to the store in a transaction that you run on your own connection to the same file.

    For code that has its own connection (an ORM's, for example) and wants its effect and the store's record committed
    together: begin your transaction, write through the returned object, commit. Use BEGIN IMMEDIATE: a transaction that
    reads first and writes later can fail as busy half way. The first call creates the store's tables, which is not
    possible inside a transaction: if the file may have none yet, call this once before you begin.
    """
    clock = clock or SystemClock()
    if not connection.in_transaction:
        isolation, connection.isolation_level = connection.isolation_level, None
        try:
            prepare(connection, clock)
        finally:
            connection.isolation_level = isolation
    return SqliteTransaction(connection, clock)
