# ruff: noqa: D102  (contract.py documents the methods)
"""
The log, the table and the queue as plain data, and the whole state of one store. No method here waits.

Every change records how to undo it, so that a transaction that raises leaves no changes.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from threading import RLock
from typing import TypeVar

from amends.stores.arguments import check_key, check_name, check_seconds, check_value
from amends.stores.clock import Clock
from amends.stores.contract import Bounds, DeadMessage, Entry, Message, QueueSize, Row
from amends.stores.errors import ConflictError, LeaseLostError, TrimmedError
from amends.stores.local import PAGE, TakenMessage

__all__ = ["LogState", "QueueState", "State", "TableState"]

T = TypeVar("T")

Undo = list[Callable[[], object]]


class LogState:
    """The entries in the order of their numbers. A runtime keeps one log per job, so it is small."""

    __slots__ = ("_drop", "_entries", "_ids", "_undo", "first", "last", "name")

    def __init__(self, name: str, undo: Undo, drop: Callable[[], object]) -> None:
        self.name, self._drop = name, drop
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

    def drop(self) -> None:
        self._drop()

    def start_at(self, first: int) -> None:
        if self.last == 0:
            self.first, self.last = first, first - 1


_Cell = tuple[bytes, int, float | None]
"""Value, revision, and the time at which it expires."""


class TableState:
    """Cells by key; an expired cell counts as absent and is removed when it is read."""

    def __init__(self, name: str, clock: Clock, undo: Undo, drop: Callable[[], object]) -> None:
        self.name, self._drop = name, drop
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

    def page(self, prefix: str, after: str | None) -> tuple[list[Row], str | None]:
        """All rows at once, and no key to continue after."""
        rows = (self.get(key) for key in sorted(self._cells) if key.startswith(prefix))
        return [row for row in rows if row is not None], None

    def drop(self) -> None:
        self._drop()

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


class QueueState:
    """
    Messages by number, a heap of waiting messages by due time, and a heap of leases by expiry.

    A change of a message leaves its old heap items in place; `take` compares each item with the message before using it.
    """

    def __init__(self, name: str, clock: Clock, undo: Undo, drop: Callable[[], object]) -> None:
        self.name, self._drop = name, drop
        self._messages: dict[int, _StoredMessage] = {}
        self._dead: dict[int, _StoredMessage] = {}
        self._keys: dict[str, int] = {}
        self._waiting: list[tuple[float, int]] = []
        self._leases: list[tuple[float, int]] = []
        self._numbers = itertools.count(1)
        self._clock = clock
        self._undo = undo

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

    def untake(self, number: int, epoch: int) -> None:
        """Not needed here: taking a message does not wait, so no worker is cancelled meanwhile."""

    def check_lease(self, number: int, epoch: int) -> None:
        self._held(number, epoch)

    def extend(self, number: int, epoch: int, lease: float) -> None:
        self._hold(self._held(number, epoch), self._clock.steady() + lease)

    def done(self, number: int, epoch: int) -> None:
        message = self._held(number, epoch)
        self._record_undo(message)
        self._remove(message)

    def give_back(self, number: int, epoch: int, delay: float) -> None:
        due = self._clock.wall() + check_seconds(delay, "delay")
        message = self._held(number, epoch)
        self._record_undo(message)
        message.held = False
        message.due = due
        heapq.heappush(self._waiting, (message.due, number))

    def dead_letter(self, number: int, epoch: int, reason: str) -> None:
        message = self._held(number, epoch)
        self._record_undo(message)
        self._move_to_dead(message, reason)

    def _move_to_dead(self, message: _StoredMessage, reason: str) -> None:
        self._remove(message)
        message.reason = reason
        self._dead[message.number] = message

    def _record_undo(self, message: _StoredMessage) -> None:
        """Record the undo step: hold the message again. `take` ignores heap items that no longer match."""
        due = message.due

        def hold_again() -> None:
            message.held, message.due = True, due
            self._dead.pop(message.number, None)
            self._messages[message.number] = message
            if message.key is not None:
                self._keys[message.key] = message.number

        self._undo.append(hold_again)

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

    def drop(self) -> None:
        self._drop()


@dataclass(slots=True, eq=False)
class State:
    """
    Everything that one memory store holds.

    A name that is not there yet is checked, and is kept only if `keep` is set, as for a write.
    """

    clock: Clock
    logs: dict[str, LogState] = field(default_factory=dict)
    tables: dict[str, TableState] = field(default_factory=dict)
    queues: dict[str, QueueState] = field(default_factory=dict)
    undo: Undo = field(default_factory=list)
    keep: bool = False
    lock: RLock = field(default_factory=RLock)
    """Held during each operation, so that threads may share the store."""

    def log(self, name: str) -> LogState:
        return self.logs.get(name) or self._new(
            self.logs, check_name(name, "log"), LogState(name, self.undo, lambda: self.logs.pop(name, None))
        )

    def table(self, name: str) -> TableState:
        return self.tables.get(name) or self._new(
            self.tables,
            check_name(name, "table"),
            TableState(name, self.clock, self.undo, lambda: self.tables.pop(name, None)),
        )

    def queue(self, name: str) -> QueueState:
        return self.queues.get(name) or self._new(
            self.queues,
            check_name(name, "queue"),
            QueueState(name, self.clock, self.undo, lambda: self.queues.pop(name, None)),
        )

    def _new(self, known: dict[str, T], name: str, made: T) -> T:
        if self.keep:
            known[name] = made
        return made
