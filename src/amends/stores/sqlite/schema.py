"""
The tables of a store in a SQLite file, and how an older file becomes a newer one.

Everything is named `amends_…` and nothing else is touched, because the file may be the user's own: the version stands in
`amends_meta`, not in `PRAGMA user_version`, which is theirs.

- An entry's id is `log * 2**36 + seq`: one integer key, so that a log's entries lie together, the newest is found at once,
  and reading the last hundred costs the same whether there are thousands or millions. A log's last number is that of its
  newest entry, or `first - 1` when all were trimmed: nothing else has to be written for an append.
- A key's revision is one more than its last; for a key that is not there, one more than any that was ever removed
  (`amends_removed`). So revisions grow over deletions too, and a put writes one page.
- A task's `at` is the wall time it is due while it waits (state 0), the steady time its lease ends while it is held
  (state 1), and the wall time of its death (state 2).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from amends.stores.clock import Clock
from amends.stores.errors import DamagedStoreError

__all__ = ["DEAD", "HELD", "LOG_SHIFT", "MIGRATIONS", "SEQ_MASK", "WAITING", "prepare"]

LOG_SHIFT = 36
SEQ_MASK = (1 << LOG_SHIFT) - 1

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


def _make_first(connection: sqlite3.Connection) -> None:
    for statement in _FIRST:
        connection.execute(statement)


# The version of a file is how many of these were run on it. Add to the end; never change one that was released.
MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_make_first,)


def prepare(connection: sqlite3.Connection, clock: Clock) -> None:
    """
    Bring the file to this version's schema, and end the leases of workers that died with an earlier boot.

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
                f"the file was written by a newer amends (schema {version}, this one knows {len(MIGRATIONS)}): upgrade amends"
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
