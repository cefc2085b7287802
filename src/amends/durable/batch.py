"""
Changes of several logs, tables and queues: one transaction if the store has transactions, otherwise done in order.

Without transactions a crash can interrupt the batch after any change. Callers therefore order the changes so that every
intermediate state can be repaired from the logs.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

import msgspec

from amends.durable.index import IndexRow, write_row
from amends.stores.contract import Lease, Store, Transaction

__all__ = ["Batch", "run_without_waiting"]

_IMMEDIATELY = 0.001


class _Change(Protocol):
    def apply(self, tx: Transaction) -> None:
        """Make the change in a transaction."""
        ...

    def perform(self, store: Store) -> Coroutine[Any, Any, None]:
        """Make the change on a store without transactions."""
        ...


class Batch:
    """A list of changes; `commit` writes them."""

    __slots__ = ("_changes",)

    def __init__(self) -> None:
        self._changes: list[_Change] = []

    def append(self, log: str, value: bytes, *, last: int | None = None) -> None:
        """See `Log.append`."""
        self._changes.append(_Append(log, value, last))

    def put(self, table: str, key: str, value: bytes, *, expires_in: float | None = None) -> None:
        """See `Table.put`."""
        self._changes.append(_Put(table, key, value, expires_in))

    def create(self, table: str, key: str, value: bytes, *, expires_in: float | None = None) -> None:
        """See `Table.create`."""
        self._changes.append(_Create(table, key, value, expires_in))

    def delete(self, table: str, key: str) -> None:
        """See `Table.delete`."""
        self._changes.append(_Delete(table, key))

    def retire(self, table: str, key: str) -> None:
        """
        Remove a row by expiry, in a table whose readers skip empty values and detect stale ones.

        Some stores keep a tombstone of a deleted row for minutes, so that a crash cannot restore the old value. Every
        scan would then read the tombstones of all rows deleted in that time. An expired row leaves no tombstone.
        """
        self._changes.append(_Retire(table, key))

    def index(self, row: IndexRow) -> None:
        """Write a derived row, unless the table has a newer one. The row must follow the append it is derived from."""
        self._changes.append(_Index(row))

    def enqueue(self, queue: str, value: bytes, key: str) -> None:
        """See `Queue.put`."""
        self._changes.append(_Enqueue(queue, value, key))

    def done(self, lease: Lease) -> None:
        """See `Lease.done`."""
        self._changes.append(_Done(lease))

    def give_back(self, lease: Lease, *, delay: float = 0.0) -> None:
        """See `Lease.give_back`."""
        self._changes.append(_GiveBack(lease, delay))

    async def commit(self, store: Store) -> None:
        """
        Write the changes.

        Raises:
            ConflictError: another writer was first. Nothing was changed; without transactions, the changes before the one
                that failed were made.
            LeaseLostError: another worker has a message of this batch; as with ConflictError.

        """
        if store.supports_transactions:
            await store.transaction(self.apply, short=True)
        else:
            await self._perform_in_order(store)

    def apply(self, tx: Transaction) -> None:
        """Make the changes in a transaction of the caller."""
        for change in self._changes:
            change.apply(tx)

    async def _perform_in_order(self, store: Store) -> None:
        for change in self._changes:
            await change.perform(store)


class _Append(msgspec.Struct, frozen=True, gc=False):
    log: str
    value: bytes
    last: int | None

    def apply(self, tx: Transaction) -> None:
        tx.log(self.log).append(self.value, last=self.last)

    async def perform(self, store: Store) -> None:
        await store.log(self.log).append(self.value, last=self.last)


class _Put(msgspec.Struct, frozen=True, gc=False):
    table: str
    key: str
    value: bytes
    expires_in: float | None

    def apply(self, tx: Transaction) -> None:
        tx.table(self.table).put(self.key, self.value, expires_in=self.expires_in)

    async def perform(self, store: Store) -> None:
        await store.table(self.table).put(self.key, self.value, expires_in=self.expires_in)


class _Create(_Put, frozen=True, gc=False):
    def apply(self, tx: Transaction) -> None:
        tx.table(self.table).create(self.key, self.value, expires_in=self.expires_in)

    async def perform(self, store: Store) -> None:
        await store.table(self.table).create(self.key, self.value, expires_in=self.expires_in)


class _Delete(msgspec.Struct, frozen=True, gc=False):
    table: str
    key: str

    def apply(self, tx: Transaction) -> None:
        tx.table(self.table).delete(self.key)

    async def perform(self, store: Store) -> None:
        await store.table(self.table).discard(self.key)


class _Retire(_Delete, frozen=True, gc=False):
    async def perform(self, store: Store) -> None:
        await store.table(self.table).put(self.key, b"", expires_in=_IMMEDIATELY)


class _Index(msgspec.Struct, frozen=True):
    row: IndexRow

    def apply(self, tx: Transaction) -> None:
        # In the transaction of its append no other writer can have written a newer row.
        tx.table(self.row.table).put(self.row.key, self.row.value)

    async def perform(self, store: Store) -> None:
        await write_row(store, self.row)


class _Enqueue(msgspec.Struct, frozen=True, gc=False):
    queue: str
    value: bytes
    key: str

    def apply(self, tx: Transaction) -> None:
        tx.queue(self.queue).put(self.value, key=self.key)

    async def perform(self, store: Store) -> None:
        await store.queue(self.queue).put(self.value, key=self.key)


class _Done(msgspec.Struct, frozen=True):
    lease: Any

    def apply(self, tx: Transaction) -> None:
        tx.done(self.lease)

    async def perform(self, store: Store) -> None:
        await self.lease.done()


class _GiveBack(msgspec.Struct, frozen=True):
    lease: Any
    delay: float

    def apply(self, tx: Transaction) -> None:
        tx.give_back(self.lease, delay=self.delay)

    async def perform(self, store: Store) -> None:
        await self.lease.give_back(delay=self.delay)


def run_without_waiting(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end without a task. It may await only a memory store, which never suspends."""
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()
    raise RuntimeError("a coroutine on a memory store suspended; it must complete without waiting")
