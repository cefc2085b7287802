# ruff: noqa: D102, S608  (contract.py documents the methods; only our own numbers are written into statements)
"""The table on SQLite: one row per key."""

from __future__ import annotations

import sqlite3

from amends.stores.arguments import check_key, check_seconds, check_stored, check_value
from amends.stores.clock import Clock
from amends.stores.contract import Row
from amends.stores.errors import ConflictError
from amends.stores.rows import PAGE
from amends.stores.sqlite.schema import FLOOR_KEY

__all__ = ["TableRows"]

# How many expired rows a write with an expiry removes: more than it adds, so that they cannot accumulate.
_SWEEP = 4

_GET = "SELECT value, revision, expires FROM amends_rows WHERE tbl = ? AND key = ?"
_GLOBAL_FLOOR = f"(SELECT revision FROM amends_rows WHERE tbl = '' AND key = {FLOOR_KEY})"
_INSERT = f"""
    INSERT INTO amends_rows (tbl, key, revision, expires, value) VALUES (
        ?, ?,
        1 + coalesce((SELECT revision FROM amends_rows WHERE tbl = ? AND key = {FLOOR_KEY}), {_GLOBAL_FLOOR}, 0),
        ?, ?
    )
    ON CONFLICT (tbl, key) DO UPDATE SET
        revision = amends_rows.revision + 1, expires = excluded.expires, value = excluded.value
"""
_PUT = f"{_INSERT} RETURNING revision"
_CREATE = f"{_INSERT} WHERE amends_rows.expires <= ? RETURNING revision"
_PRESENT = "tbl = ? AND key = ? AND revision = ? AND (expires IS NULL OR expires > ?)"
_REPLACE = f"UPDATE amends_rows SET revision = revision + 1, expires = ?, value = ? WHERE {_PRESENT} RETURNING revision"
_DELETE = "DELETE FROM amends_rows WHERE tbl = ? AND key = ? RETURNING revision, expires"
_DELETE_REVISION = f"DELETE FROM amends_rows WHERE {_PRESENT} RETURNING revision"
# The highest revision of a removed row: no key may get it or a lower one again.
_RAISE = f"UPDATE amends_rows SET revision = ? WHERE tbl = ? AND key = {FLOOR_KEY} AND revision < ?"
_RAISE_OR_MAKE = f"""
    INSERT INTO amends_rows (tbl, key, revision, value) VALUES (?, {FLOOR_KEY}, max(?, coalesce({_GLOBAL_FLOOR}, 0)), x'')
    ON CONFLICT (tbl, key) DO UPDATE SET revision = max(amends_rows.revision, excluded.revision)
"""


class TableRows:
    """The statements of one table, run in the connection's current transaction."""

    __slots__ = ("_clock", "_connection", "_name")

    def __init__(self, connection: sqlite3.Connection, clock: Clock, name: str) -> None:
        self._connection = connection
        self._clock = clock
        self._name = name

    def get(self, key: str) -> Row | None:
        row = self._connection.execute(_GET, (self._name, check_key(key))).fetchone()
        if row is None:
            return None
        value, revision, expires = row
        check_stored(value, "table", self._name)
        return Row(key, value, revision) if expires is None else self._row(key, value, revision, expires)

    def _row(self, key: str, value: bytes, revision: int, expires: float | None) -> Row | None:
        check_stored(value, "table", self._name)
        left = None if expires is None else expires - self._clock.wall()
        return Row(key, value, revision, left) if left is None or left > 0 else None

    def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        value, name, now = check_value(value), self._name, self._clock.wall()
        check_key(key)
        expires = None if expires_in is None else now + check_seconds(expires_in, "expires_in")
        if revision:
            rows = self._connection.execute(_REPLACE, (expires, value, name, key, revision, now)).fetchall()
        else:
            if expires is not None:
                self._sweep(now)
            new = (name, key, name, expires, value)
            create = revision is not None
            rows = self._connection.execute(
                _CREATE if create else _PUT, (*new, now) if create else new
            ).fetchall()
        if not rows:
            raise self._conflict(key, revision or 0)
        return int(rows[0][0])

    def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        return self.put(key, value, revision=0, expires_in=expires_in)

    def delete(self, key: str, *, revision: int | None = None) -> bool:
        check_key(key)
        if not revision:
            if revision is not None and self._revision(key):
                raise self._conflict(key, revision)
            return self._remove(self._name, key)
        found = (self._name, key, revision, self._clock.wall())
        if not self._connection.execute(_DELETE_REVISION, found).fetchall():
            raise self._conflict(key, revision)
        self._raise_floor(self._name, revision)
        return True

    def page(self, prefix: str, after: str | None) -> tuple[list[Row], str | None]:
        """The next rows by key, and the key to continue after (None at the end)."""
        low, high = (prefix, ">=") if after is None else (after, ">")
        bound = _beyond(prefix)
        found = self._connection.execute(
            f"SELECT key, value, revision, expires FROM amends_rows WHERE tbl = ? AND key {high} ? "
            f"AND key < {FLOOR_KEY if bound is None else '?'} ORDER BY key LIMIT ?",
            (self._name, low, *(() if bound is None else (bound,)), PAGE),
        ).fetchall()
        rows = [row for row in (self._row(*columns) for columns in found) if row is not None]
        return rows, (found[-1][0] if len(found) == PAGE else None)

    def drop(self) -> None:
        (highest,) = self._connection.execute(
            "SELECT max(revision) FROM amends_rows WHERE tbl = ?", (self._name,)
        ).fetchone()
        if highest is not None:
            # The table's own floor row is deleted too, or the rows of dropped tables would accumulate.
            self._raise_floor("", highest)
            self._connection.execute("DELETE FROM amends_rows WHERE tbl = ?", (self._name,))

    def _revision(self, key: str) -> int:
        """The key's revision; 0 if it is absent or expired."""
        row = self._connection.execute(
            "SELECT revision, expires FROM amends_rows WHERE tbl = ? AND key = ?", (self._name, key)
        ).fetchone()
        return 0 if row is None or self._expired(row[1]) else int(row[0])

    def _expired(self, expires: float | None) -> bool:
        return expires is not None and expires <= self._clock.wall()

    def _conflict(self, key: str, expected: int) -> ConflictError:
        return ConflictError(self._name, expected, self._revision(key), key)

    def _sweep(self, now: float) -> None:
        expired = self._connection.execute(
            "SELECT tbl, key FROM amends_rows WHERE expires <= ? LIMIT ?", (now, _SWEEP)
        ).fetchall()
        for table, key in expired:
            self._remove(table, key)

    def _remove(self, table: str, key: str) -> bool:
        """Delete a row and return whether there was one that had not expired."""
        removed = self._connection.execute(_DELETE, (table, key)).fetchall()
        if not removed:
            return False
        ((revision, expires),) = removed
        self._raise_floor(table, revision)
        return not self._expired(expires)

    def _raise_floor(self, table: str, revision: int) -> None:
        if not self._connection.execute(_RAISE, (revision, table, revision)).rowcount:
            self._connection.execute(_RAISE_OR_MAKE, (table, revision))


def _beyond(prefix: str) -> str | None:
    """The smallest text greater than every text with this prefix; None if there is none."""
    while prefix:
        last = ord(prefix[-1])
        if last < 0x10FFFF:
            # Surrogates are not characters: the one after U+D7FF is U+E000.
            return prefix[:-1] + chr(0xE000 if last == 0xD7FF else last + 1)
        prefix = prefix[:-1]
    return None
