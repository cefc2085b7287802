"""The contract inside a transaction: the same meanings, without awaiting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from amends.stores.values import Bounds, Row

if TYPE_CHECKING:
    from amends.stores.contract import Lease

__all__ = ["LogWriter", "QueueWriter", "TableWriter", "Transaction"]


class LogWriter(Protocol):
    """A log inside a transaction; the same meanings as `Log`, without awaiting."""

    def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        """See `Log.append`."""
        ...

    def bounds(self) -> Bounds:
        """See `Log.bounds`; what the transaction itself appended counts."""
        ...


class TableWriter(Protocol):
    """A table inside a transaction; the same meanings as `Table`, without awaiting."""

    def get(self, key: str) -> Row | None:
        """See `Table.get`."""
        ...

    def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        """See `Table.put`."""
        ...

    def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        """See `Table.create`."""
        ...

    def delete(self, key: str, *, revision: int | None = None) -> bool:
        """See `Table.delete`."""
        ...


class QueueWriter(Protocol):
    """A queue inside a transaction; the same meanings as `Queue`, without awaiting."""

    def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        """See `Queue.put`."""
        ...


class Transaction(Protocol):
    """Everything done through it happens together, or not at all."""

    def log(self, name: str) -> LogWriter:
        """The log of that name."""
        ...

    def table(self, name: str) -> TableWriter:
        """The table of that name."""
        ...

    def queue(self, name: str) -> QueueWriter:
        """The queue of that name."""
        ...

    def done(self, lease: Lease) -> None:
        """
        Remove a task this store's queue gave you: together with what its work changed, or not at all.

        Raises:
            LeaseLostError: somebody else has taken it. Let it out, so that nothing of the transaction happens.
        """
        ...

    def give_back(self, lease: Lease, *, delay: float = 0.0) -> None:
        """See `Lease.give_back`; raises like `done`."""
        ...

    def bury(self, lease: Lease, reason: str) -> None:
        """See `Lease.bury`; raises like `done`."""
        ...

    def sql(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """
        Run a statement of your own in the same transaction, on the same file (SQLite only).

        Raises:
            UnsupportedError: the backend is not SQLite.
        """
        ...
