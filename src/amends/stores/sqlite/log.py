# ruff: noqa: D102, S608  (contract.py documents the methods; only our own numbers are written into statements)
"""The log on SQLite: one row per log and one per entry."""

from __future__ import annotations

import sqlite3
from random import randrange

from amends.stores.arguments import check_key, check_stored, check_value
from amends.stores.contract import Bounds, Entry
from amends.stores.errors import ConflictError, DamagedStoreError, TrimmedError
from amends.stores.sqlite.commit import in_transaction
from amends.stores.sqlite.schema import LOG_SHIFT, LOGS, SEQ_MASK

__all__ = ["LogRows"]

_NEWEST = f"""
    SELECT max(id) FROM amends_entries
    WHERE id BETWEEN (log.id << {LOG_SHIFT}) AND (log.id << {LOG_SHIFT}) + {SEQ_MASK}
"""
_LAST = f"coalesce(({_NEWEST}) & {SEQ_MASK}, log.oldest - 1)"
_HEAD = f"SELECT log.id, log.oldest, {_LAST} FROM amends_logs AS log WHERE log.name = ?"
_APPEND = f"""
    INSERT INTO amends_entries SELECT (log.id << {LOG_SHIFT}) + {_LAST} + 1, ?, ? FROM amends_logs AS log
    WHERE log.name = ? AND log.id IS NOT NULL
"""
# OR IGNORE, here and below: a statement that cannot fail half way needs no statement journal. Numbers have no gaps, so
# `last` is the newest if it exists and the number after it does not; if that number exists, the insert is ignored.
_APPEND_BEHIND = f"""
    INSERT OR IGNORE INTO amends_entries SELECT (log.id << {LOG_SHIFT}) + ? + 1, ?, NULL FROM amends_logs AS log
    WHERE log.name = ? AND EXISTS (SELECT 1 FROM amends_entries WHERE id = (log.id << {LOG_SHIFT}) + ?)
"""
_APPEND_FIRST = f"""
    INSERT OR IGNORE INTO amends_entries SELECT (log.id << {LOG_SHIFT}) + 1, ?, NULL FROM amends_logs AS log
    WHERE log.name = ? AND log.id IS NOT NULL
"""
# NULL if the next id would be too high.
_NEXT_ID = f"""
    INSERT INTO amends_logs (name, id, oldest)
    VALUES (?, (SELECT nullif(coalesce(max(id) >> {LOG_SHIFT}, 0) + 1, {LOGS}) FROM amends_entries), 1)
"""
_BEGIN = f"{_NEXT_ID} ON CONFLICT (name) DO NOTHING"
_GIVE_ID = "ON CONFLICT (name) DO UPDATE SET id = excluded.id WHERE amends_logs.id IS NULL"
_GIVE_NEXT_ID = f"{_NEXT_ID} {_GIVE_ID}"
_GIVE_FREE_ID = f"""
    INSERT INTO amends_logs (name, id, oldest) SELECT ?, ?, 1
    WHERE NOT EXISTS (
        SELECT 1 FROM amends_entries WHERE id BETWEEN (? << {LOG_SHIFT}) AND (? << {LOG_SHIFT}) + {SEQ_MASK}
    )
    {_GIVE_ID}
"""
_TRIES = 100
_PAGE = """
    SELECT id, value, dedupe FROM amends_entries
    WHERE id BETWEEN ? AND ? AND EXISTS (SELECT 1 FROM amends_logs AS log WHERE log.name = ? AND log.id = ?)
    ORDER BY id
"""


class LogRows:
    """The statements of one log, run in the connection's current transaction."""

    __slots__ = ("_connection", "_name")

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection = connection
        self._name = name

    def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        value = check_value(value)
        # An append with `last`, as an owner of a log writes it, needs no read first; a read follows only if it inserts nothing.
        if dedupe is None and last is not None and self._append_behind(last, value):
            return last + 1
        if dedupe is not None or last is not None:
            existing = self._existing(dedupe, last)
            if existing is not None:
                return existing
        if added := self._add(value, dedupe):
            return added
        if self._connection.in_transaction:
            return self.begin(value, dedupe)
        # Another writer must not come between the statement that assigns an id and the one that uses it.
        return in_transaction(self._connection, lambda rows: rows.begin(value, dedupe), self)

    def _append_behind(self, last: int, value: bytes) -> bool:
        execute = self._connection.execute
        if last:
            return execute(_APPEND_BEHIND, (last, value, self._name, last)).rowcount > 0
        return (
            self._connection.in_transaction
            and execute(_BEGIN, (self._name,)).rowcount > 0
            and execute(_APPEND_FIRST, (value, self._name)).rowcount > 0
        )

    def _add(self, value: bytes, dedupe: str | None) -> int:
        """Append after the newest entry; returns 0 if the log has no entries and so no id."""
        added = self._connection.execute(_APPEND, (value, dedupe, self._name))
        return (added.lastrowid or 0) & SEQ_MASK if added.rowcount else 0

    def begin(self, value: bytes, dedupe: str | None) -> int:
        """Assign an id to a log without one, and append; needs a transaction."""
        self._connection.execute(_GIVE_NEXT_ID, (self._name,))
        for _ in range(_TRIES):
            if added := self._add(value, dedupe):
                return added
            # The highest id is in use. Nearly all others are free: they belonged to logs that were removed.
            id = randrange(1, LOGS)  # noqa: S311
            self._connection.execute(_GIVE_FREE_ID, (self._name, id, id, id))
        raise DamagedStoreError(f"log {self._name!r} cannot be created: run `amends store check`")

    def _existing(self, dedupe: str | None, last: int | None) -> int | None:
        """The number of the entry with this dedupe id, if there is one; raises ConflictError if `last` does not match."""
        log, bounds = self._head()
        if dedupe is not None and log is not None:
            row = self._connection.execute(
                f"SELECT id & {SEQ_MASK} FROM amends_entries WHERE id >> {LOG_SHIFT} = ? AND dedupe = ?",
                (log, check_key(dedupe, "dedupe id")),
            ).fetchone()
            if row is not None:
                return int(row[0])
        if last is not None and last != bounds.last:
            raise ConflictError(self._name, last, bounds.last)
        return None

    def _head(self) -> tuple[int | None, Bounds]:
        """The log's id, if it has entries, and its bounds."""
        row = self._connection.execute(_HEAD, (self._name,)).fetchone()
        return (None, Bounds(1, 0)) if row is None else (row[0], Bounds(row[1], row[2]))

    def bounds(self) -> Bounds:
        return self._head()[1]

    def read(self, start: int | None, limit: int) -> list[Entry]:
        # Each statement sees its own snapshot. If another process trims in between, the page starts at the wrong number.
        for _ in range(_TRIES):
            log, bounds = self._head()
            begin = bounds.first if start is None else start
            if begin < bounds.first:
                raise TrimmedError(self._name, begin, bounds.first)
            if log is None or begin > bounds.last:
                return []
            entries = self._page(log, begin, min(begin + limit - 1, bounds.last))
            if entries and entries[0].seq == begin and entries[-1].seq == begin + len(entries) - 1:
                return entries
        raise DamagedStoreError(f"entry {begin} of log {self._name!r} is missing: run `amends store check`")

    def tail(self) -> Entry | None:
        bounds = self.bounds()
        # The list is empty if the last entry was trimmed in between.
        found = self.read(bounds.last, 1) if bounds.kept else []
        return found[0] if found else None

    def _page(self, log: int, begin: int, end: int) -> list[Entry]:
        """The entries from `begin` to `end`, if `log` is still the log's id."""
        base = log << LOG_SHIFT
        found = self._connection.execute(_PAGE, (base + begin, base + end, self._name, log)).fetchall()
        return [
            Entry(id - base, check_stored(value, "log", self._name), dedupe) for id, value, dedupe in found
        ]

    def trim(self, before: int) -> int:
        log, bounds = self._head()
        first = min(max(before, bounds.first), bounds.last + 1)
        if log is not None and first > bounds.first:
            self._connection.execute(
                "UPDATE amends_logs SET oldest = ?, id = ? WHERE name = ?",
                (first, log if first <= bounds.last else None, self._name),
            )
            self._delete(log, first - 1)
        return first

    def drop(self) -> None:
        log, bounds = self._head()
        self._connection.execute("DELETE FROM amends_logs WHERE name = ?", (self._name,))
        if log is not None:
            self._delete(log, bounds.last)

    def _delete(self, log: int, last: int) -> None:
        base = log << LOG_SHIFT
        self._connection.execute("DELETE FROM amends_entries WHERE id BETWEEN ? AND ?", (base, base + last))

    def start_at(self, first: int) -> None:
        """Make the log begin with this number, unless it exists already."""
        self._connection.execute(
            "INSERT INTO amends_logs (name, oldest) VALUES (?, ?) ON CONFLICT DO NOTHING", (self._name, first)
        )
