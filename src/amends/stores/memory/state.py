# ruff: noqa: D102  (contract.py documents the methods)
"""
The log and the table as plain data, and the whole state of one store. No method here waits.

Every change records how to undo it, so that a transaction that raises leaves no changes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import RLock

from amends.stores.arguments import check_key, check_seconds, check_value
from amends.stores.clock import Clock
from amends.stores.contract import Bounds, Entry, Row
from amends.stores.errors import ConflictError, TrimmedError
from amends.stores.memory.queue_state import QueueState

__all__ = ["LogState", "State", "TableState"]

Undo = list[Callable[[], object]]


class LogState:
    """The entries in the order of their numbers. A runtime keeps one log per job, so it is small."""

    __slots__ = ("_entries", "_ids", "_undo", "first", "last", "name")

    def __init__(self, name: str, undo: Undo) -> None:
        self.name = name
        self.first = 1
        self.last = 0
        self._entries: list[tuple[bytes, str | None]] = []
        self._ids: dict[str, int] = {}
        self._undo = undo

    def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        value = check_value(value)
        if dedupe is not None and check_key(dedupe, "dedupe id") in self._ids:
            return self._ids[dedupe]
        if last is not None and last != self.last:
            raise ConflictError(self.name, last, self.last)
        self.last += 1
        self._entries.append((value, dedupe))
        if dedupe is not None:
            self._ids[dedupe] = self.last
        self._undo.append(self._undo_append)
        return self.last

    def _undo_append(self) -> None:
        _, dedupe = self._entries.pop()
        if dedupe is not None:
            del self._ids[dedupe]
        self.last -= 1

    def read(self, start: int | None, limit: int) -> list[Entry]:
        if start is None:
            start = self.first
        elif start < self.first:
            raise TrimmedError(self.name, start, self.first)
        at = start - self.first
        page = self._entries[at : at + limit]
        return [Entry(seq, value, dedupe) for seq, (value, dedupe) in enumerate(page, start)]

    def bounds(self) -> Bounds:
        return Bounds(self.first, self.last)

    def trim(self, before: int) -> int:
        count = max(0, min(before, self.last + 1) - self.first)
        for _, dedupe in self._entries[:count]:
            if dedupe is not None:
                del self._ids[dedupe]
        del self._entries[:count]
        self.first += count
        return self.first


_Cell = tuple[bytes, int, float | None]
"""Value, revision, and the time at which it expires."""


class TableState:
    """Cells by key; an expired cell counts as absent and is removed when it is read."""

    def __init__(self, name: str, clock: Clock, undo: Undo) -> None:
        self.name = name
        self._cells: dict[str, _Cell] = {}
        self._revisions = itertools.count(1)
        self._clock = clock
        self._undo = undo

    def get(self, key: str) -> Row | None:
        cell = self._cells.get(check_key(key))
        if cell is None:
            return None
        value, revision, expires = cell
        if expires is None:
            return Row(key, value, revision)
        left = expires - self._clock.wall()
        if left <= 0:
            del self._cells[key]
            return None
        return Row(key, value, revision, left)

    def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        value = check_value(value)
        expires = None if expires_in is None else self._clock.wall() + check_seconds(expires_in, "expires_in")
        check_key(key)
        if revision is not None:
            self._expect(key, revision)
        self._record_undo(key)
        number = next(self._revisions)
        self._cells[key] = (value, number, expires)
        return number

    def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        return self.put(key, value, revision=0, expires_in=expires_in)

    def delete(self, key: str, *, revision: int | None = None) -> bool:
        if revision is not None:
            self._expect(key, revision)
        if self.get(key) is None:
            return False
        self._record_undo(key)
        del self._cells[key]
        return True

    def scan(self, prefix: str) -> list[Row]:
        rows = (self.get(key) for key in sorted(self._cells) if key.startswith(prefix))
        return [row for row in rows if row is not None]

    def _expect(self, key: str, revision: int) -> None:
        row = self.get(key)
        actual = 0 if row is None else row.revision
        if actual != revision:
            raise ConflictError(self.name, revision, actual, key)

    def _record_undo(self, key: str) -> None:
        before = self._cells.get(key)
        if before is None:
            self._undo.append(partial(self._cells.pop, key, None))
        else:
            self._undo.append(partial(self._cells.__setitem__, key, before))


@dataclass(slots=True)
class State:
    """Everything that one memory store holds; reading a name that does not exist yet creates it."""

    clock: Clock
    logs: dict[str, LogState] = field(default_factory=dict)
    tables: dict[str, TableState] = field(default_factory=dict)
    queues: dict[str, QueueState] = field(default_factory=dict)
    undo: Undo = field(default_factory=list)
    lock: RLock = field(default_factory=RLock)
    """Held during each operation on a table and each transaction, so that threads may share them."""

    def log(self, name: str) -> LogState:
        return self.logs.get(name) or self.logs.setdefault(name, LogState(name, self.undo))

    def table(self, name: str) -> TableState:
        return self.tables.get(name) or self.tables.setdefault(name, TableState(name, self.clock, self.undo))

    def queue(self, name: str) -> QueueState:
        return self.queues.get(name) or self.queues.setdefault(name, QueueState(name, self.clock, self.undo))
