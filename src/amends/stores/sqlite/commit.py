"""Run a function in its own SQLite transaction, which commits all of its changes or none."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from typing import TypeVar

__all__ = ["ended_by_work", "in_transaction", "roll_back"]

R = TypeVar("R")
T = TypeVar("T")


def in_transaction(connection: sqlite3.Connection, work: Callable[[R], T], argument: R) -> T:
    """
    Call `work(argument)` in a transaction and return its result after the commit.

    Raises:
        sqlite3.Error: a statement failed, or the transaction could not begin or commit.
    """
    execute = connection.execute
    execute("BEGIN IMMEDIATE")
    try:
        result = work(argument)
        if not connection.in_transaction:
            raise ended_by_work()  # noqa: TRY301
        execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise
    return result


def roll_back(connection: sqlite3.Connection) -> None:
    """Roll back, unless SQLite has already done so."""
    if connection.in_transaction:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")


def ended_by_work() -> sqlite3.ProgrammingError:
    """The error for work that ran COMMIT or ROLLBACK, in a transaction that other writes may share."""
    return sqlite3.ProgrammingError(
        "the work ended the store's transaction: leave BEGIN and COMMIT to the store"
    )
