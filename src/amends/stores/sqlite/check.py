"""Check that the contents of a SQLite store are consistent."""

from __future__ import annotations

import sqlite3

from amends.stores.sqlite.schema import LOG_SHIFT, SEQ_MASK

__all__ = ["problems"]


def problems(connection: sqlite3.Connection) -> list[str]:
    """One sentence for each problem found; reads the whole file."""
    found = [
        f"SQLite's own check: {row[0]}"
        for row in connection.execute("PRAGMA integrity_check")
        if row[0] != "ok"
    ]
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
