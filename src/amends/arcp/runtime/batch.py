"""
Changes of several logs, tables and queues as one list: one transaction where the store has them, else in order.

The order is the caller's promise: interrupted after any step, what stands is something the keeper can mend.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from amends.stores.contract import Store, Transaction

__all__ = ["Steps", "done_at_once"]

_LOG, _PUT, _CREATE, _DELETE, _RETIRE, _QUEUE = range(6)
_AT_ONCE = 0.001
_Step = tuple[int, str, Any, Any, Any]


class Steps:
    """A list of changes, then `commit`."""

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
        Remove a row whose readers pass over empty values, and would find out what is stale about the old one.

        Where a deletion leaves a mark for minutes, so that a crash cannot bring the old value back, every scan would come
        across the marks of everything that was there in the meantime. An expiry leaves none.
        """
        self._steps.append((_RETIRE, table, key, None, None))

    def enqueue(self, queue: str, value: bytes, key: str) -> None:
        """See `Queue.put`."""
        self._steps.append((_QUEUE, queue, value, key, None))

    async def commit(self, store: Store) -> None:
        """
        Do it.

        Raises:
            ConflictError: somebody was first. Nothing was done; without transactions, nothing from that step on.

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
                await store.table(name).put(first, b"", expires_in=_AT_ONCE)
            elif what == _CREATE:
                await store.table(name).create(first, second, expires_in=third)
            else:
                await store.queue(name).put(first, key=second)


def done_at_once(work: Coroutine[Any, Any, None]) -> None:
    """Run what waits for nothing but a memory store, which makes nobody wait, without a task."""
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()
    raise RuntimeError("a memory store made somebody wait")
