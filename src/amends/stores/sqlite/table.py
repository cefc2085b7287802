# ruff: noqa: D102, S608  (what a method means is said in contract.py; only numbers of ours are written into statements)
"""The table on SQLite: one row per key."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING

from amends.stores.arguments import check_key, check_seconds, check_value
from amends.stores.clock import Clock
from amends.stores.contract import Row
from amends.stores.errors import ConflictError

if TYPE_CHECKING:
    from amends.stores.sqlite.store import SqliteStore

__all__ = ["SqliteTable", "TableRows"]

_SCAN_PAGE = 256
# How many expired rows a write with an expiry takes along: more than it adds, so that they cannot pile up.
_SWEEP = 4

_PUT = """
    INSERT INTO amends_rows (tbl, key, revision, expires, value)
    VALUES (?, ?, (SELECT revision + 1 FROM amends_removed), ?, ?)
    ON CONFLICT (tbl, key) DO UPDATE SET
        revision = amends_rows.revision + 1, expires = excluded.expires, value = excluded.value
    RETURNING revision
"""


class TableRows:
    """One table's statements, inside whatever transaction the connection is in."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock, name: str) -> None:
        self._connection = connection
        self._clock = clock
        self._name = name

    def get(self, key: str) -> Row | None:
        row = self._connection.execute(
            "SELECT value, revision, expires FROM amends_rows WHERE tbl = ? AND key = ?",
            (self._name, check_key(key)),
        ).fetchone()
        return None if row is None else self._row(key, *row)

    def _row(self, key: str, value: bytes, revision: int, expires: float | None) -> Row | None:
        if expires is None:
            return Row(key, value, revision)
        left = expires - self._clock.wall()
        return Row(key, value, revision, left) if left > 0 else None

    def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        value = check_value(value)
        check_key(key)
        if revision is not None:
            self._expect(key, revision)
        expires = None
        if expires_in is not None:
            now = self._clock.wall()
            expires = now + check_seconds(expires_in, "expires_in")
            self._sweep(now)
        rows = self._connection.execute(_PUT, (self._name, key, expires, value)).fetchall()
        return int(rows[0][0])

    def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        return self.put(key, value, revision=0, expires_in=expires_in)

    def delete(self, key: str, *, revision: int | None = None) -> bool:
        row = self.get(key)
        if revision is not None:
            self._expect(key, revision)
        self._remove("tbl = ? AND key = ?", self._name, key)
        return row is not None

    def page(self, prefix: str, after: str | None) -> tuple[list[Row], str | None]:
        """The next rows by key, and the key to go on after (None at the end)."""
        low, high = (prefix, ">=") if after is None else (after, ">")
        condition, bound = "", _beyond(prefix)
        parameters: list[str | int] = [self._name, low]
        if bound is not None:
            condition = "AND key < ?"
            parameters.append(bound)
        found = self._connection.execute(
            f"SELECT key, value, revision, expires FROM amends_rows WHERE tbl = ? AND key {high} ? {condition} "
            "ORDER BY key LIMIT ?",
            (*parameters, _SCAN_PAGE),
        ).fetchall()
        rows = [row for row in (self._row(*columns) for columns in found) if row is not None]
        return rows, (found[-1][0] if len(found) == _SCAN_PAGE else None)

    def drop(self) -> None:
        self._remove("tbl = ?", self._name)

    def _expect(self, key: str, revision: int) -> None:
        row = self.get(key)
        actual = 0 if row is None else row.revision
        if actual != revision:
            raise ConflictError(f"key {key!r} of table {self._name!r}", revision, actual)

    def _sweep(self, now: float) -> None:
        expired = self._connection.execute(
            "SELECT tbl, key FROM amends_rows WHERE expires <= ? LIMIT ?", (now, _SWEEP)
        ).fetchall()
        for table, key in expired:
            self._remove("tbl = ? AND key = ?", table, key)

    def _remove(self, condition: str, *parameters: str) -> None:
        """Delete rows, and remember the highest revision that goes with them: none may be given to a key again."""
        (highest,) = self._connection.execute(
            f"SELECT max(revision) FROM amends_rows WHERE {condition}",
            parameters,
        ).fetchone()
        if highest is not None:
            self._connection.execute("UPDATE amends_removed SET revision = max(revision, ?)", (highest,))
            self._connection.execute(f"DELETE FROM amends_rows WHERE {condition}", parameters)


def _beyond(prefix: str) -> str | None:
    """The smallest text greater than all that begin with `prefix`; None when there is none."""
    while prefix:
        last = ord(prefix[-1])
        if last < 0x10FFFF:
            # Surrogates are no characters: from the one before them, the next is the one behind them.
            return prefix[:-1] + chr(0xE000 if last == 0xD7FF else last + 1)
        prefix = prefix[:-1]
    return None


class SqliteTable:
    """See `contract.Table`."""

    def __init__(self, store: SqliteStore, name: str) -> None:
        self._store = store
        self.name = name

    def _rows(self, connection: sqlite3.Connection) -> TableRows:
        return TableRows(connection, self._store.clock, self.name)

    async def get(self, key: str) -> Row | None:
        check_key(key)
        return await self._store.read(lambda c: self._rows(c).get(key))

    async def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        check_key(key)
        value = check_value(value)
        if expires_in is not None:
            check_seconds(expires_in, "expires_in")
        return await self._store.write(
            lambda c: self._rows(c).put(key, value, revision=revision, expires_in=expires_in),
            alone=revision is None and expires_in is None,
        )

    async def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        return await self.put(key, value, revision=0, expires_in=expires_in)

    async def delete(self, key: str, *, revision: int | None = None) -> bool:
        check_key(key)
        return await self._store.write(lambda c: self._rows(c).delete(key, revision=revision))

    def _page(
        self, prefix: str, after: str | None, connection: sqlite3.Connection
    ) -> tuple[list[Row], str | None]:
        return self._rows(connection).page(prefix, after)

    async def scan(self, prefix: str = "") -> AsyncIterator[Row]:
        check_key(prefix, "prefix")
        after: str | None = None
        while True:
            rows, after = await self._store.read(partial(self._page, prefix, after))
            for row in rows:
                yield row
            if after is None:
                return

    async def drop(self) -> None:
        await self._store.write(lambda c: self._rows(c).drop())
