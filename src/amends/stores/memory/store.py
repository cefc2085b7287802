# ruff: noqa: D102  (contract.py documents the methods)
"""The memory backend's store, log and table: the interface of `contract` over plain state."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from amends.stores.address import Address
from amends.stores.arguments import check_key, check_lease, check_limit, check_name
from amends.stores.clock import Clock
from amends.stores.closing import ClosedAtExit
from amends.stores.contract import Bounds, Entry, Row, Transaction
from amends.stores.errors import StoreClosedError
from amends.stores.memory.queue import MemoryQueue
from amends.stores.memory.state import State
from amends.stores.memory.transaction import MemoryTransaction
from amends.stores.signal import Signal
from amends.stores.traits import Traits

__all__ = ["MemoryStore", "open_memory"]

T = TypeVar("T")

_FOLLOW_PAGE = 256
_UNNAMED = Traits(scope="object", durable=False, transactions=True, sql=False, immediate=True, notifies=False)
_NAMED = replace(_UNNAMED, scope="process")
_named: dict[str, tuple[State, Signal]] = {}


def open_memory(address: Address, clock: Clock) -> MemoryStore:
    """A new store for `memory:`; for `memory:name` the store that the process shares under that name."""
    if not address.path:
        return MemoryStore(address.display_url, State(clock), Signal())
    state, signal = _named.setdefault(address.path, (State(clock), Signal()))
    return MemoryStore(address.display_url, state, signal, named=True)


class MemoryStore(ClosedAtExit):
    """A store in dictionaries; each call completes before another coroutine runs."""

    def __init__(self, url: str, state: State, signal: Signal, *, named: bool = False) -> None:
        self.url = url
        self.traits = _NAMED if named else _UNNAMED
        self._state = state
        self._signal = signal
        self._closed = False

    def log(self, name: str) -> MemoryLog:
        return MemoryLog(self, check_name(name, "log"))

    def table(self, name: str) -> MemoryTable:
        return MemoryTable(self, check_name(name, "table"))

    def queue(self, name: str, *, lease: float = 30.0, max_attempts: int | None = None) -> MemoryQueue:
        check_lease(lease, max_attempts)
        return MemoryQueue(self, self._state.clock, check_name(name, "queue"), lease, max_attempts)

    async def transaction(self, work: Callable[[Transaction], T]) -> T:
        state = self.state()
        with state.lock:
            state.undo.clear()
            try:
                result = work(MemoryTransaction(state))
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
        self._signal.notify()

    def state(self) -> State:
        """The data; raises StoreClosedError if the store was closed."""
        if self._closed:
            raise StoreClosedError(self.url)
        return self._state

    def changed(self) -> None:
        """Commit the change: discard its undo steps and notify the waiters."""
        self._state.undo.clear()
        self._signal.notify()

    @property
    def signal(self) -> Signal:
        return self._signal


class MemoryLog:
    """See `contract.Log`."""

    def __init__(self, store: MemoryStore, name: str) -> None:
        self._store = store
        self.name = name

    async def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        seq = self._store.state().log(self.name).append(value, dedupe=dedupe, last=last)
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

    @asynccontextmanager
    async def watch(self) -> AsyncGenerator[Signal]:
        yield self._store.signal

    async def tail(self) -> Entry | None:
        state = self._store.state().logs.get(self.name)
        if state is None or state.last < state.first:
            return None
        return state.read(state.last, 1)[0]

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
        state = self._store.state()
        with state.lock:
            table = state.tables.get(self.name)
            return table.get(key) if table else None

    async def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        state = self._store.state()
        with state.lock:
            number = state.table(self.name).put(key, value, revision=revision, expires_in=expires_in)
            self._store.changed()
        return number

    async def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        return await self.put(key, value, revision=0, expires_in=expires_in)

    async def delete(self, key: str, *, revision: int | None = None) -> bool:
        state = self._store.state()
        with state.lock:
            found = state.table(self.name).delete(key, revision=revision)
            self._store.changed()
        return found

    async def discard(self, key: str) -> None:
        await self.delete(key)

    async def scan(self, prefix: str = "") -> AsyncIterator[Row]:
        check_key(prefix, "prefix")
        state = self._store.state()
        with state.lock:
            table = state.tables.get(self.name)
            rows = table.scan(prefix) if table else []
        for row in rows:
            yield row

    async def drop(self) -> None:
        self._store.state().tables.pop(self.name, None)
