"""Check that the contents of a SQLite store are consistent."""

from __future__ import annotations

import sqlite3
from time import monotonic

from amends.stores.sqlite.schema import LOG_SHIFT, SEQ_MASK

__all__ = ["problems", "quick_problem"]

# Seconds and bytes that the check on opening may take; `amends store check` reads everything.
_QUICK_SECONDS = 1.0
_QUICK_BYTES = 64_000_000
_INTERRUPTIBLE = (3, 43)
"""The first SQLite version that can interrupt its check."""


def quick_problem(connection: sqlite3.Connection) -> str | None:
    """
    The first damaged page that SQLite's quick check finds, or None.

    A large file is checked for a second, as far as that goes.
    """
    pages, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    if pages * size > _QUICK_BYTES and sqlite3.sqlite_version_info < _INTERRUPTIBLE:
        return None
    end = monotonic() + _QUICK_SECONDS
    connection.set_progress_handler(lambda: monotonic() > end, 1000)
    try:
        found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return None
    finally:
        connection.set_progress_handler(None, 0)
    return None if found == "ok" else found.splitlines()[-1]


def problems(connection: sqlite3.Connection) -> list[str]:
    """One sentence for each problem found; reads the whole file."""
    try:
        rows = connection.execute("PRAGMA integrity_check").fetchall()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        rows = [(error.sqlite_errorname,)]
    found = [f"SQLite's own check: {row[0]}" for row in rows if row[0] != "ok"]
    # The statements below would fail on a damaged page.
    return found or _foreign_rows(connection) or _inconsistencies(connection)


def _foreign_rows(connection: sqlite3.Connection) -> list[str]:
    """A sentence for each table with values that are not bytes, or with texts that are not UTF-8."""
    found = []
    for table, text in (("amends_entries", "dedupe"), ("amends_rows", "key"), ("amends_tasks", "key")):
        statement = f"SELECT count(*) FROM {table} WHERE typeof(value) != 'blob'"  # noqa: S608
        count = connection.execute(statement).fetchone()[0]
        if count:
            found.append(f"{count} values in {table} are not bytes: amends did not write them")
        try:
            for _ in connection.execute(f"SELECT {text} FROM {table}"):  # noqa: S608
                pass
        except sqlite3.OperationalError:
            found.append(f"a {text} in {table} is not valid UTF-8: amends did not write it")
    return found


def _inconsistencies(connection: sqlite3.Connection) -> list[str]:
    found: list[str] = []
    for id, name, oldest in connection.execute("SELECT id, name, oldest FROM amends_logs").fetchall():
        if id is None:
            continue
        base = id << LOG_SHIFT
        count, low, high = connection.execute(
            "SELECT count(*), min(id), max(id) FROM amends_entries WHERE id BETWEEN ? AND ?",
            (base, base + SEQ_MASK),
        ).fetchone()
        if not count:
            found.append(f"log {name!r} should contain entries from {oldest} on, but contains none")
        elif low - base != oldest or high - low + 1 != count:
            found.append(
                f"log {name!r} should run from {oldest} to {high - base} without gaps, but contains {count} entries"
            )
    shared = connection.execute(
        "SELECT count(*) FROM (SELECT id FROM amends_logs WHERE id IS NOT NULL GROUP BY id HAVING count(*) > 1)"
    ).fetchone()[0]
    if shared:
        found.append(f"{shared} ids belong to more than one log")
    orphans = connection.execute(
        f"SELECT count(*) FROM amends_entries WHERE id >> {LOG_SHIFT} "  # noqa: S608
        "NOT IN (SELECT id FROM amends_logs WHERE id IS NOT NULL)"
    ).fetchone()[0]
    if orphans:
        found.append(f"{orphans} entries belong to no log")
    wrong = connection.execute(
        "SELECT count(*) FROM amends_tasks WHERE state NOT IN (0, 1, 2) OR attempts < 0 OR epoch < attempts"
    ).fetchone()[0]
    if wrong:
        found.append(f"{wrong} messages are in an invalid state")
    return found
