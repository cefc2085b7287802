# ruff: noqa: D102  (contract.py documents the methods)
"""A transaction on a memory store; if it raises, the state undoes its changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amends.stores.arguments import check_key, check_name, check_seconds, check_value
from amends.stores.contract import Bounds, Lease, Row
from amends.stores.errors import UnsupportedError
from amends.stores.memory.queue import MemoryLease
from amends.stores.memory.queue_state import QueueState, checked_put
from amends.stores.memory.state import LogState, State, TableState, checked_append

__all__ = ["MemoryTableWriter", "MemoryTransaction"]


class _LogWriter:
    def __init__(self, state: LogState) -> None:
        self._state = state

    def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        return checked_append(self._state, value, dedupe, last)

    def bounds(self) -> Bounds:
        return self._state.bounds()


class MemoryTableWriter:
    """See `contract.TableWriter`."""

    def __init__(self, state: TableState) -> None:
        self._state = state

    def get(self, key: str) -> Row | None:
        return self._state.get(check_key(key))

    def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        if expires_in is not None:
            check_seconds(expires_in, "expires_in")
        return self._state.put(check_key(key), check_value(value), revision=revision, expires_in=expires_in)

    def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        return self.put(key, value, revision=0, expires_in=expires_in)

    def delete(self, key: str, *, revision: int | None = None) -> bool:
        return self._state.delete(check_key(key), revision=revision)


class _QueueWriter:
    def __init__(self, state: QueueState) -> None:
        self._state = state

    def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return checked_put(self._state, value, key, delay, 0)


class MemoryTransaction:
    """See `contract.Transaction`."""

    def __init__(self, state: State) -> None:
        self._state = state

    def log(self, name: str) -> _LogWriter:
        return _LogWriter(self._state.log(check_name(name, "log")))

    def table(self, name: str) -> MemoryTableWriter:
        return MemoryTableWriter(self._state.table(check_name(name, "table")))

    def queue(self, name: str) -> _QueueWriter:
        return _QueueWriter(self._state.queue(check_name(name, "queue")))

    def check_lease(self, lease: Lease) -> None:
        held, queue = self._held(lease)
        queue.check_lease(held.number, held.epoch)

    def done(self, lease: Lease) -> None:
        held, queue = self._held(lease)
        queue.done(held.number, held.epoch)

    def give_back(self, lease: Lease, *, delay: float = 0.0) -> None:
        held, queue = self._held(lease)
        queue.give_back(held.number, held.epoch, check_seconds(delay, "delay"))

    def dead_letter(self, lease: Lease, reason: str) -> None:
        held, queue = self._held(lease)
        queue.dead_letter(held.number, held.epoch, reason)

    def _held(self, lease: Lease) -> tuple[MemoryLease, QueueState]:
        if not isinstance(lease, MemoryLease) or lease.queue.state() is not self._state.queues.get(
            lease.queue.name
        ):
            raise ValueError("the lease belongs to another store: end it in a transaction of that store")
        return lease, lease.queue.state()

    def sql(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        raise UnsupportedError(
            "a memory store has no SQL: open a sqlite: store to run statements in its transaction"
        )
