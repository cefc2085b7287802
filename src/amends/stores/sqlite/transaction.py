# ruff: noqa: D102  (what a method means is said once, in contract.py)
"""Several changes and the user's own statements in one SQLite transaction."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from amends.stores.arguments import check_name
from amends.stores.clock import Clock, SystemClock
from amends.stores.sqlite.log import LogRows
from amends.stores.sqlite.schema import prepare
from amends.stores.sqlite.table import TableRows
from amends.stores.sqlite.tasks import QueueRows

__all__ = ["SqliteTransaction", "joined"]

# The transaction is shared with other callers' writes: ending it would commit or undo theirs.
_NOT_YOURS = frozenset({"BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"})
_COMMENTS = re.compile(r"--[^\n]*(\n|$)|/\*.*?\*/", re.DOTALL)


class SqliteTransaction:
    """See `contract.Transaction`."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def log(self, name: str) -> LogRows:
        return LogRows(self._connection, check_name(name, "log"))

    def table(self, name: str) -> TableRows:
        return TableRows(self._connection, self._clock, check_name(name, "table"))

    def queue(self, name: str) -> QueueRows:
        return QueueRows(self._connection, self._clock, check_name(name, "queue"))

    def sql(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
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
