"""
A list of changes to several logs, tables and queues: one transaction if the store has them, otherwise done in order.

Without transactions a crash can interrupt the list after any step. Callers therefore order the steps so that
`maintenance` can repair every intermediate state.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from amends.stores.contract import Store, Transaction

__all__ = ["Steps", "run_without_waiting"]

_LOG, _PUT, _CREATE, _DELETE, _RETIRE, _QUEUE = range(6)
_IMMEDIATELY = 0.001
_Step = tuple[int, str, Any, Any, Any]


class Steps:
    """A list of changes; `commit` writes them."""

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        self._steps: list[_Step] = []

    def append(self, log: str, value: bytes, *, last: int | None = None) -> None:
        """See `Log.append`."""
        self._steps.append((_LOG, log, value, last, None))

    def put(self, table: str, key: str, value: bytes, *, expires_in: float | None = None) -> None:
        """See `Table.put`."""
        self._steps.append((_PUT, table, key, value, expires_in))

    def create(self, table: str, key: str, value: bytes, *, expires_in: float | None = None) -> None:
        """See `Table.create`."""
        self._steps.append((_CREATE, table, key, value, expires_in))

    def delete(self, table: str, key: str) -> None:
        """See `Table.delete`."""
        self._steps.append((_DELETE, table, key, None, None))

    def retire(self, table: str, key: str) -> None:
        """
        Remove a row by expiry, in a table whose readers skip empty values and detect stale ones.

        Some stores keep a tombstone of a deleted row for minutes, so that a crash cannot restore the old value. Every
        scan would then read the tombstones of all rows deleted in that time. An expired row leaves no tombstone.
        """
        self._steps.append((_RETIRE, table, key, None, None))

    def enqueue(self, queue: str, value: bytes, key: str) -> None:
        """See `Queue.put`."""
        self._steps.append((_QUEUE, queue, value, key, None))

    async def commit(self, store: Store) -> None:
        """
        Write the changes.

        Raises:
            ConflictError: another writer was first. No step was done; without transactions, the steps before the one
                that failed were done.

        """
        if store.supports_transactions:
            await store.transaction(self._together, short=True)
        else:
            await self._one_by_one(store)

    def _together(self, tx: Transaction) -> None:
        for what, name, first, second, third in self._steps:
            if what == _LOG:
                tx.log(name).append(first, last=second)
            elif what == _PUT:
                tx.table(name).put(first, second, expires_in=third)
            elif what in {_DELETE, _RETIRE}:
                tx.table(name).delete(first)
            elif what == _CREATE:
                tx.table(name).create(first, second, expires_in=third)
            else:
                tx.queue(name).put(first, key=second)

    async def _one_by_one(self, store: Store) -> None:
        for what, name, first, second, third in self._steps:
            if what == _LOG:
                await store.log(name).append(first, last=second)
            elif what == _PUT:
                await store.table(name).put(first, second, expires_in=third)
            elif what == _DELETE:
                await store.table(name).discard(first)
            elif what == _RETIRE:
                await store.table(name).put(first, b"", expires_in=_IMMEDIATELY)
            elif what == _CREATE:
                await store.table(name).create(first, second, expires_in=third)
            else:
                await store.queue(name).put(first, key=second)


def run_without_waiting(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end without a task. It may await only a memory store, which never suspends."""
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()
    raise RuntimeError("a coroutine on a memory store suspended; it must complete without waiting")
