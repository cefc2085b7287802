# ruff: noqa: D102  (what a method means is said once, in contract.py)
"""The memory backend's store: the plain state behind the awaitable contract."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from amends.stores.address import Address
from amends.stores.arguments import (
    check_key,
    check_lease,
    check_limit,
    check_name,
    check_seconds,
    check_value,
)
from amends.stores.clock import Clock
from amends.stores.contract import Bounds, DeadTask, Entry, QueueSize, Row, Task, Transaction
from amends.stores.errors import StoreClosedError, UnsupportedError
from amends.stores.memory.state import LogState, QueueState, State, TableState, Taken
from amends.stores.signal import Signal

__all__ = ["MemoryStore", "open_memory"]

T = TypeVar("T")

_FOLLOW_PAGE = 256
_named: dict[str, tuple[State, Signal]] = {}


def open_memory(address: Address, clock: Clock) -> MemoryStore:
    """A new store for `memory:`; the process's own of that name for `memory:name`."""
    if not address.path:
        return MemoryStore(address.shown, State(clock), Signal())
    state, signal = _named.setdefault(address.path, (State(clock), Signal()))
    return MemoryStore(address.shown, state, signal)


class MemoryStore:
    """Everything in dictionaries; every call is complete before another coroutine runs."""

    supports_transactions = True

    def __init__(self, url: str, state: State, signal: Signal) -> None:
        self.url = url
        self._state = state
        self._signal = signal
        self._closed = False

    def log(self, name: str) -> MemoryLog:
        return MemoryLog(self, check_name(name, "log"))

    def table(self, name: str) -> MemoryTable:
        return MemoryTable(self, check_name(name, "table"))

    def queue(self, name: str, *, lease: float = 30.0, max_attempts: int | None = None) -> MemoryQueue:
        check_lease(lease, max_attempts)
        return MemoryQueue(self, check_name(name, "queue"), lease, max_attempts)

    async def transaction(self, work: Callable[[Transaction], T]) -> T:
        state = self.state()
        try:
            result = work(_MemoryTransaction(state))
        except BaseException:
            while state.undo:
                state.undo.pop()()
            raise
        self.changed()
        return result

    async def names(self) -> dict[str, list[str]]:
        state = self.state()
        return {"logs": sorted(state.logs), "tables": sorted(state.tables), "queues": sorted(state.queues)}

    async def check(self) -> list[str]:
        self.state()
        return []

    async def close(self) -> None:
        self._closed = True
        self._signal.ring()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def state(self) -> State:
        """The data, unless the store was closed."""
        if self._closed:
            raise StoreClosedError(self.url)
        return self._state

    def changed(self) -> None:
        """The change stands: forget how to undo it, and wake whoever waits."""
        self._state.undo.clear()
        self._signal.ring()

    @property
    def signal(self) -> Signal:
        return self._signal


class MemoryLog:
    """See `contract.Log`."""

    def __init__(self, store: MemoryStore, name: str) -> None:
        self._store = store
        self.name = name

    async def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        seq = _checked_append(self._store.state().log(self.name), value, dedupe, last)
        self._store.changed()
        return seq

    async def read(self, start: int | None = None, *, limit: int = 100) -> list[Entry]:
        check_limit(limit)
        state = self._store.state().logs.get(self.name)
        return state.read(start, limit) if state else []

    async def follow(self, start: int | None = None) -> AsyncIterator[Entry]:
        while True:
            seen = self._store.signal.count
            entries = await self.read(start, limit=_FOLLOW_PAGE)
            for entry in entries:
                yield entry
                start = entry.seq + 1
            if not entries:
                await self._store.signal.wait(seen)

    async def bounds(self) -> Bounds:
        state = self._store.state().logs.get(self.name)
        return state.bounds() if state else Bounds(1, 0)

    async def trim(self, before: int) -> int:
        state = self._store.state().logs.get(self.name)
        return state.trim(before) if state else 1

    async def drop(self) -> None:
        self._store.state().logs.pop(self.name, None)

    async def start_at(self, first: int) -> None:
        state = self._store.state().log(self.name)
        if state.last == 0:
            state.first, state.last = first, first - 1


class MemoryTable:
    """See `contract.Table`."""

    def __init__(self, store: MemoryStore, name: str) -> None:
        self._store = store
        self.name = name

    async def get(self, key: str) -> Row | None:
        check_key(key)
        state = self._store.state().tables.get(self.name)
        return state.get(key) if state else None

    async def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        number = _MemoryTableWriter(self._store.state().table(self.name)).put(
            key, value, revision=revision, expires_in=expires_in
        )
        self._store.changed()
        return number

    async def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        return await self.put(key, value, revision=0, expires_in=expires_in)

    async def delete(self, key: str, *, revision: int | None = None) -> bool:
        found = self._store.state().table(self.name).delete(check_key(key), revision=revision)
        self._store.changed()
        return found

    async def scan(self, prefix: str = "") -> AsyncIterator[Row]:
        check_key(prefix, "prefix")
        state = self._store.state().tables.get(self.name)
        for row in state.scan(prefix) if state else ():
            yield row

    async def drop(self) -> None:
        self._store.state().tables.pop(self.name, None)


class MemoryQueue:
    """See `contract.Queue`."""

    def __init__(self, store: MemoryStore, name: str, lease: float, max_attempts: int | None) -> None:
        self._store = store
        self.name = name
        self.lease = lease
        self._max_attempts = max_attempts

    def state(self) -> QueueState:
        return self._store.state().queue(self.name)

    def changed(self) -> None:
        self._store.changed()

    def steady(self) -> float:
        return self._store.state().clock.steady()

    async def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return await self.restore(value, key=key, delay=delay, attempts=0)

    async def restore(
        self, value: bytes, *, key: str | None, delay: float, attempts: int, token: str | None = None
    ) -> bool:
        put = _checked_put(self.state(), value, key, delay, attempts)
        self.changed()
        return put

    async def take(self, *, wait: float | None = 0.0) -> MemoryLease | None:
        end = None if wait is None else self.steady() + check_seconds(wait, "wait")
        while True:
            seen = self._store.signal.count
            asked = self.steady()
            found = self.state().take(self.lease, self._max_attempts)
            if isinstance(found, Taken):
                return MemoryLease(self, found, asked + self.lease)
            left = None if end is None else end - asked
            if left is not None and left <= 0:
                return None
            await self._store.signal.wait(
                seen, min((x for x in (left, found) if x is not None), default=None)
            )

    async def size(self) -> QueueSize:
        return self.state().size()

    async def tasks(self) -> AsyncIterator[Task]:
        for task in self.state().tasks():
            yield task

    async def dead(self, *, limit: int = 100) -> list[DeadTask]:
        return self.state().dead(check_limit(limit))

    async def revive(self, id: str) -> bool:
        revived = self.state().revive(id)
        self.changed()
        return revived

    async def restore_dead(self, letter: DeadTask) -> None:
        self.state().restore_dead(letter)

    async def discard(self, id: str) -> bool:
        return self.state().discard(id)

    async def drop(self) -> None:
        self._store.state().queues.pop(self.name, None)


class MemoryLease:
    """See `contract.Lease`."""

    def __init__(self, queue: MemoryQueue, taken: Taken, until: float) -> None:
        self._queue = queue
        self._number = taken.number
        self._until = until
        self.id = str(taken.number)
        self.key = taken.key
        self.value = taken.value
        self.attempt = taken.attempt
        self.epoch = taken.epoch

    @property
    def expires_in(self) -> float:
        return max(0.0, self._until - self._queue.steady())

    async def extend(self) -> None:
        until = self._queue.steady() + self._queue.lease
        self._queue.state().extend(self._number, self.epoch, self._queue.lease)
        self._until = until

    async def done(self) -> None:
        self._queue.state().done(self._number, self.epoch)
        self._queue.changed()

    async def give_back(self, *, delay: float = 0.0) -> None:
        self._queue.state().give_back(self._number, self.epoch, check_seconds(delay, "delay"))
        self._queue.changed()

    async def bury(self, reason: str) -> None:
        self._queue.state().bury(self._number, self.epoch, reason)
        self._queue.changed()


def _checked_append(state: LogState, value: bytes, dedupe: str | None, last: int | None) -> int:
    if dedupe is not None:
        check_key(dedupe, "dedupe id")
    return state.append(check_value(value), dedupe=dedupe, last=last)


def _checked_put(state: QueueState, value: bytes, key: str | None, delay: float, attempts: int) -> bool:
    if key is not None:
        check_key(key)
    return state.restore(check_value(value), key=key, delay=check_seconds(delay, "delay"), attempts=attempts)


class _MemoryLogWriter:
    def __init__(self, state: LogState) -> None:
        self._state = state

    def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        return _checked_append(self._state, value, dedupe, last)


class _MemoryTableWriter:
    def __init__(self, state: TableState) -> None:
        self._state = state

    def get(self, key: str) -> Row | None:
        return self._state.get(check_key(key))

    def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        if expires_in is not None:
            check_seconds(expires_in, "expires_in")
        return self._state.put(check_key(key), check_value(value), revision=revision, expires_in=expires_in)

    def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        return self.put(key, value, revision=0, expires_in=expires_in)

    def delete(self, key: str, *, revision: int | None = None) -> bool:
        return self._state.delete(check_key(key), revision=revision)


class _MemoryQueueWriter:
    def __init__(self, state: QueueState) -> None:
        self._state = state

    def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return _checked_put(self._state, value, key, delay, 0)


class _MemoryTransaction:
    def __init__(self, state: State) -> None:
        self._state = state

    def log(self, name: str) -> _MemoryLogWriter:
        return _MemoryLogWriter(self._state.log(check_name(name, "log")))

    def table(self, name: str) -> _MemoryTableWriter:
        return _MemoryTableWriter(self._state.table(check_name(name, "table")))

    def queue(self, name: str) -> _MemoryQueueWriter:
        return _MemoryQueueWriter(self._state.queue(check_name(name, "queue")))

    def sql(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        raise UnsupportedError(
            "a memory store has no SQL: open a sqlite: store to join your statements with it"
        )
