"""
Changes of several logs, tables and queues as one list: one transaction where the store has them, else in order.

The order is the caller's promise: interrupted after any step, what stands is something the keeper can mend.
"""

from __future__ import annotations

from typing import Any

from amends.stores.contract import Store, Transaction

__all__ = ["Steps"]

_Step = tuple[str, str, tuple[Any, ...], dict[str, Any]]


class Steps:
    """A list of changes, then `commit`."""

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        self._steps: list[_Step] = []

    def append(self, log: str, value: bytes, *, last: int | None = None) -> None:
        """See `Log.append`."""
        self._steps.append(("log", log, (value,), {"last": last}))

    def put(self, table: str, key: str, value: bytes, *, expires_in: float | None = None) -> None:
        """See `Table.put`."""
        self._steps.append(("put", table, (key, value), {"expires_in": expires_in}))

    def create(self, table: str, key: str, value: bytes, *, expires_in: float | None = None) -> None:
        """See `Table.create`."""
        self._steps.append(("create", table, (key, value), {"expires_in": expires_in}))

    def delete(self, table: str, key: str) -> None:
        """See `Table.delete`."""
        self._steps.append(("delete", table, (key,), {}))

    def enqueue(self, queue: str, value: bytes, key: str) -> None:
        """See `Queue.put`."""
        self._steps.append(("queue", queue, (value,), {"key": key}))

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
        for what, name, given, more in self._steps:
            if what == "log":
                tx.log(name).append(*given, **more)
            elif what == "queue":
                tx.queue(name).put(*given, **more)
            else:
                getattr(tx.table(name), what)(*given, **more)

    async def _one_by_one(self, store: Store) -> None:
        for what, name, given, more in self._steps:
            if what == "log":
                await store.log(name).append(*given, **more)
            elif what == "queue":
                await store.queue(name).put(*given, **more)
            else:
                await getattr(store.table(name), what)(*given, **more)
