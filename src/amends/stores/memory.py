# ruff: noqa: D102  (contract.py documents the methods)
"""
A store in the memory of this process, for tests and experiments; its data ends with the process.

The log, the table and the queue are plain data, whose methods do not wait. Every change records how to undo it, so that a
transaction that raises leaves no changes.
"""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import iscoroutinefunction
from itertools import islice
from threading import RLock
from typing import TypeVar

from amends.stores.address import Address
from amends.stores.arguments import check_key, check_name, check_seconds, check_value
from amends.stores.clock import Clock
from amends.stores.contract import Bounds, DeadMessage, Entry, Message, QueueSize, Row, Transaction
from amends.stores.errors import (
    ConflictError,
    LeaseLostError,
    TrimmedError,
    UnsupportedError,
)
from amends.stores.local import InlineEngine, LeaseEnds, LocalStore, async_work
from amends.stores.rows import PAGE, TakenMessage
from amends.stores.signal import Signal
from amends.stores.traits import Traits

__all__ = ["MemoryStore", "open_memory"]

T = TypeVar("T")

_UNNAMED = Traits(
    scope="object",
    durable=False,
    transactions=True,
    sql=False,
    immediate=True,
    notifies=False,
    ordered=True,
)
_NAMED = replace(_UNNAMED, scope="process")


@dataclass(slots=True, eq=False)
class _Part:
    """A log, a table or a queue."""

    name: str
    drop: Callable[[], object]
    _clock: Clock
    _undo: list[Callable[[], object]]


P = TypeVar("P", bound=_Part)


@dataclass(slots=True, eq=False)
class _Log(_Part):
    """The entries in the order of their numbers. A runtime keeps one log per job, so it is small."""

    first: int = 1
    last: int = 0
    _entries: list[tuple[bytes, str | None]] = field(default_factory=list)
    _ids: dict[str, int] = field(default_factory=dict)

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

    def tail(self) -> Entry | None:
        if not self._entries:
            return None
        value, dedupe = self._entries[-1]
        return Entry(self.last, value, dedupe)

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

    def start_at(self, first: int) -> None:
        if self.last == 0:
            self.first, self.last = first, first - 1


_Cell = tuple[bytes, int, float | None]
"""Value, revision, and the time at which it expires."""


_PURGED_AT_ONCE = 4
"""Expired cells that a put with an expiry removes: more than it adds, so that they cannot accumulate."""


@dataclass(slots=True, eq=False)
class _Table(_Part):
    """
    Cells by key; an expired cell counts as absent. It is removed when it is read, or by one of the next puts.

    `_expiries` is a heap with an item for every put with an expiry; an item that no longer matches its cell is ignored.
    """

    _cells: dict[str, _Cell] = field(default_factory=dict)
    _expiries: list[tuple[float, str, int]] = field(default_factory=list)
    _revision: int = 0
    _order: list[str] | None = None
    """The keys in order since the first scan. Removed keys stay until they are more than half of it."""

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
        before = self._cells.get(key)
        if before is None and self._order is not None:
            self._add(self._order, key)
        self._undo.append(partial(_restore, self._cells, key, before))
        self._revision += 1
        self._cells[key] = (value, self._revision, expires)
        if expires is not None:
            heapq.heappush(self._expiries, (expires, key, self._revision))
            self._purge()
        return self._revision

    def _purge(self) -> None:
        """Remove a few cells that have expired, and the items of cells that were written again since."""
        now = self._clock.wall()
        for _ in range(_PURGED_AT_ONCE):
            if not self._expiries or self._expiries[0][0] > now:
                break
            _, key, revision = heapq.heappop(self._expiries)
            cell = self._cells.get(key)
            if cell is not None and cell[1] == revision:
                # An undone transaction leaves it removed: it has expired in any case.
                del self._cells[key]
        if len(self._expiries) > 64 + 2 * len(self._cells):
            self._expiries = [
                (expires, key, revision)
                for key, (_, revision, expires) in self._cells.items()
                if expires is not None
            ]
            heapq.heapify(self._expiries)

    def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        return self.put(key, value, revision=0, expires_in=expires_in)

    def delete(self, key: str, *, revision: int | None = None) -> bool:
        if revision is not None:
            self._expect(key, revision)
        if self.get(key) is None:
            return False
        self._undo.append(partial(_restore, self._cells, key, self._cells.pop(key)))
        return True

    def page(self, prefix: str, after: str | None) -> tuple[list[Row], str | None]:
        """The next rows by key, and the key to continue after (None at the end)."""
        if self._order is None:
            self._order = sorted(self._cells)
        start = bisect_left(self._order, prefix) if after is None else bisect_right(self._order, after)
        rows: list[Row] = []
        for key in islice(self._order, start, None):
            if not key.startswith(prefix):
                break
            row = self.get(key)
            if row is not None:
                rows.append(row)
                if len(rows) == PAGE:
                    return rows, key
        return rows, None

    def _add(self, order: list[str], key: str) -> None:
        """Add a new key to the order."""
        if len(order) > 64 + 2 * len(self._cells):
            self._order = None
            return
        place = bisect_left(order, key)
        if place == len(order) or order[place] != key:
            order.insert(place, key)

    def _expect(self, key: str, revision: int) -> None:
        row = self.get(key)
        actual = 0 if row is None else row.revision
        if actual != revision:
            raise ConflictError(self.name, revision, actual, key)


def _restore(cells: dict[str, _Cell], key: str, before: _Cell | None) -> None:
    if before is None:
        cells.pop(key, None)
    else:
        cells[key] = before


@dataclass(slots=True)
class _StoredMessage:
    number: int
    key: str | None
    value: bytes
    due: float
    attempts: int = 0
    epoch: int = 0
    leased_until: float = 0.0
    held: bool = False
    """TakenMessage by the holder of `epoch` and not given back; True even if the lease has expired."""
    reason: str = ""


@dataclass(slots=True, eq=False)
class _Queue(_Part):
    """
    Messages by number, a heap of waiting messages by due time, and a heap of leases by expiry.

    A change of a message leaves its old heap items in place; `take` compares each item with the message before using it.
    """

    _messages: dict[int, _StoredMessage] = field(default_factory=dict)
    _dead: dict[int, _StoredMessage] = field(default_factory=dict)
    _keys: dict[str, int] = field(default_factory=dict)
    _waiting: list[tuple[float, int]] = field(default_factory=list)
    _leases: list[tuple[float, int]] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=partial(itertools.count, 1))

    def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return self.restore(value, key=key, delay=delay, attempts=0)

    def restore(self, value: bytes, *, key: str | None, delay: float, attempts: int) -> bool:
        value, due = check_value(value), self._clock.wall() + check_seconds(delay, "delay")
        if key is not None and check_key(key) in self._keys:
            return False
        message = _StoredMessage(next(self._numbers), key, value, due, attempts, attempts)
        self._messages[message.number] = message
        if key is not None:
            self._keys[key] = message.number
        heapq.heappush(self._waiting, (message.due, message.number))
        self._undo.append(lambda: self._remove(message))
        return True

    def _remove(self, message: _StoredMessage) -> None:
        del self._messages[message.number]
        if message.key is not None:
            del self._keys[message.key]

    def take(self, lease: float, max_attempts: int | None) -> TakenMessage | float | None:
        """Take the next message; or return in how many seconds one may be due, or None if only a put can add one."""
        now, steady = self._clock.wall(), self._clock.steady()
        while self._leases and self._leases[0][0] <= steady:
            until, number = heapq.heappop(self._leases)
            expired = self._messages.get(number)
            if expired is not None and expired.held and expired.leased_until == until:
                heapq.heappush(self._waiting, (expired.due, number))
        while self._waiting and self._waiting[0][0] <= now:
            due, number = heapq.heappop(self._waiting)
            found = self._messages.get(number)
            if found is None or found.due != due or (found.held and found.leased_until > steady):
                continue
            if max_attempts is not None and found.attempts >= max_attempts:
                self._move_to_dead(found, f"taken {found.attempts} times without being finished")
                continue
            found.attempts += 1
            found.epoch += 1
            self._hold(found, steady + lease)
            return TakenMessage(number, found.key, found.value, found.attempts, found.epoch)
        return self.next_in()

    def next_in(self) -> float | None:
        """Seconds until a message may be due; None if only a put can add one."""
        waits = [self._leases[0][0] - self._clock.steady()] if self._leases else []
        waits += [self._waiting[0][0] - self._clock.wall()] if self._waiting else []
        return min(waits, default=None)

    def _hold(self, message: _StoredMessage, until: float) -> None:
        message.held = True
        message.leased_until = until
        heapq.heappush(self._leases, (until, message.number))

    def now(self) -> float:
        return self._clock.wall()

    def untake(self, number: int, epoch: int) -> None:
        """Not needed here: taking a message does not wait, so no worker is cancelled meanwhile."""

    def check_lease(self, number: int, epoch: int) -> None:
        self._held(number, epoch)

    def extend(self, number: int, epoch: int, lease: float) -> None:
        self._hold(self._held(number, epoch), self._clock.steady() + lease)

    def done(self, number: int, epoch: int) -> None:
        self._remove(self._released(number, epoch))

    def give_back(self, number: int, epoch: int, delay: float) -> None:
        due = self._clock.wall() + check_seconds(delay, "delay")
        message = self._released(number, epoch)
        message.held = False
        message.due = due
        heapq.heappush(self._waiting, (message.due, number))

    def dead_letter(self, number: int, epoch: int, reason: str) -> None:
        self._move_to_dead(self._released(number, epoch), reason)

    def _move_to_dead(self, message: _StoredMessage, reason: str) -> None:
        self._remove(message)
        message.reason = reason
        self._dead[message.number] = message

    def _released(self, number: int, epoch: int) -> _StoredMessage:
        """The held message. Undoing its release holds it again; `take` ignores heap items that no longer match."""
        message = self._held(number, epoch)
        due = message.due

        def hold_again() -> None:
            message.held, message.due = True, due
            self._dead.pop(message.number, None)
            self._messages[message.number] = message
            if message.key is not None:
                self._keys[message.key] = message.number

        self._undo.append(hold_again)
        return message

    def _held(self, number: int, epoch: int) -> _StoredMessage:
        message = self._messages.get(number)
        if message is None or message.epoch != epoch or not message.held:
            raise LeaseLostError(self.name, str(number), epoch)
        return message

    def size(self) -> QueueSize:
        messages = self._listed(self._messages)
        leased = sum(message.leased for message in messages)
        delayed = sum(not message.leased and message.due_in > 0 for message in messages)
        return QueueSize(len(messages) - leased - delayed, delayed, leased, len(self._dead))

    def page(self, after: int) -> list[Message]:
        return self._listed(itertools.islice((number for number in self._messages if number > after), PAGE))

    def _listed(self, numbers: Iterable[int]) -> list[Message]:
        now, steady = self._clock.wall(), self._clock.steady()
        return [
            Message(
                str(message.number),
                message.key,
                message.value,
                message.attempts,
                max(0.0, message.due - now),
                message.held and message.leased_until > steady,
            )
            for message in map(self._messages.__getitem__, numbers)
        ]

    def dead(self, limit: int) -> list[DeadMessage]:
        messages = itertools.islice(self._dead.values(), limit)
        return [
            DeadMessage(str(message.number), message.key, message.value, message.attempts, message.reason)
            for message in messages
        ]

    def restore_dead(self, letter: DeadMessage) -> None:
        message = _StoredMessage(
            next(self._numbers), letter.key, letter.value, 0.0, letter.attempts, letter.attempts
        )
        message.reason = letter.reason
        self._dead[message.number] = message

    def revive(self, id: str) -> bool:
        message = self._dead.get(int(id)) if id.isdecimal() else None
        if message is None or not self.put(message.value, key=message.key):
            return False
        del self._dead[message.number]
        return True

    def discard(self, id: str) -> bool:
        return id.isdecimal() and self._dead.pop(int(id), None) is not None


@dataclass(slots=True, eq=False)
class _State(LeaseEnds):
    """Everything that one memory store holds, and its transaction. See `local.UndoableRows`."""

    clock: Clock
    place: object = field(default_factory=object)
    signal: Signal = field(default_factory=Signal)
    logs: dict[str, _Log] = field(default_factory=dict)
    tables: dict[str, _Table] = field(default_factory=dict)
    queues: dict[str, _Queue] = field(default_factory=dict)
    undo: list[Callable[[], object]] = field(default_factory=list)
    keep: bool = False
    lock: RLock = field(default_factory=RLock)

    def log(self, name: str) -> _Log:
        return self.logs.get(name) or self._new(_Log, check_name(name, "log"), self.logs)

    def table(self, name: str) -> _Table:
        return self.tables.get(name) or self._new(_Table, check_name(name, "table"), self.tables)

    def queue(self, name: str) -> _Queue:
        return self.queues.get(name) or self._new(_Queue, check_name(name, "queue"), self.queues)

    def _new(self, kind: type[P], name: str, parts: dict[str, P]) -> P:
        made = kind(name, partial(parts.pop, name, None), self.clock, self.undo)
        if self.keep:
            parts[name] = made
        return made

    def sql(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
        raise UnsupportedError(
            "a memory store has no SQL: open a sqlite: store to run statements in its transaction"
        )


_named: dict[str, _State] = {}


def open_memory(address: Address, clock: Clock) -> MemoryStore:
    """A new store for `memory:`; for `memory:name` the store that the process shares under that name."""
    state = _named.setdefault(address.path, _State(clock)) if address.path else _State(clock)
    return MemoryStore(address.display_url, state, _NAMED if address.path else _UNNAMED)


class MemoryStore(LocalStore):
    """A store in dictionaries."""

    def __init__(self, url: str, state: _State, traits: Traits) -> None:
        self._memory = InlineEngine(url, state)
        super().__init__(url, self._memory)
        self.traits = traits

    async def transaction(self, work: Callable[[Transaction], T]) -> T:
        if iscoroutinefunction(work):
            raise async_work()
        return await self._memory.write(work)

    async def names(self) -> dict[str, list[str]]:
        return await self._memory.read(
            lambda state: {
                "logs": sorted(state.logs),
                "tables": sorted(state.tables),
                "queues": sorted(state.queues),
            }
        )

    async def check(self) -> list[str]:
        return await self._memory.read(lambda state: [])
