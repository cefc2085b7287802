# ruff: noqa: D102  (contract.py documents the methods)
"""The rows of a SQLite store, as a transaction: several changes of the store, and the user's own statements."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from amends.stores.arguments import check_name
from amends.stores.clock import Clock, SystemClock
from amends.stores.local import LeaseEnds
from amends.stores.sqlite.log import LogRows
from amends.stores.sqlite.queue import QueueRows
from amends.stores.sqlite.schema import prepare
from amends.stores.sqlite.table import TableRows

__all__ = ["SqliteTransaction", "transaction_on"]

# Other callers' writes may share the transaction: ending it would commit or undo theirs.
_FORBIDDEN = frozenset({"BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"})
_COMMENTS = re.compile(r"--[^\n]*(\n|$)|/\*.*?\*/", re.DOTALL)


class SqliteTransaction(LeaseEnds):
    """See `contract.Transaction`. The statements run in the connection's current transaction."""

    __slots__ = ("_clock", "_filled", "connection", "place")

    def __init__(
        self,
        connection: sqlite3.Connection,
        clock: Clock,
        place: str | None = None,
        filled: set[str] | None = None,
    ) -> None:
        """
        Args:
            connection: runs the statements.
            clock: gives the time.
            place: see `LeaseEnds`.
            filled: gets the names of the queues that have new messages.

        """
        self.connection, self._clock, self.place = connection, clock, place
        self._filled = set() if filled is None else filled

    def log(self, name: str) -> LogRows:
        return LogRows(self.connection, check_name(name, "log"))

    def table(self, name: str) -> TableRows:
        return TableRows(self.connection, self._clock, check_name(name, "table"))

    def queue(self, name: str) -> QueueRows:
        return QueueRows(self.connection, self._clock, check_name(name, "queue"), self._filled)

    def sql(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        first = _COMMENTS.sub(" ", statement).split(maxsplit=1)
        if first and first[0].rstrip(";").upper() in _FORBIDDEN:
            raise ValueError(f"{first[0]} is not allowed here: return to commit, raise to roll back")
        return self.connection.execute(statement, parameters).fetchall()


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
