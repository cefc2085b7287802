"""
Changes of several logs, tables and queues: one transaction if the store has transactions, otherwise done in order.

Without transactions a crash can interrupt the batch after any change. Callers therefore order the changes so that every
intermediate state can be repaired from the logs. `complete` writes to the end although the caller is cancelled.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from amends.durable.index import IndexRow, write_row
from amends.stores.contract import Lease, Store, Transaction

__all__ = ["Batch", "complete", "in_background", "run_without_waiting", "wait_for_background"]

T = TypeVar("T")

_IMMEDIATELY = 0.001

_InTransaction = Callable[[Transaction], object]
_OnStore = Callable[[Store], object]
"""Returns an awaitable, as the methods of a store do."""


@dataclass(slots=True)
class Batch:
    """A list of changes; `commit` writes them. Each is kept in two forms: for a transaction, and for a store without."""

    _changes: list[tuple[_InTransaction, _OnStore]] = field(default_factory=list)

    def _both(self, change: Callable[[Store | Transaction], object]) -> None:
        """Add a change that is written the same way in a transaction and on a store."""
        self._changes.append((change, change))

    def append(self, log: str, value: bytes, *, last: int | None = None) -> None:
        """See `Log.append`."""
        self._both(lambda on: on.log(log).append(value, last=last))

    def put(self, table: str, key: str, value: bytes, *, expires_in: float | None = None) -> None:
        """See `Table.put`."""
        self._both(lambda on: on.table(table).put(key, value, expires_in=expires_in))

    def create(self, table: str, key: str, value: bytes) -> None:
        """See `Table.create`."""
        self._both(lambda on: on.table(table).create(key, value))

    def delete(self, table: str, key: str) -> None:
        """See `Table.delete`."""
        self._changes.append(
            (lambda tx: tx.table(table).delete(key), lambda store: store.table(table).discard(key))
        )

    def retire(self, table: str, key: str) -> None:
        """
        Remove a row by expiry, in a table whose readers skip empty values and detect stale ones.

        Some stores keep a tombstone of a deleted row for minutes, so that a crash cannot restore the old value. Every
        scan would then read the tombstones of all rows deleted in that time. An expired row leaves no tombstone.
        """
        self._changes.append(
            (
                lambda tx: tx.table(table).delete(key),
                lambda store: store.table(table).put(key, b"", expires_in=_IMMEDIATELY),
            )
        )

    def index(self, row: IndexRow) -> None:
        """Write a derived row, unless the table has a newer one. In a transaction, its entry must be appended there too."""
        self._changes.append(
            (lambda tx: tx.table(row.table).put(row.key, row.value), lambda store: write_row(store, row))
        )

    def enqueue(self, queue: str, value: bytes, key: str) -> None:
        """See `Queue.put`."""
        self._both(lambda on: on.queue(queue).put(value, key=key))

    def keep_or_end(self, lease: Lease, delay: float | None = None) -> None:
        """
        Go on only if no other worker has taken the lease's message; then keep the lease, or end it.

        Without transactions, a lease that is kept is extended if it has run out by the clock of this process: before that,
        no other worker can have taken the message.

        Args:
            lease: the lease.
            delay: None keeps it, `math.inf` removes its message, another number gives the message back for so many seconds.
        """
        if delay is None:
            self._changes.append((lambda tx: tx.check_lease(lease), lambda _: _extend_expired(lease)))
        elif delay == math.inf:
            self._changes.append((lambda tx: tx.done(lease), lambda _: lease.done()))
        else:
            self._changes.append(
                (lambda tx: tx.give_back(lease, delay=delay), lambda _: lease.give_back(delay=delay))
            )

    async def commit(self, store: Store) -> None:
        """
        Write the changes.

        Raises:
            ConflictError: another writer was first. Nothing was changed; without transactions, the changes before the one
                that failed were made.
            LeaseLostError: another worker has a message of this batch; as with ConflictError.

        """
        if store.traits.transactions:
            await store.transaction(self._apply)
        else:
            await self._perform_in_order(store)

    def _apply(self, tx: Transaction) -> None:
        for in_transaction, _ in self._changes:
            in_transaction(tx)

    async def _perform_in_order(self, store: Store) -> None:
        for _, on_store in self._changes:
            change = on_store(store)
            if isinstance(change, Awaitable):
                await change


async def _extend_expired(lease: Lease) -> None:
    if lease.expires_in <= 0:
        await lease.extend()


# Callers that are cancelled --------------------------------------------------------------------------------------

_TASKS: set[asyncio.Future[Any]] = set()
"""The event loop itself keeps only weak references to its tasks."""


def in_background(work: Awaitable[T]) -> asyncio.Future[T]:
    """Start a task that ends even if the caller is cancelled. Await `asyncio.shield` of it for its result."""
    task = asyncio.ensure_future(work)
    _TASKS.add(task)
    task.add_done_callback(_done)
    return task


def _done(task: asyncio.Future[Any]) -> None:
    _TASKS.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not log it when the caller was cancelled


async def complete(work: Awaitable[T]) -> T:
    """Run a write to its end, also if the caller is cancelled, so that no part of it is missing."""
    return await asyncio.shield(in_background(work))


async def wait_for_background() -> None:
    """Wait until nothing runs in the background of this event loop. For tests."""
    loop = asyncio.get_running_loop()
    while running := [task for task in _TASKS if task.get_loop() is loop]:
        await asyncio.wait(running)


def run_without_waiting(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end without a task. It may await only a memory store, which never suspends."""
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()
    raise RuntimeError("a coroutine on a memory store suspended; it must complete without waiting")
