"""The interface inside a transaction: the same methods, without awaiting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from amends.stores.values import Bounds, Row

if TYPE_CHECKING:
    from amends.stores.contract import Lease

__all__ = ["LogWriter", "QueueWriter", "TableWriter", "Transaction"]


class LogWriter(Protocol):
    """
    A log inside a transaction; as `Log`, without awaiting.

    >>> import asyncio
    >>> from amends import stores
    >>> store = asyncio.run(stores.open("memory:"))
    >>> asyncio.run(store.transaction(lambda tx: tx.log("jobs").append(b"started")))
    1
    """

    def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        """See `Log.append`."""

    def bounds(self) -> Bounds:
        """See `Log.bounds`; includes what this transaction has appended."""


class TableWriter(Protocol):
    """
    A table inside a transaction; as `Table`, without awaiting.

    >>> import asyncio
    >>> from amends import stores
    >>> store = asyncio.run(stores.open("memory:"))
    >>> def count(tx):
    ...     row = tx.table("counters").get("visits")
    ...     visits = 1 if row is None else int(row.value) + 1
    ...     tx.table("counters").put("visits", b"%d" % visits)
    ...     return visits
    >>> asyncio.run(store.transaction(count)), asyncio.run(store.transaction(count))
    (1, 2)
    """

    def get(self, key: str) -> Row | None:
        """See `Table.get`."""

    def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        """See `Table.put`."""

    def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        """See `Table.create`."""

    def delete(self, key: str, *, revision: int | None = None) -> bool:
        """See `Table.delete`."""


class QueueWriter(Protocol):
    """
    A queue inside a transaction; as `Queue`, without awaiting. The message exists only if the transaction commits.

    >>> import asyncio
    >>> from amends import stores
    >>> store = asyncio.run(stores.open("memory:"))
    >>> asyncio.run(store.transaction(lambda tx: tx.queue("mail").put(b"hello", key="order-17")))
    True
    """

    def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        """See `Queue.put`."""


class Transaction(Protocol):
    """
    The argument of the function that `Store.transaction` runs: the store commits all of its changes, or none.

    >>> import asyncio
    >>> from amends import stores
    >>> store = asyncio.run(stores.open("memory:"))
    >>> def pay(tx):
    ...     tx.table("orders").put("17", b"paid")
    ...     return tx.queue("mail").put(b"receipt 17")
    >>> asyncio.run(store.transaction(pay))
    True
    """

    def log(self, name: str) -> LogWriter:
        """The log with that name."""

    def table(self, name: str) -> TableWriter:
        """The table with that name."""

    def queue(self, name: str) -> QueueWriter:
        """The queue with that name."""

    def check_lease(self, lease: Lease) -> None:
        """
        Make the transaction conditional on a lease: no other worker has taken the message since. See `Lease.epoch`.

        Raises:
            LeaseLostError: another worker has the message. Let it propagate, so that the transaction is rolled back.
        """

    def done(self, lease: Lease) -> None:
        """
        Remove a message that was taken from this store, in the same transaction as the changes of its work.

        Raises:
            LeaseLostError: another worker has the message. Let it propagate, so that the transaction is rolled back.
        """

    def give_back(self, lease: Lease, *, delay: float = 0.0) -> None:
        """See `Lease.give_back`; raises like `done`."""

    def dead_letter(self, lease: Lease, reason: str) -> None:
        """See `Lease.dead_letter`; raises like `done`."""

    def sql(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """
        Run an SQL statement in the same transaction, on the same file (SQLite only).

        Raises:
            UnsupportedError: the backend is not SQLite.
        """
