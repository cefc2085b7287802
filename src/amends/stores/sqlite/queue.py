# ruff: noqa: D102  (contract.py documents the methods)
"""The queue on SQLite. Taking a message is one short transaction."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from amends.stores.arguments import check_key, check_limit, check_seconds, check_value
from amends.stores.contract import DeadMessage, Message, QueueSize
from amends.stores.sqlite.connections import Connections
from amends.stores.sqlite.queue_sql import PAGE, QueueRows
from amends.stores.taken import TakenLease, TakenMessage

__all__ = ["SqliteLease", "SqliteQueue"]

T = TypeVar("T")


class SqliteQueue:
    """See `contract.Queue`."""

    def __init__(self, connections: Connections, name: str, lease: float, max_attempts: int | None) -> None:
        self.connections = connections
        self.name = name
        self.lease = lease
        self._max_attempts = max_attempts

    def write(self, change: Callable[[QueueRows], T]) -> asyncio.Future[T]:
        """Run statements of this queue in the writer thread."""
        return self.connections.write(lambda c: change(self._on(c)))

    def _read(self, look: Callable[[QueueRows], T]) -> asyncio.Future[T]:
        return self.connections.read(lambda c: look(self._on(c)))

    def _on(self, connection: sqlite3.Connection) -> QueueRows:
        return QueueRows(connection, self.connections.clock, self.name)

    async def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return await self.restore(value, key=key, delay=delay, attempts=0)

    async def restore(
        self, value: bytes, *, key: str | None, delay: float, attempts: int, token: str | None = None
    ) -> bool:
        value = check_value(value)
        check_seconds(delay, "delay")
        if key is not None:
            check_key(key)
        return await self.write(lambda rows: rows.restore(value, key=key, delay=delay, attempts=attempts))

    async def take(self, *, wait: float | None = 0.0) -> SqliteLease | None:
        clock = self.connections.clock
        end = None if wait is None else clock.steady() + check_seconds(wait, "wait")
        while True:
            seen = self.connections.signal.count
            now = clock.steady()
            taken = await self._try()
            if isinstance(taken, TakenMessage):
                return SqliteLease(self, taken, now + self.lease)
            # Idle workers read without the write lock, and request it only if there is a message to take.
            while taken is None or taken > 0:
                left = None if end is None else end - clock.steady()
                if left is not None and left <= 0:
                    return None
                await self.connections.signal.wait(
                    seen, min((x for x in (left, taken) if x is not None), default=None)
                )
                seen = self.connections.signal.count
                taken = await self._read(QueueRows.next_in)

    async def _try(self) -> TakenMessage | float | None:
        future = self.write(lambda rows: rows.take(self.lease, self._max_attempts))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            # The thread may already have taken the message for this cancelled worker: put it back.
            future.add_done_callback(self._put_back)
            raise

    def _put_back(self, future: asyncio.Future[TakenMessage | float | None]) -> None:
        if future.cancelled() or future.exception() is not None or self.connections.closed:
            return
        taken = future.result()
        if isinstance(taken, TakenMessage):
            self.write(lambda rows: rows.untake(taken.number, taken.epoch))

    async def now(self) -> float:
        return self.connections.clock.wall()

    async def size(self) -> QueueSize:
        return await self._read(QueueRows.size)

    async def messages(self) -> AsyncIterator[Message]:
        after = 0
        while True:
            page = await self._page(after)
            for number, message in page:
                after = number
                yield message
            if len(page) < PAGE:
                return

    async def _page(self, after: int) -> list[tuple[int, Message]]:
        return await self._read(lambda rows: rows.page(after))

    async def dead(self, *, limit: int = 100) -> list[DeadMessage]:
        check_limit(limit)
        return await self._read(lambda rows: rows.dead(limit))

    async def revive(self, id: str) -> bool:
        return await self.write(lambda rows: rows.revive(id))

    async def restore_dead(self, letter: DeadMessage) -> None:
        await self.write(lambda rows: rows.restore_dead(letter))

    async def discard(self, id: str) -> bool:
        return await self.write(lambda rows: rows.discard(id))

    async def drop(self) -> None:
        await self.write(QueueRows.drop)


class SqliteLease(TakenLease):
    """See `contract.Lease`."""

    def __init__(self, queue: SqliteQueue, taken: TakenMessage, until: float) -> None:
        super().__init__(taken, until)
        self.queue = queue

    @property
    def expires_in(self) -> float:
        return max(0.0, self._until - self.queue.connections.clock.steady())

    async def extend(self) -> None:
        lease = self.queue.lease
        until = self.queue.connections.clock.steady() + lease
        await self._change(lambda rows: rows.extend(self.number, self.epoch, lease))
        self._until = until

    async def done(self) -> None:
        await self._change(lambda rows: rows.done(self.number, self.epoch))

    async def give_back(self, *, delay: float = 0.0) -> None:
        check_seconds(delay, "delay")
        await self._change(lambda rows: rows.give_back(self.number, self.epoch, delay))

    async def dead_letter(self, reason: str) -> None:
        await self._change(lambda rows: rows.dead_letter(self.number, self.epoch, reason))

    async def _change(self, change: Callable[[QueueRows], None]) -> None:
        await self.queue.write(change)
