# ruff: noqa: D102  (contract.py documents the methods)
"""A transaction on a memory store; if it raises, the state undoes its changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amends.stores.arguments import check_name
from amends.stores.contract import Lease
from amends.stores.errors import UnsupportedError
from amends.stores.memory.queue import MemoryLease
from amends.stores.memory.queue_state import QueueState
from amends.stores.memory.state import LogState, State, TableState

__all__ = ["MemoryTransaction"]


class MemoryTransaction:
    """See `contract.Transaction`."""

    def __init__(self, state: State) -> None:
        self._state = state

    def log(self, name: str) -> LogState:
        return self._state.logs.get(name) or self._state.log(check_name(name, "log"))

    def table(self, name: str) -> TableState:
        return self._state.tables.get(name) or self._state.table(check_name(name, "table"))

    def queue(self, name: str) -> QueueState:
        return self._state.queue(check_name(name, "queue"))

    def check_lease(self, lease: Lease) -> None:
        held, queue = self._held(lease)
        queue.check_lease(held.number, held.epoch)

    def done(self, lease: Lease) -> None:
        held, queue = self._held(lease)
        queue.done(held.number, held.epoch)

    def give_back(self, lease: Lease, *, delay: float = 0.0) -> None:
        held, queue = self._held(lease)
        queue.give_back(held.number, held.epoch, delay)

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
