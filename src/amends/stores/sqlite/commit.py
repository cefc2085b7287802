"""A piece of work in a transaction of its own: all of it is committed, or nothing happened."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from typing import TypeVar

__all__ = ["ended_by_work", "in_transaction", "roll_back"]

R = TypeVar("R")
T = TypeVar("T")


def in_transaction(connection: sqlite3.Connection, work: Callable[[R], T], given: R) -> T:
    """
    Do `work` with what it is `given`, and return after its commit.

    Raises:
        sqlite3.Error: also for a transaction that cannot begin, or cannot be committed.
    """
    execute = connection.execute
    execute("BEGIN IMMEDIATE")
    try:
        answer = work(given)
        if not connection.in_transaction:
            raise ended_by_work()  # noqa: TRY301
        execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise
    return answer


def roll_back(connection: sqlite3.Connection) -> None:
    """Undo what was not committed; where SQLite has done so itself, nothing is left to do."""
    if connection.in_transaction:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")


def ended_by_work() -> sqlite3.ProgrammingError:
    """The work has said COMMIT or ROLLBACK, in a transaction that may be others' too."""
    return sqlite3.ProgrammingError(
        "the work ended the store's transaction: leave BEGIN and COMMIT to the store"
    )
