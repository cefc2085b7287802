# ruff: noqa: S608  (only our own numbers are written into statements)
"""
The tables of a store in a SQLite file, and the migrations from older files.

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
from collections.abc import Callable
from functools import partial

from amends.stores.clock import Clock
from amends.stores.errors import DamagedStoreError

__all__ = ["DEAD", "FLOOR_KEY", "HELD", "LOGS", "LOG_SHIFT", "MIGRATIONS", "SEQ_MASK", "WAITING", "prepare"]

LOG_SHIFT = 36
SEQ_MASK = (1 << LOG_SHIFT) - 1
LOGS = 1 << (63 - LOG_SHIFT)
"""Ids of logs are below this number, so that an entry's id fits SQLite's 64-bit integers."""

FLOOR_KEY = "x''"
"""The key of the row that holds a table's highest removed revision: a blob, which sorts behind every text."""

WAITING, HELD, DEAD = 0, 1, 2

_FIRST = (
    """
    CREATE TABLE amends_logs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        first INTEGER NOT NULL
    )
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
    "CREATE TABLE amends_removed (revision INTEGER NOT NULL)",
    "INSERT INTO amends_removed VALUES (0)",
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

# One B-tree for the logs instead of three, and no table with a single number: a durable job writes three pages less.
# `first` becomes `oldest` and `amends_removed` is dropped, so that a process that still has the file open with the previous
# version cannot write by its rules: SQLite rejects its statements.
_SECOND = (
    "ALTER TABLE amends_logs RENAME TO amends_logs_before",
    """
    CREATE TABLE amends_logs (
        name TEXT NOT NULL PRIMARY KEY,
        id INTEGER,
        oldest INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    f"""
    INSERT INTO amends_logs SELECT name, CASE WHEN EXISTS (
        SELECT 1 FROM amends_entries AS entry
        WHERE entry.id BETWEEN log.id << {LOG_SHIFT} AND (log.id << {LOG_SHIFT}) + {SEQ_MASK}
    ) THEN id END, first FROM amends_logs_before AS log ORDER BY name
    """,
    "DROP TABLE amends_logs_before",
    f"INSERT INTO amends_rows SELECT '', {FLOOR_KEY}, revision, NULL, x'' FROM amends_removed WHERE revision > 0",
    "DROP TABLE amends_removed",
)


def _run(statements: tuple[str, ...], connection: sqlite3.Connection) -> None:
    for statement in statements:
        connection.execute(statement)


# The version of a file is the number of migrations run on it. Add to the end; never change one that was released.
MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (partial(_run, _FIRST), partial(_run, _SECOND))


def prepare(connection: sqlite3.Connection, clock: Clock) -> None:
    """
    Migrate the file to this version's schema, and end the leases of workers that ran before the last boot.

    Raises:
        DamagedStoreError: a newer version wrote the file.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS amends_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)"
        )
        version = int(_meta(connection, "version") or 0)
        if version > len(MIGRATIONS):
            raise DamagedStoreError(  # noqa: TRY301
                f"the file was written by a newer amends (schema {version}; this version supports {len(MIGRATIONS)}): upgrade amends"
            )
        for migrate in MIGRATIONS[version:]:
            migrate(connection)
        if version != len(MIGRATIONS):
            _set_meta(connection, "version", str(len(MIGRATIONS)))
        if _meta(connection, "boot") != clock.boot():
            connection.execute("UPDATE amends_tasks SET state = ?, at = 0 WHERE state = ?", (WAITING, HELD))
            _set_meta(connection, "boot", clock.boot())
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _meta(connection: sqlite3.Connection, key: str) -> str | None:
    row = connection.execute("SELECT value FROM amends_meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def _set_meta(connection: sqlite3.Connection, key: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO amends_meta VALUES (?, ?)", (key, value))
