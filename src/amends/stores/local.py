# ruff: noqa: D102  (contract.py documents the methods)
"""
Logs, tables and queues of a store on one machine: the interface of `contract` over the rows of a backend.

A backend (memory, SQLite) has the rows and an engine (`rows`). Everything else is the same for all of them: following, waiting for
messages, leases.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from threading import RLock
from typing import Generic, Protocol, TypeVar

from amends.stores.arguments import (
    check_key,
    check_lease,
    check_limit,
    check_name,
    check_seconds,
    check_value,
)
from amends.stores.clock import Clock
from amends.stores.closing import ClosedAtExit
from amends.stores.contract import Bounds, DeadMessage, Entry, Lease, Message, QueueSize, Row
from amends.stores.errors import StoreClosedError
from amends.stores.rows import PAGE, Engine, QueueRows, Rows, TakenMessage
from amends.stores.signal import Signal

__all__ = ["InlineEngine", "LeaseEnds", "LocalStore", "async_work"]

T = TypeVar("T")


class _Log:
    """See `contract.Log`."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine, self.name = engine, name

    async def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        value = check_value(value)
        return await self._engine.write(
            lambda rows: rows.log(self.name).append(value, dedupe=dedupe, last=last)
        )

    async def read(self, start: int | None = None, *, limit: int = 100) -> list[Entry]:
        if limit < 1:
            raise ValueError("limit must be at least 1")
        return await self._engine.read(lambda rows: rows.log(self.name).read(start, limit))

    async def follow(self, start: int | None = None) -> AsyncGenerator[Entry, None]:
        while True:
            seen = self._engine.signal.count
            entries = await self.read(start, limit=PAGE)
            for entry in entries:
                yield entry
                start = entry.seq + 1
            if not entries:
                await self._engine.signal.wait(seen)

    @asynccontextmanager
    async def watch(self) -> AsyncGenerator[Signal]:
        yield self._engine.signal

    async def tail(self) -> Entry | None:
        return await self._engine.read(lambda rows: rows.log(self.name).tail())

    async def bounds(self) -> Bounds:
        return await self._engine.read(lambda rows: rows.log(self.name).bounds())

    async def trim(self, before: int) -> int:
        return await self._engine.write(lambda rows: rows.log(self.name).trim(before))

    async def drop(self) -> None:
        await self._engine.write(lambda rows: rows.log(self.name).drop())

    async def start_at(self, first: int) -> None:
        await self._engine.write(lambda rows: rows.log(self.name).start_at(first))


class _Table:
    """See `contract.Table`."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine, self.name = engine, name

    async def get(self, key: str) -> Row | None:
        return await self._engine.read(lambda rows: rows.table(self.name).get(key))

    async def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        value = check_value(value)
        return await self._engine.write(
            lambda rows: rows.table(self.name).put(key, value, revision=revision, expires_in=expires_in)
        )

    async def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        return await self.put(key, value, revision=0, expires_in=expires_in)

    async def delete(self, key: str, *, revision: int | None = None) -> bool:
        return await self._engine.write(lambda rows: rows.table(self.name).delete(key, revision=revision))

    async def discard(self, key: str) -> None:
        await self.delete(key)

    async def scan(self, prefix: str = "", *, after: str | None = None) -> AsyncIterator[Row]:
        check_key(prefix, "prefix")
        if after is not None and check_key(after, "after") < prefix:
            after = None
        while True:
            found, after = await self._page(prefix, after)
            for row in found:
                yield row
            if after is None:
                return

    async def _page(self, prefix: str, after: str | None) -> tuple[list[Row], str | None]:
        return await self._engine.read(lambda rows: rows.table(self.name).page(prefix, after))

    async def drop(self) -> None:
        await self._engine.write(lambda rows: rows.table(self.name).drop())


class _Queue:
    """See `contract.Queue`."""

    def __init__(self, engine: Engine, name: str, lease: float, max_attempts: int | None) -> None:
        self.engine, self.name, self.lease = engine, name, lease
        self._max_attempts = max_attempts

    async def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return await self.restore(value, key=key, delay=delay, attempts=0)

    async def restore(
        self, value: bytes, *, key: str | None, delay: float, attempts: int, token: str | None = None
    ) -> bool:
        value = check_value(value)
        return await self.engine.write(
            lambda rows: rows.queue(self.name).restore(value, key=key, delay=delay, attempts=attempts)
        )

    async def take(self, *, wait: float | None = 0.0) -> _Lease | None:
        clock, signal = self.engine.clock, self.engine.signal
        end = None if wait is None else clock.steady() + check_seconds(wait, "wait")
        while True:
            seen, now = signal.count, clock.steady()
            # A lease ends with the machine in any case, so a take does not wait for the disk; the first synced write after it
            # keeps it. A durable task one at a time needs this to be twice as fast as a DBOS workflow (bench/tasks.py).
            taking = self.engine.write(
                lambda rows: rows.queue(self.name).take(self.lease, self._max_attempts), synced=False
            )
            if isinstance(taking, asyncio.Future):
                taken = await self._taken(taking)
            else:
                taken = await taking
            if isinstance(taken, TakenMessage):
                return _Lease(self.engine, self.name, self.lease, now + self.lease, *taken)
            # Idle workers only read, and write only if there is a message to take. A change that cannot concern them does not
            # wake them: a task makes three other commits, and a read after each would be a fifth of its processor time.
            while taken is None or taken > 0:
                left = None if end is None else end - clock.steady()
                if left is not None and left <= 0:
                    return None
                timeout = taken if left is None else left if taken is None else min(left, taken)
                await signal.wait(seen, timeout, queue=self.name)
                if signal.has_message(self.name, seen):
                    break
                seen = signal.count
                taken = await self.engine.read(lambda rows: rows.queue(self.name).next_in())

    async def _taken(
        self, taking: asyncio.Future[TakenMessage | float | None]
    ) -> TakenMessage | float | None:
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            # The message may already have been taken for this cancelled worker: put it back.
            taking.add_done_callback(self._put_back)
            raise

    def _put_back(self, taking: asyncio.Future[TakenMessage | float | None]) -> None:
        if taking.cancelled() or taking.exception() is not None or self.engine.closed:
            return
        taken = taking.result()
        if isinstance(taken, TakenMessage):
            self.engine.write(lambda rows: rows.queue(self.name).untake(taken.number, taken.epoch))

    async def now(self) -> float:
        return await self.engine.read(lambda rows: rows.queue(self.name).now())

    async def size(self) -> QueueSize:
        return await self.engine.read(lambda rows: rows.queue(self.name).size())

    async def messages(self) -> AsyncIterator[Message]:
        page = await self._page(0)
        while page:
            for message in page:
                yield message
            page = await self._page(int(page[-1].id)) if len(page) == PAGE else []

    async def _page(self, after: int) -> list[Message]:
        return await self.engine.read(lambda rows: rows.queue(self.name).page(after))

    async def dead(self, *, limit: int = 100) -> list[DeadMessage]:
        check_limit(limit)
        return await self.engine.read(lambda rows: rows.queue(self.name).dead(limit))

    async def revive(self, id: str) -> bool:
        return await self.engine.write(lambda rows: rows.queue(self.name).revive(id))

    async def restore_dead(self, letter: DeadMessage) -> None:
        await self.engine.write(lambda rows: rows.queue(self.name).restore_dead(letter))

    async def discard(self, id: str) -> bool:
        return await self.engine.write(lambda rows: rows.queue(self.name).discard(id))

    async def drop(self) -> None:
        await self.engine.write(lambda rows: rows.queue(self.name).drop())


@dataclass(slots=True, eq=False)
class _Lease:
    """See `contract.Lease`."""

    engine: Engine
    queue: str
    _length: float
    _until: float
    number: int
    key: str | None
    value: bytes
    attempt: int
    epoch: int

    @property
    def id(self) -> str:
        return str(self.number)

    @property
    def expires_in(self) -> float:
        return max(0.0, self._until - self.engine.clock.steady())

    async def extend(self) -> None:
        until = self.engine.clock.steady() + self._length
        await self.engine.write(
            lambda rows: rows.queue(self.queue).extend(self.number, self.epoch, self._length), synced=False
        )
        self._until = until

    async def done(self) -> None:
        await self.engine.write(lambda rows: rows.queue(self.queue).done(self.number, self.epoch))

    async def give_back(self, *, delay: float = 0.0) -> None:
        await self.engine.write(lambda rows: rows.queue(self.queue).give_back(self.number, self.epoch, delay))

    async def dead_letter(self, reason: str) -> None:
        await self.engine.write(
            lambda rows: rows.queue(self.queue).dead_letter(self.number, self.epoch, reason)
        )


class UndoableRows(Rows, Protocol):
    """Rows in memory: every change records how to undo it."""

    place: object
    clock: Clock
    signal: Signal
    lock: RLock
    """Held during each function, so that threads may share the store."""
    undo: list[Callable[[], object]]
    keep: bool
    """Whether names that are not there yet are kept, as for a write."""


R = TypeVar("R", bound=UndoableRows)


class InlineEngine(Generic[R]):
    """Runs each function on rows in memory at once, before another coroutine runs, and undoes the changes of one that raises."""

    def __init__(self, url: str, rows: R) -> None:
        self._url, self._rows = url, rows
        self.place, self.signal, self.clock = rows.place, rows.signal, rows.clock
        self.closed = False

    async def read(self, work: Callable[[R], T]) -> T:
        rows = self._open()
        with rows.lock:
            rows.keep = False
            return work(rows)

    async def write(self, work: Callable[[R], T], *, synced: bool = True) -> T:
        rows = self._open()
        with rows.lock:
            rows.undo.clear()
            rows.keep = True
            try:
                result = work(rows)
            except BaseException:
                while rows.undo:
                    rows.undo.pop()()
                raise
            self.signal.notify()
        return result

    def _open(self) -> R:
        if self.closed:
            raise StoreClosedError(self._url)
        return self._rows

    async def close(self) -> None:
        self.closed = True
        self.signal.notify()


class LeaseEnds:
    """The methods of `contract.Transaction` that end leases. A backend's rows inherit them, and are its transaction."""

    __slots__ = ()

    place: object
    """Equal for all stores with the same rows; None: not known."""

    def queue(self, name: str) -> QueueRows:
        raise NotImplementedError

    def check_lease(self, lease: Lease) -> None:
        held = self._held(lease)
        self.queue(held.queue).check_lease(held.number, held.epoch)

    def done(self, lease: Lease) -> None:
        held = self._held(lease)
        self.queue(held.queue).done(held.number, held.epoch)

    def give_back(self, lease: Lease, *, delay: float = 0.0) -> None:
        held = self._held(lease)
        self.queue(held.queue).give_back(held.number, held.epoch, delay)

    def dead_letter(self, lease: Lease, reason: str) -> None:
        held = self._held(lease)
        self.queue(held.queue).dead_letter(held.number, held.epoch, reason)

    def _held(self, lease: Lease) -> _Lease:
        if not isinstance(lease, _Lease) or self.place not in {None, lease.engine.place}:
            raise ValueError("the lease belongs to another store: end it in a transaction of that store")
        return lease


class LocalStore(ClosedAtExit):
    """See `contract.Store`; a backend adds `traits`, `transaction`, `names` and `check`."""

    def __init__(self, url: str, engine: Engine) -> None:
        self.url, self._engine, self.clock = url, engine, engine.clock

    def log(self, name: str) -> _Log:
        return _Log(self._engine, check_name(name, "log"))

    def table(self, name: str) -> _Table:
        return _Table(self._engine, check_name(name, "table"))

    def queue(self, name: str, *, lease: float = 30.0, max_attempts: int | None = None) -> _Queue:
        check_lease(lease, max_attempts)
        return _Queue(self._engine, check_name(name, "queue"), lease, max_attempts)

    async def close(self) -> None:
        await self._engine.close()


def async_work() -> TypeError:
    """The error for an async function as a transaction: it would return a coroutine, and commit none of its changes."""
    return TypeError("a transaction runs outside of the event loop: pass a function that is not async")
