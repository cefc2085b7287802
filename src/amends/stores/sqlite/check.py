"""Looking a SQLite store over: is what is stored what the store wrote?"""

from __future__ import annotations

import sqlite3

from amends.stores.sqlite.schema import LOG_SHIFT, SEQ_MASK

__all__ = ["problems"]


def problems(connection: sqlite3.Connection) -> list[str]:
    """One sentence for each thing that is wrong; reads the whole file."""
    found = [
        f"SQLite's own check: {row[0]}"
        for row in connection.execute("PRAGMA integrity_check")
        if row[0] != "ok"
    ]
    for id, name, first in connection.execute("SELECT id, name, first FROM amends_logs").fetchall():
        base = id << LOG_SHIFT
        count, low, high = connection.execute(
            "SELECT count(*), min(id), max(id) FROM amends_entries WHERE id BETWEEN ? AND ?",
            (base, base + SEQ_MASK),
        ).fetchone()
        if count and (low - base != first or high - low + 1 != count):
            found.append(
                f"log {name!r} should run from {first} to {high - base} without gaps, and holds {count} entries"
            )
    orphans = connection.execute(
        f"SELECT count(*) FROM amends_entries WHERE id >> {LOG_SHIFT} NOT IN (SELECT id FROM amends_logs)"  # noqa: S608
    ).fetchone()[0]
    if orphans:
        found.append(f"{orphans} entries belong to no log")
    wrong = connection.execute(
        "SELECT count(*) FROM amends_tasks WHERE state NOT IN (0, 1, 2) OR attempts < 0 OR epoch < attempts"
    ).fetchone()[0]
    if wrong:
        found.append(f"{wrong} tasks are in a state no worker can bring about")
    return found
