# ruff: noqa: D102  (contract.py documents the methods)
"""A transaction on SQLite: several changes of the store, and the user's own statements."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from amends.stores.clock import Clock, SystemClock
from amends.stores.local import LocalTransaction
from amends.stores.sqlite.connections import SqliteRows
from amends.stores.sqlite.schema import prepare

__all__ = ["SqliteTransaction", "transaction_on"]

# Other callers' writes may share the transaction: ending it would commit or undo theirs.
_FORBIDDEN = frozenset({"BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"})
_COMMENTS = re.compile(r"--[^\n]*(\n|$)|/\*.*?\*/", re.DOTALL)


class SqliteTransaction(LocalTransaction):
    """See `contract.Transaction`."""

    def __init__(self, rows: SqliteRows, place: str | None = None) -> None:
        super().__init__(rows, place)
        self._connection = rows.connection

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
    return SqliteTransaction(SqliteRows(connection, clock))
