# ruff: noqa: D102, S608  (what a method means is said in contract.py; only numbers of ours are written into statements)
"""The log on SQLite: a counter and its entries."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from random import randrange
from typing import TYPE_CHECKING

from amends.stores.arguments import check_key, check_limit, check_value
from amends.stores.contract import Bounds, Entry
from amends.stores.errors import ConflictError, DamagedStoreError, TrimmedError
from amends.stores.signal import Signal
from amends.stores.sqlite.access import NO_BOUND, Elsewhere, Rows
from amends.stores.sqlite.commit import in_transaction
from amends.stores.sqlite.schema import LOG_SHIFT, LOGS, SEQ_MASK

if TYPE_CHECKING:
    from amends.stores.sqlite.store import SqliteStore

__all__ = ["LogRows", "SqliteLog"]

_FOLLOW_PAGE = 256
# What an entry costs at least, counted in bytes of room: the loop reads no more than 256 at once.
_LEAST = 256

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
# OR IGNORE, here and below: who has no way to fail half way needs no journal of its own. Where the next number is taken,
# `last` is not the newest; without gaps, it is where it is there and the next is not.
_APPEND_BEHIND = f"""
    INSERT OR IGNORE INTO amends_entries SELECT (log.id << {LOG_SHIFT}) + ? + 1, ?, NULL FROM amends_logs AS log
    WHERE log.name = ? AND EXISTS (SELECT 1 FROM amends_entries WHERE id = (log.id << {LOG_SHIFT}) + ?)
"""
_APPEND_FIRST = f"""
    INSERT OR IGNORE INTO amends_entries SELECT (log.id << {LOG_SHIFT}) + 1, ?, NULL FROM amends_logs AS log
    WHERE log.name = ? AND log.id IS NOT NULL
"""
# None, when that would be too high.
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
    SELECT id, CASE WHEN length(value) <= ? THEN value END, dedupe FROM amends_entries
    WHERE id BETWEEN ? AND ? AND EXISTS (SELECT 1 FROM amends_logs AS log WHERE log.name = ? AND log.id = ?)
    ORDER BY id
"""


class LogRows:
    """
    One log's statements, inside whatever transaction the connection is in.

    Above `room` bytes a page is not read, and a value not written.
    """

    __slots__ = ("_connection", "_name", "_room")

    def __init__(self, connection: sqlite3.Connection, name: str, room: int = NO_BOUND) -> None:
        self._connection = connection
        self._name = name
        self._room = room

    def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        if len(value := check_value(value)) > self._room:
            raise Elsewhere
        # The usual appends of whoever owns a log need no look before; one follows only where they find nothing to do.
        if dedupe is None and last is not None and self._append_behind(last, value):
            return last + 1
        if dedupe is not None or last is not None:
            found = self._known(dedupe, last)
            if found is not None:
                return found
        if added := self._add(value, dedupe):
            return added
        if self._connection.in_transaction:
            return self.begin(value, dedupe)
        # Between a statement that gives an id and the one that uses it, nobody may come.
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
        """Append behind whatever is the newest; 0 when nothing is kept of the log."""
        added = self._connection.execute(_APPEND, (value, dedupe, self._name))
        return (added.lastrowid or 0) & SEQ_MASK if added.rowcount else 0

    def begin(self, value: bytes, dedupe: str | None) -> int:
        """The same for a log that has no id, unless it was given one in the meantime; in a transaction."""
        self._connection.execute(_GIVE_NEXT_ID, (self._name,))
        for _ in range(_TRIES):
            if added := self._add(value, dedupe):
                return added
            # The highest is in use. Nearly all others are free: those of logs that are gone.
            id = randrange(1, LOGS)  # noqa: S311
            self._connection.execute(_GIVE_FREE_ID, (self._name, id, id, id))
        raise DamagedStoreError(f"log {self._name!r} cannot be made: run `amends store check`")

    def _known(self, dedupe: str | None, last: int | None) -> int | None:
        log, bounds = self._head()
        if dedupe is not None and log is not None:
            row = self._connection.execute(
                f"SELECT id & {SEQ_MASK} FROM amends_entries WHERE id >> {LOG_SHIFT} = ? AND dedupe = ?",
                (log, check_key(dedupe, "dedupe id")),
            ).fetchone()
            if row is not None:
                return int(row[0])
        if last is not None and last != bounds.last:
            raise ConflictError(f"log {self._name!r}", last, bounds.last)
        return None

    def _head(self) -> tuple[int | None, Bounds]:
        """Its id, if it has entries, and its bounds."""
        row = self._connection.execute(_HEAD, (self._name,)).fetchone()
        return (None, Bounds(1, 0)) if row is None else (row[0], Bounds(row[1], row[2]))

    def bounds(self) -> Bounds:
        return self._head()[1]

    def read(self, start: int | None, limit: int) -> list[Entry]:
        # Each statement sees its own snapshot. If somebody trims in between, the page does not begin where it should.
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
        # None behind what was just seen to be the last: trimmed in between.
        found = self.read(bounds.last, 1) if bounds.kept else []
        return found[0] if found else None

    def _page(self, log: int, begin: int, end: int) -> list[Entry]:
        """Entries of the log, if that is still its id."""
        if end - begin >= self._room // _LEAST:
            raise Elsewhere
        entries, room, base = [], self._room, log << LOG_SHIFT
        found = self._connection.execute(_PAGE, (room, base + begin, base + end, self._name, log))
        try:
            for id, value, dedupe in found:
                if value is None or (room := room - len(value)) < 0:
                    raise Elsewhere
                entries.append(Entry(id - base, value, dedupe))
        finally:
            found.close()
        return entries

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
        """Have the log begin with this number, unless it was begun before."""
        self._connection.execute(
            "INSERT INTO amends_logs (name, oldest) VALUES (?, ?) ON CONFLICT DO NOTHING", (self._name, first)
        )


class SqliteLog:
    """See `contract.Log`."""

    def __init__(self, store: SqliteStore, name: str) -> None:
        self._access = store.access
        self._signal = store.signal
        self.name = name
        self._rows = Rows(store.access, lambda c, room: LogRows(c, name, room))

    async def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        value = check_value(value)
        if dedupe is not None:
            check_key(dedupe, "dedupe id")
        return await self._access.write(
            self._rows,
            lambda rows: rows.append(value, dedupe=dedupe, last=last),
            alone=dedupe is None and last is None,
        )

    async def read(self, start: int | None = None, *, limit: int = 100) -> list[Entry]:
        check_limit(limit)
        return await self._access.read(self._rows, lambda rows: rows.read(start, limit))

    async def follow(self, start: int | None = None) -> AsyncIterator[Entry]:
        while True:
            seen = self._signal.count
            entries = await self.read(start, limit=_FOLLOW_PAGE)
            for entry in entries:
                yield entry
                start = entry.seq + 1
            if not entries:
                await self._signal.wait(seen)

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[Signal]:
        yield self._signal

    async def tail(self) -> Entry | None:
        return await self._access.read(self._rows, LogRows.tail)

    async def bounds(self) -> Bounds:
        return await self._access.read(self._rows, LogRows.bounds)

    async def trim(self, before: int) -> int:
        return await self._access.write_elsewhere(self._rows.on(lambda rows: rows.trim(before)))

    async def drop(self) -> None:
        await self._access.write_elsewhere(self._rows.on(LogRows.drop))

    async def start_at(self, first: int) -> None:
        await self._access.write_elsewhere(self._rows.on(lambda rows: rows.start_at(first)))
