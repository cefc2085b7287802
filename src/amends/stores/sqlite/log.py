# ruff: noqa: D102, S608  (what a method means is said in contract.py; only numbers of ours are written into statements)
"""The log on SQLite: a counter and its entries."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from amends.stores.arguments import check_key, check_limit, check_value
from amends.stores.contract import Bounds, Entry
from amends.stores.errors import ConflictError, DamagedStoreError, TrimmedError
from amends.stores.signal import Signal
from amends.stores.sqlite.access import NO_BOUND, Elsewhere, Rows
from amends.stores.sqlite.schema import LOG_SHIFT, SEQ_MASK

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
_LAST = f"coalesce(({_NEWEST}) & {SEQ_MASK}, log.first - 1)"
_HEAD = f"SELECT log.id, log.first, {_LAST} FROM amends_logs AS log WHERE log.name = ?"
_APPEND = f"""
    INSERT INTO amends_entries SELECT (log.id << {LOG_SHIFT}) + {_LAST} + 1, ?, ? FROM amends_logs AS log WHERE log.name = ?
    RETURNING id & {SEQ_MASK}
"""
_APPEND_BEHIND = f"""
    INSERT INTO amends_entries SELECT (log.id << {LOG_SHIFT}) + ? + 1, ?, NULL FROM amends_logs AS log
    WHERE log.name = ? AND {_LAST} = ?
"""
_APPEND_FIRST = f"INSERT INTO amends_entries VALUES ((? << {LOG_SHIFT}) + 1, ?, NULL)"
_BEGIN = "INSERT INTO amends_logs (name, first) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING id"
_PAGE = """
    SELECT id, CASE WHEN length(value) <= ? THEN value END, dedupe FROM amends_entries
    WHERE id BETWEEN ? AND ? ORDER BY id
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
        if last and dedupe is None:
            behind = self._connection.execute(_APPEND_BEHIND, (last, value, self._name, last))
            if behind.rowcount:
                return last + 1
        elif last == 0 and dedupe is None and (log := self.start_at(1)):
            self._connection.execute(_APPEND_FIRST, (log, value))
            return 1
        if dedupe is not None or last is not None:
            found = self._known(dedupe, last)
            if found is not None:
                return found
        for _ in range(2):
            rows = self._connection.execute(_APPEND, (value, dedupe, self._name)).fetchall()
            if rows:
                return int(rows[0][0])
            self.start_at(1)
        raise DamagedStoreError(f"log {self._name!r} cannot be made: run `amends store check`")

    def _known(self, dedupe: str | None, last: int | None) -> int | None:
        log, bounds = self._head()
        if dedupe is not None and log:
            row = self._connection.execute(
                f"SELECT id & {SEQ_MASK} FROM amends_entries WHERE id >> {LOG_SHIFT} = ? AND dedupe = ?",
                (log, check_key(dedupe, "dedupe id")),
            ).fetchone()
            if row is not None:
                return int(row[0])
        if last is not None and last != bounds.last:
            raise ConflictError(f"log {self._name!r}", last, bounds.last)
        return None

    def _head(self) -> tuple[int, Bounds]:
        row = self._connection.execute(_HEAD, (self._name,)).fetchone()
        return (0, Bounds(1, 0)) if row is None else (row[0], Bounds(row[1], row[2]))

    def bounds(self) -> Bounds:
        return self._head()[1]

    def read(self, start: int | None, limit: int) -> list[Entry]:
        # Each statement sees its own snapshot. If somebody trims in between, the page does not begin where it should.
        for _ in range(100):
            log, bounds = self._head()
            begin = bounds.first if start is None else start
            if begin < bounds.first:
                raise TrimmedError(self._name, begin, bounds.first)
            if begin > bounds.last:
                return []
            base = log << LOG_SHIFT
            entries = self._page(base, begin, min(begin + limit - 1, bounds.last))
            if entries and entries[0].seq == begin and entries[-1].seq == begin + len(entries) - 1:
                return entries
        raise DamagedStoreError(f"entry {begin} of log {self._name!r} is missing: run `amends store check`")

    def tail(self) -> Entry | None:
        bounds = self.bounds()
        # None behind what was just seen to be the last: trimmed in between.
        found = self.read(bounds.last, 1) if bounds.kept else []
        return found[0] if found else None

    def _page(self, base: int, begin: int, end: int) -> list[Entry]:
        if end - begin >= self._room // _LEAST:
            raise Elsewhere
        entries, room = [], self._room
        found = self._connection.execute(_PAGE, (room, base + begin, base + end))
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
        if first > bounds.first:
            base = log << LOG_SHIFT
            self._connection.execute("UPDATE amends_logs SET first = ? WHERE id = ?", (first, log))
            self._connection.execute(
                "DELETE FROM amends_entries WHERE id BETWEEN ? AND ?", (base, base + first - 1)
            )
        return first

    def drop(self) -> None:
        log, bounds = self._head()
        base = log << LOG_SHIFT
        self._connection.execute(
            "DELETE FROM amends_entries WHERE id BETWEEN ? AND ?", (base, base + bounds.last)
        )
        self._connection.execute("DELETE FROM amends_logs WHERE id = ?", (log,))

    def start_at(self, first: int) -> int:
        """Begin the log with this number, and return its id; 0 when it was begun before."""
        rows = self._connection.execute(_BEGIN, (self._name, first)).fetchall()
        return int(rows[0][0]) if rows else 0


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
