# ruff: noqa: D102  (what a method means is said once, in contract.py)
"""The queue on SQLite: a take is one short transaction."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from amends.stores.arguments import check_key, check_limit, check_seconds, check_value
from amends.stores.contract import DeadMessage, Message, QueueSize
from amends.stores.sqlite.access import ROOM, Rows
from amends.stores.sqlite.queue_sql import PAGE, QueueRows, Taken
from amends.stores.sqlite.threads import Later

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
        self.rows = Rows(store.access, lambda c, room: QueueRows(c, store.clock, name, room))

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
            asked = clock.steady()
            found = await self._try()
            if isinstance(found, Taken):
                return SqliteLease(self, found, asked + self.lease)
            # Idle workers look without asking for the write lock, and ask only when there is something to take.
            while found is None or found > 0:
                left = None if end is None else end - clock.steady()
                if left is not None and left <= 0:
                    return None
                await self._signal.wait(seen, min((x for x in (left, found) if x is not None), default=None))
                seen = self._signal.count
                found = await self.access.read(self.rows, QueueRows.next_in)

    async def _try(self) -> Taken | float | None:
        try:
            return self.access.write_now(self.rows, self._take, alone=True)
        except Later as later:
            future: asyncio.Future[Taken | float | None] = later.future
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            # The thread may already hold the task for a worker that is gone: have it put back.
            future.add_done_callback(self._put_back)
            raise

    def _take(self, rows: QueueRows) -> Taken | float | None:
        return rows.take(self.lease, self._max_attempts)

    def _put_back(self, future: asyncio.Future[Taken | float | None]) -> None:
        if future.cancelled() or future.exception() is not None or self.access.closed:
            return
        found = future.result()
        if isinstance(found, Taken):
            self.access.submit(self.rows.on(lambda rows: rows.untake(found.number, found.epoch)))

    async def size(self) -> QueueSize:
        return await self.access.read_much(self.rows.on(QueueRows.size))

    async def messages(self) -> AsyncIterator[Message]:
        after = 0
        while True:
            page = await self.access.read_much(self._page(after))
            for number, task in page:
                after = number
                yield task
            if len(page) < PAGE:
                return

    def _page(self, after: int) -> Callable[[sqlite3.Connection], list[tuple[int, Message]]]:
        return self.rows.on(lambda rows: rows.page(after))

    async def dead(self, *, limit: int = 100) -> list[DeadMessage]:
        check_limit(limit)
        return await self.access.read_much(self.rows.on(lambda rows: rows.dead(limit)))

    async def revive(self, id: str) -> bool:
        return await self.access.write_elsewhere(self.rows.on(lambda rows: rows.revive(id)))

    async def restore_dead(self, letter: DeadMessage) -> None:
        await self.access.write_elsewhere(self.rows.on(lambda rows: rows.restore_dead(letter)))

    async def discard(self, id: str) -> bool:
        return await self.access.write_elsewhere(self.rows.on(lambda rows: rows.discard(id)))

    async def drop(self) -> None:
        await self.access.write_elsewhere(self.rows.on(QueueRows.drop))


class SqliteLease:
    """See `contract.Lease`."""

    def __init__(self, queue: SqliteQueue, taken: Taken, until: float) -> None:
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

    async def bury(self, reason: str) -> None:
        await self._change(lambda rows: rows.bury(self.number, self.epoch, reason))

    async def _change(self, ask: Callable[[QueueRows], None]) -> None:
        if len(self.value) > ROOM:
            await self.queue.access.write_elsewhere(self.queue.rows.on(ask), alone=True)
        else:
            await self.queue.access.write(self.queue.rows, ask, alone=True)
