# ruff: noqa: D102  (contract.py documents the methods)
"""The queue on SQLite. Taking a message is one short transaction."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from amends.stores.arguments import check_key, check_limit, check_seconds, check_value
from amends.stores.contract import DeadMessage, Message, QueueSize
from amends.stores.sqlite.access import INLINE_BYTES, Rows
from amends.stores.sqlite.queue_sql import PAGE, QueueRows, TakenMessage
from amends.stores.sqlite.threads import Pending

if TYPE_CHECKING:
    from amends.stores.sqlite.store import SqliteStore

__all__ = ["SqliteLease", "SqliteQueue"]


class SqliteQueue:
    """See `contract.Queue`."""

    def __init__(self, store: SqliteStore, name: str, lease: float, max_attempts: int | None) -> None:
        self.access = store.access
        self.clock = store.clock
        self.name = name
        self.lease = lease
        self._signal = store.signal
        self._max_attempts = max_attempts
        self.rows = Rows(store.access, lambda c, limit: QueueRows(c, store.clock, name, limit))

    async def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return await self.restore(value, key=key, delay=delay, attempts=0)

    async def restore(
        self, value: bytes, *, key: str | None, delay: float, attempts: int, token: str | None = None
    ) -> bool:
        value = check_value(value)
        check_seconds(delay, "delay")
        if key is not None:
            check_key(key)
        return await self.access.write(
            self.rows,
            lambda rows: rows.restore(value, key=key, delay=delay, attempts=attempts),
            alone=True,
        )

    async def take(self, *, wait: float | None = 0.0) -> SqliteLease | None:
        clock = self.clock
        end = None if wait is None else clock.steady() + check_seconds(wait, "wait")
        while True:
            seen = self._signal.count
            now = clock.steady()
            taken = await self._try()
            if isinstance(taken, TakenMessage):
                return SqliteLease(self, taken, now + self.lease)
            # Idle workers read without the write lock, and request it only if there is a message to take.
            while taken is None or taken > 0:
                left = None if end is None else end - clock.steady()
                if left is not None and left <= 0:
                    return None
                await self._signal.wait(seen, min((x for x in (left, taken) if x is not None), default=None))
                seen = self._signal.count
                taken = await self.access.read(self.rows, QueueRows.next_in)

    async def _try(self) -> TakenMessage | float | None:
        try:
            return self.access.write_now(self.rows, self._take, alone=True)
        except Pending as pending:
            future: asyncio.Future[TakenMessage | float | None] = pending.future
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            # The thread may already have taken the message for this cancelled worker: put it back.
            future.add_done_callback(self._put_back)
            raise

    def _take(self, rows: QueueRows) -> TakenMessage | float | None:
        return rows.take(self.lease, self._max_attempts)

    def _put_back(self, future: asyncio.Future[TakenMessage | float | None]) -> None:
        if future.cancelled() or future.exception() is not None or self.access.closed:
            return
        taken = future.result()
        if isinstance(taken, TakenMessage):
            self.access.submit(self.rows.on(lambda rows: rows.untake(taken.number, taken.epoch)))

    async def now(self) -> float:
        return self.clock.wall()

    async def size(self) -> QueueSize:
        return await self.access.read_in_thread(self.rows.on(QueueRows.size))

    async def messages(self) -> AsyncIterator[Message]:
        after = 0
        while True:
            page = await self.access.read_in_thread(self._page(after))
            for number, message in page:
                after = number
                yield message
            if len(page) < PAGE:
                return

    def _page(self, after: int) -> Callable[[sqlite3.Connection], list[tuple[int, Message]]]:
        return self.rows.on(lambda rows: rows.page(after))

    async def dead(self, *, limit: int = 100) -> list[DeadMessage]:
        check_limit(limit)
        return await self.access.read_in_thread(self.rows.on(lambda rows: rows.dead(limit)))

    async def revive(self, id: str) -> bool:
        return await self.access.write_in_thread(self.rows.on(lambda rows: rows.revive(id)))

    async def restore_dead(self, letter: DeadMessage) -> None:
        await self.access.write_in_thread(self.rows.on(lambda rows: rows.restore_dead(letter)))

    async def discard(self, id: str) -> bool:
        return await self.access.write_in_thread(self.rows.on(lambda rows: rows.discard(id)))

    async def drop(self) -> None:
        await self.access.write_in_thread(self.rows.on(QueueRows.drop))


class SqliteLease:
    """See `contract.Lease`."""

    def __init__(self, queue: SqliteQueue, taken: TakenMessage, until: float) -> None:
        self.queue = queue
        self.number = taken.number
        self._until = until
        self.id = str(taken.number)
        self.key = taken.key
        self.value = taken.value
        self.attempt = taken.attempt
        self.epoch = taken.epoch

    @property
    def expires_in(self) -> float:
        return max(0.0, self._until - self.queue.clock.steady())

    async def extend(self) -> None:
        lease = self.queue.lease
        until = self.queue.clock.steady() + lease
        await self._change(lambda rows: rows.extend(self.number, self.epoch, lease))
        self._until = until

    async def done(self) -> None:
        await self._change(lambda rows: rows.done(self.number, self.epoch))

    async def give_back(self, *, delay: float = 0.0) -> None:
        check_seconds(delay, "delay")
        await self._change(lambda rows: rows.give_back(self.number, self.epoch, delay))

    async def dead_letter(self, reason: str) -> None:
        await self._change(lambda rows: rows.dead_letter(self.number, self.epoch, reason))

    async def _change(self, work: Callable[[QueueRows], None]) -> None:
        if len(self.value) > INLINE_BYTES:
            await self.queue.access.write_in_thread(self.queue.rows.on(work), alone=True)
        else:
            await self.queue.access.write(self.queue.rows, work, alone=True)
