"""
The tables of a store in a SQLite file, and the version of what is in them.

All names begin with `amends_`, and nothing else in the file is touched, because the file may belong to the user. The
schema's version is in `amends_meta`, not in `PRAGMA user_version`, which belongs to the user.

The cost of a commit depends on the number of pages it changes, so data that changes together is stored together:

- An entry's id is `log * 2**36 + seq`: one integer key, so that the entries of a log are adjacent, the newest is found with
  one lookup, and reading the last hundred costs the same for thousands and for millions of entries. The last number of a
  log is that of its newest entry, or `oldest - 1` if all were trimmed; an append updates no other row.
- A log has an id while it has entries. A log that needs an id gets the highest one in use plus one, so the entries are
  the counter. The id is therefore assigned in the transaction that writes the first entry and removed in the one that
  deletes the last entry, and is only valid together with the name that has it at the time.
- A key's revision is one more than its last; for a key that does not exist, one more than the highest that was ever removed
  from its table. That highest number is the revision of a row of the same table whose key is a blob (`FLOOR_KEY`), which
  sorts behind all others; for tables without such a row, it is the revision of the row with that key in the table with the
  empty name, which no caller can open. So revisions also grow across deletions, and a put writes one page.
- A message (table `amends_tasks`) has in `at` the wall time at which it is due while it waits (state 0), the steady time at
  which its lease expires while it is held (state 1), and the wall time at which it became a dead letter (state 2).
"""

from __future__ import annotations

import sqlite3

from amends.stores.clock import Clock
from amends.stores.errors import DamagedStoreError
from amends.stores.versions import VERSION, other_version

__all__ = ["DEAD", "FLOOR_KEY", "HELD", "LOGS", "LOG_SHIFT", "SEQ_MASK", "WAITING", "prepare"]

LOG_SHIFT = 36
SEQ_MASK = (1 << LOG_SHIFT) - 1
LOGS = 1 << (63 - LOG_SHIFT)
"""Ids of logs are below this number, so that an entry's id fits SQLite's 64-bit integers."""

FLOOR_KEY = "x''"
"""The key of the row that holds a table's highest removed revision: a blob, which sorts behind every text."""

WAITING, HELD, DEAD = 0, 1, 2

_TABLES = (
    """
    CREATE TABLE amends_logs (
        name TEXT NOT NULL PRIMARY KEY,
        id INTEGER,
        oldest INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE TABLE amends_entries (id INTEGER PRIMARY KEY, value BLOB NOT NULL, dedupe TEXT)",
    f"""
    CREATE UNIQUE INDEX amends_entries_dedupe ON amends_entries (id >> {LOG_SHIFT}, dedupe)
        WHERE dedupe IS NOT NULL
    """,
    """
    CREATE TABLE amends_rows (
        tbl TEXT NOT NULL,
        key TEXT NOT NULL,
        revision INTEGER NOT NULL,
        expires REAL,
        value BLOB NOT NULL,
        PRIMARY KEY (tbl, key)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX amends_rows_expires ON amends_rows (expires) WHERE expires IS NOT NULL",
    """
    CREATE TABLE amends_tasks (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        queue TEXT NOT NULL,
        state INTEGER NOT NULL,
        at REAL NOT NULL,
        attempts INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        key TEXT,
        reason TEXT,
        value BLOB NOT NULL
    )
    """,
    "CREATE INDEX amends_tasks_next ON amends_tasks (queue, state, at)",
    f"""
    CREATE UNIQUE INDEX amends_tasks_key ON amends_tasks (queue, key)
        WHERE key IS NOT NULL AND state < {DEAD}
    """,
)


_REMOVE = "remove the file"


def prepare(connection: sqlite3.Connection, clock: Clock) -> None:
    """
    Create the tables in a new file, and end the leases of workers that ran before the last boot.

    Raises:
        DamagedStoreError: another version of amends wrote the file.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS amends_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)"
        )
        version = _meta(connection, "version")
        if version is None and _has_tables(connection):
            raise DamagedStoreError(other_version(None, _REMOVE))  # noqa: TRY301
        if version is None:
            for statement in _TABLES:
                connection.execute(statement)
            _set_meta(connection, "version", str(VERSION))
        elif problem := other_version(version, _REMOVE):
            raise DamagedStoreError(problem)  # noqa: TRY301
        if _meta(connection, "boot") != clock.boot():
            connection.execute("UPDATE amends_tasks SET state = ?, at = 0 WHERE state = ?", (WAITING, HELD))
            _set_meta(connection, "boot", clock.boot())
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _has_tables(connection: sqlite3.Connection) -> bool:
    """Whether the file has a table of a store."""
    statement = "SELECT 1 FROM sqlite_master WHERE name IN ('amends_logs', 'amends_entries', 'amends_rows')"
    return connection.execute(statement).fetchone() is not None


def _meta(connection: sqlite3.Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM amends_meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def _set_meta(connection: sqlite3.Connection, key: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO amends_meta VALUES (?, ?)", (key, value))
