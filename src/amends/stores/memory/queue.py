# ruff: noqa: D102  (contract.py documents the methods)
"""The memory backend's queue: the interface of `contract.Queue` over `QueueState`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from amends.stores.arguments import check_limit, check_seconds
from amends.stores.clock import Clock
from amends.stores.contract import DeadMessage, Message, QueueSize
from amends.stores.memory.queue_state import QueueState
from amends.stores.taken import TakenLease, TakenMessage

if TYPE_CHECKING:
    from amends.stores.memory.store import MemoryStore

__all__ = ["MemoryLease", "MemoryQueue"]


class MemoryQueue:
    """See `contract.Queue`."""

    def __init__(
        self, store: MemoryStore, clock: Clock, name: str, lease: float, max_attempts: int | None
    ) -> None:
        self._store = store
        self.name = name
        self.lease = lease
        self._max_attempts = max_attempts
        self.clock = clock

    def state(self) -> QueueState:
        return self._store.state().queue(self.name)

    def changed(self) -> None:
        self._store.changed()

    async def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return await self.restore(value, key=key, delay=delay, attempts=0)

    async def restore(
        self, value: bytes, *, key: str | None, delay: float, attempts: int, token: str | None = None
    ) -> bool:
        put = self.state().restore(value, key=key, delay=delay, attempts=attempts)
        self.changed()
        return put

    async def take(self, *, wait: float | None = 0.0) -> MemoryLease | None:
        end = None if wait is None else self.clock.steady() + check_seconds(wait, "wait")
        while True:
            seen = self._store.signal.count
            now = self.clock.steady()
            taken = self.state().take(self.lease, self._max_attempts)
            if isinstance(taken, TakenMessage):
                return MemoryLease(self, taken, now + self.lease)
            left = None if end is None else end - now
            if left is not None and left <= 0:
                return None
            await self._store.signal.wait(
                seen, min((x for x in (left, taken) if x is not None), default=None)
            )

    async def size(self) -> QueueSize:
        return self.state().size()

    async def now(self) -> float:
        return self._store.state().clock.wall()

    async def messages(self) -> AsyncIterator[Message]:
        for message in self.state().messages():
            yield message

    async def dead(self, *, limit: int = 100) -> list[DeadMessage]:
        return self.state().dead(check_limit(limit))

    async def revive(self, id: str) -> bool:
        revived = self.state().revive(id)
        self.changed()
        return revived

    async def restore_dead(self, letter: DeadMessage) -> None:
        self.state().restore_dead(letter)

    async def discard(self, id: str) -> bool:
        return self.state().discard(id)

    async def drop(self) -> None:
        self._store.state().queues.pop(self.name, None)


class MemoryLease(TakenLease):
    """See `contract.Lease`."""

    def __init__(self, queue: MemoryQueue, taken: TakenMessage, until: float) -> None:
        super().__init__(taken, until)
        self.queue = queue

    @property
    def expires_in(self) -> float:
        return max(0.0, self._until - self.queue.clock.steady())

    async def extend(self) -> None:
        until = self.queue.clock.steady() + self.queue.lease
        self.queue.state().extend(self.number, self.epoch, self.queue.lease)
        self._until = until

    async def done(self) -> None:
        self.queue.state().done(self.number, self.epoch)
        self.queue.changed()

    async def give_back(self, *, delay: float = 0.0) -> None:
        self.queue.state().give_back(self.number, self.epoch, delay)
        self.queue.changed()

    async def dead_letter(self, reason: str) -> None:
        self.queue.state().dead_letter(self.number, self.epoch, reason)
        self.queue.changed()
