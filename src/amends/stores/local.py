# ruff: noqa: D102  (contract.py documents the methods)
"""
Logs, tables and queues of a store on one machine: the interface of `contract` over the rows of a backend.

A backend (memory, SQLite) has classes for the rows of one log, table or queue, whose methods do not wait, and an engine, which runs
functions on them. Everything else is the same for all of them: argument checks, following, waiting for messages, leases.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

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
from amends.stores.signal import Signal
from amends.stores.writers import LogWriter, QueueWriter, TableWriter

__all__ = ["PAGE", "Engine", "LocalStore", "LocalTransaction", "QueueRows", "Rows", "TakenMessage"]

T = TypeVar("T")

PAGE = 256
"""Entries, rows or messages that are read at once."""


# What a backend has ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TakenMessage:
    """What `QueueRows.take` returns: the message's number and epoch, and what the worker needs."""

    number: int
    key: str | None
    value: bytes
    attempt: int
    epoch: int


class LogRows(LogWriter, Protocol):
    """The entries of one log."""

    def read(self, start: int | None, limit: int) -> list[Entry]: ...
    def tail(self) -> Entry | None: ...
    def trim(self, before: int) -> int: ...
    def drop(self) -> None: ...
    def start_at(self, first: int) -> None: ...


class TableRows(TableWriter, Protocol):
    """The rows of one table."""

    def page(self, prefix: str, after: str | None) -> tuple[list[Row], str | None]: ...
    def drop(self) -> None: ...


class QueueRows(QueueWriter, Protocol):
    """The messages of one queue. A message that is held is named by its number and its epoch."""

    def restore(self, value: bytes, *, key: str | None, delay: float, attempts: int) -> bool: ...
    def take(self, lease: float, max_attempts: int | None) -> TakenMessage | float | None: ...
    def next_in(self) -> float | None: ...
    def untake(self, number: int, epoch: int) -> None: ...
    def check_lease(self, number: int, epoch: int) -> None: ...
    def extend(self, number: int, epoch: int, lease: float) -> None: ...
    def done(self, number: int, epoch: int) -> None: ...
    def give_back(self, number: int, epoch: int, delay: float) -> None: ...
    def dead_letter(self, number: int, epoch: int, reason: str) -> None: ...
    def size(self) -> QueueSize: ...
    def page(self, after: int) -> list[Message]: ...
    def dead(self, limit: int) -> list[DeadMessage]: ...
    def restore_dead(self, letter: DeadMessage) -> None: ...
    def revive(self, id: str) -> bool: ...
    def discard(self, id: str) -> bool: ...
    def drop(self) -> None: ...


class Rows(Protocol):
    """All rows of a store. The methods raise ValueError or TypeError for what is no name."""

    def log(self, name: str) -> LogRows: ...
    def table(self, name: str) -> TableRows: ...
    def queue(self, name: str) -> QueueRows: ...


class Engine(Protocol):
    """Runs functions on the rows of a store."""

    clock: Clock
    signal: Signal
    """Notified of every change."""
    closed: bool

    @property
    def place(self) -> object:
        """Equal for all stores with the same rows."""
        ...

    def read(self, work: Callable[[Rows], T]) -> Awaitable[T]:
        """Run a function that changes nothing."""
        ...

    def write(self, work: Callable[[Rows], T]) -> Awaitable[T]:
        """Run a function that checks before it writes; the result comes after the commit."""
        ...

    async def close(self) -> None: ...


# What callers have ----------------------------------------------------------------------------------------------


class _Log:
    """See `contract.Log`."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine, self.name = engine, name

    async def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        value = check_value(value)
        if dedupe is not None:
            check_key(dedupe, "dedupe id")
        return await self._engine.write(
            lambda rows: rows.log(self.name).append(value, dedupe=dedupe, last=last)
        )

    async def read(self, start: int | None = None, *, limit: int = 100) -> list[Entry]:
        check_limit(limit)
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
        check_key(key)
        return await self._engine.read(lambda rows: rows.table(self.name).get(key))

    async def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        check_key(key)
        value = check_value(value)
        if expires_in is not None:
            check_seconds(expires_in, "expires_in")
        return await self._engine.write(
            lambda rows: rows.table(self.name).put(key, value, revision=revision, expires_in=expires_in)
        )

    async def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        return await self.put(key, value, revision=0, expires_in=expires_in)

    async def delete(self, key: str, *, revision: int | None = None) -> bool:
        check_key(key)
        return await self._engine.write(lambda rows: rows.table(self.name).delete(key, revision=revision))

    async def discard(self, key: str) -> None:
        await self.delete(key)

    async def scan(self, prefix: str = "") -> AsyncIterator[Row]:
        check_key(prefix, "prefix")
        after: str | None = None
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
        check_seconds(delay, "delay")
        if key is not None:
            check_key(key)
        return await self.engine.write(
            lambda rows: rows.queue(self.name).restore(value, key=key, delay=delay, attempts=attempts)
        )

    async def take(self, *, wait: float | None = 0.0) -> _Lease | None:
        clock, signal = self.engine.clock, self.engine.signal
        end = None if wait is None else clock.steady() + check_seconds(wait, "wait")
        while True:
            seen, now = signal.count, clock.steady()
            taken = await self._try()
            if isinstance(taken, TakenMessage):
                return _Lease(self, taken, now + self.lease)
            # Idle workers only read, and write only if there is a message to take.
            while taken is None or taken > 0:
                left = None if end is None else end - clock.steady()
                if left is not None and left <= 0:
                    return None
                await signal.wait(
                    seen, taken if left is None else left if taken is None else min(left, taken)
                )
                seen = signal.count
                taken = await self.engine.read(lambda rows: rows.queue(self.name).next_in())

    async def _try(self) -> TakenMessage | float | None:
        taking = self.engine.write(lambda rows: rows.queue(self.name).take(self.lease, self._max_attempts))
        if not isinstance(taking, asyncio.Future):
            return await taking
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
        return self.engine.clock.wall()

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


class _Lease:
    """See `contract.Lease`."""

    def __init__(self, queue: _Queue, taken: TakenMessage, until: float) -> None:
        self.engine, self.queue, self._length, self._until = queue.engine, queue.name, queue.lease, until
        self.number, self.id, self.key = taken.number, str(taken.number), taken.key
        self.value, self.attempt, self.epoch = taken.value, taken.attempt, taken.epoch

    @property
    def expires_in(self) -> float:
        return max(0.0, self._until - self.engine.clock.steady())

    async def extend(self) -> None:
        until = self.engine.clock.steady() + self._length
        await self.engine.write(
            lambda rows: rows.queue(self.queue).extend(self.number, self.epoch, self._length)
        )
        self._until = until

    async def done(self) -> None:
        await self.engine.write(lambda rows: rows.queue(self.queue).done(self.number, self.epoch))

    async def give_back(self, *, delay: float = 0.0) -> None:
        check_seconds(delay, "delay")
        await self.engine.write(lambda rows: rows.queue(self.queue).give_back(self.number, self.epoch, delay))

    async def dead_letter(self, reason: str) -> None:
        await self.engine.write(
            lambda rows: rows.queue(self.queue).dead_letter(self.number, self.epoch, reason)
        )


class LocalTransaction:
    """See `contract.Transaction`; a backend adds `sql`."""

    def __init__(self, rows: Rows, place: object = None) -> None:
        self._rows, self._place = rows, place

    def log(self, name: str) -> LogWriter:
        return self._rows.log(name)

    def table(self, name: str) -> TableWriter:
        return self._rows.table(name)

    def queue(self, name: str) -> QueueWriter:
        return self._rows.queue(name)

    def check_lease(self, lease: Lease) -> None:
        held, rows = self._held(lease)
        rows.check_lease(held.number, held.epoch)

    def done(self, lease: Lease) -> None:
        held, rows = self._held(lease)
        rows.done(held.number, held.epoch)

    def give_back(self, lease: Lease, *, delay: float = 0.0) -> None:
        held, rows = self._held(lease)
        rows.give_back(held.number, held.epoch, check_seconds(delay, "delay"))

    def dead_letter(self, lease: Lease, reason: str) -> None:
        held, rows = self._held(lease)
        rows.dead_letter(held.number, held.epoch, reason)

    def _held(self, lease: Lease) -> tuple[_Lease, QueueRows]:
        if not isinstance(lease, _Lease) or self._place not in {None, lease.engine.place}:
            raise ValueError("the lease belongs to another store: end it in a transaction of that store")
        return lease, self._rows.queue(lease.queue)

    def sql(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
        raise NotImplementedError


class LocalStore(ClosedAtExit):
    """See `contract.Store`; a backend adds `traits`, `transaction`, `names` and `check`."""

    def __init__(self, url: str, engine: Engine) -> None:
        self.url, self._engine = url, engine

    def log(self, name: str) -> _Log:
        return _Log(self._engine, check_name(name, "log"))

    def table(self, name: str) -> _Table:
        return _Table(self._engine, check_name(name, "table"))

    def queue(self, name: str, *, lease: float = 30.0, max_attempts: int | None = None) -> _Queue:
        check_lease(lease, max_attempts)
        return _Queue(self._engine, check_name(name, "queue"), lease, max_attempts)

    async def close(self) -> None:
        await self._engine.close()
