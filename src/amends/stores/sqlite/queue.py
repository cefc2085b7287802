# ruff: noqa: D102, S608  (what a method means is said in contract.py; only numbers of ours are written into statements)
"""The queue on SQLite: one row per task; a take is one short transaction."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from amends.stores.arguments import check_key, check_limit, check_seconds, check_value
from amends.stores.clock import Clock
from amends.stores.contract import DeadTask, QueueSize, Task
from amends.stores.errors import LeaseLostError
from amends.stores.sqlite.schema import DEAD, HELD, WAITING

if TYPE_CHECKING:
    from amends.stores.sqlite.store import SqliteStore

__all__ = ["QueueRows", "SqliteLease", "SqliteQueue"]

_PAGE = 256
_NO_BOUND = 2**62

# The tasks of dead workers first: they have waited longest.
_NEXT = f"""coalesce(
    (SELECT id FROM amends_tasks WHERE queue = :queue AND state = {HELD} AND at <= :steady ORDER BY at, id LIMIT 1),
    (SELECT id FROM amends_tasks WHERE queue = :queue AND state = {WAITING} AND at <= :now ORDER BY at, id LIMIT 1)
)"""
_TAKE = f"""
    UPDATE amends_tasks SET state = {HELD}, at = :until, attempts = attempts + 1, epoch = epoch + 1
    WHERE id = {_NEXT} AND attempts < :bound
    RETURNING id, key, value, attempts, epoch
"""
_BURY_SPENT = f"""
    UPDATE amends_tasks SET state = {DEAD}, at = :now, reason = 'taken ' || attempts || ' times without being finished'
    WHERE id = {_NEXT} AND attempts >= :bound
"""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a take found."""

    number: int
    key: str | None
    value: bytes
    attempt: int
    epoch: int


class QueueRows:
    """One queue's statements, inside whatever transaction the connection is in."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock, name: str) -> None:
        self._connection = connection
        self._clock = clock
        self._name = name

    def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return self.restore(value, key=key, delay=delay, attempts=0)

    def restore(self, value: bytes, *, key: str | None, delay: float, attempts: int) -> bool:
        if key is not None:
            check_key(key)
        due = self._clock.wall() + check_seconds(delay, "delay")
        cursor = self._connection.execute(
            "INSERT INTO amends_tasks (queue, state, at, attempts, epoch, key, value) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            (self._name, WAITING, due, attempts, attempts, key, check_value(value)),
        )
        return cursor.rowcount == 1

    def take(self, lease: float, max_attempts: int | None) -> Taken | float | None:
        """The next task; or in how many seconds there may be one; or None when only a put can bring one."""
        bound = _NO_BOUND if max_attempts is None else max_attempts
        now, steady = self._clock.wall(), self._clock.steady()
        due = {"queue": self._name, "now": now, "steady": steady}
        while True:
            rows = self._connection.execute(
                _TAKE, {**due, "until": steady + lease, "bound": bound}
            ).fetchall()
            if rows:
                return Taken(*rows[0])
            # Nothing is due; or the first that is has been taken too often, and has to go before the next is seen.
            if not self._connection.execute(_BURY_SPENT, {**due, "bound": bound}).rowcount:
                return self.next_in()

    def next_in(self) -> float | None:
        """Seconds until a task may be taken, 0 when one may be now, None when there is none."""
        waits = []
        for state, now in ((HELD, self._clock.steady()), (WAITING, self._clock.wall())):
            row = self._connection.execute(
                "SELECT at FROM amends_tasks WHERE queue = ? AND state = ? ORDER BY at LIMIT 1",
                (self._name, state),
            ).fetchone()
            if row is not None:
                waits.append(max(0.0, row[0] - now))
        return min(waits, default=None)

    def untake(self, number: int, epoch: int) -> None:
        """The worker was cancelled before it got the task: as if it had never asked."""
        self._connection.execute(
            "UPDATE amends_tasks SET state = ?, at = 0, attempts = attempts - 1 WHERE id = ? AND epoch = ? AND state = ?",
            (WAITING, number, epoch, HELD),
        )

    def extend(self, number: int, epoch: int, lease: float) -> None:
        self._held("UPDATE amends_tasks SET at = ?", (self._clock.steady() + lease,), number, epoch)

    def done(self, number: int, epoch: int) -> None:
        self._held("DELETE FROM amends_tasks", (), number, epoch)

    def give_back(self, number: int, epoch: int, delay: float) -> None:
        due = self._clock.wall() + delay
        self._held("UPDATE amends_tasks SET state = ?, at = ?", (WAITING, due), number, epoch)

    def bury(self, number: int, epoch: int, reason: str) -> None:
        now = self._clock.wall()
        self._held(
            "UPDATE amends_tasks SET state = ?, at = ?, reason = ?", (DEAD, now, reason), number, epoch
        )

    def _held(self, change: str, parameters: tuple[object, ...], number: int, epoch: int) -> None:
        cursor = self._connection.execute(
            f"{change} WHERE id = ? AND epoch = ? AND state = ?", (*parameters, number, epoch, HELD)
        )
        if cursor.rowcount != 1:
            raise LeaseLostError(self._name, str(number), epoch)

    def size(self) -> QueueSize:
        def count(condition: str, *parameters: float) -> int:
            statement = f"SELECT count(*) FROM amends_tasks WHERE queue = ? AND {condition}"
            return int(self._connection.execute(statement, (self._name, *parameters)).fetchone()[0])

        now, steady = self._clock.wall(), self._clock.steady()
        overdue = count("state = ? AND at <= ?", HELD, steady)
        return QueueSize(
            ready=count("state = ? AND at <= ?", WAITING, now) + overdue,
            delayed=count("state = ? AND at > ?", WAITING, now),
            leased=count("state = ?", HELD) - overdue,
            dead=count("state = ?", DEAD),
        )

    def page(self, after: int) -> list[tuple[int, Task]]:
        now, steady = self._clock.wall(), self._clock.steady()
        rows = self._connection.execute(
            "SELECT id, key, value, attempts, state, at FROM amends_tasks "
            "WHERE id > ? AND queue = ? AND state < ? ORDER BY id LIMIT ?",
            (after, self._name, DEAD, _PAGE),
        )
        return [
            (
                number,
                Task(
                    str(number),
                    key,
                    value,
                    attempts,
                    max(0.0, at - now) if state == WAITING else 0.0,
                    state == HELD and at > steady,
                ),
            )
            for number, key, value, attempts, state, at in rows
        ]

    def dead(self, limit: int) -> list[DeadTask]:
        rows = self._connection.execute(
            "SELECT id, key, value, attempts, reason FROM amends_tasks WHERE queue = ? AND state = ? ORDER BY at LIMIT ?",
            (self._name, DEAD, limit),
        )
        return [DeadTask(str(number), *rest) for number, *rest in rows]

    def restore_dead(self, letter: DeadTask) -> None:
        self._connection.execute(
            "INSERT INTO amends_tasks (queue, state, at, attempts, epoch, key, reason, value) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self._name,
                DEAD,
                self._clock.wall(),
                letter.attempts,
                letter.attempts,
                letter.key,
                letter.reason,
                letter.value,
            ),
        )

    def revive(self, id: str) -> bool:
        cursor = self._connection.execute(
            "UPDATE OR IGNORE amends_tasks SET state = ?, at = ?, attempts = 0, reason = NULL "
            "WHERE id = ? AND queue = ? AND state = ?",
            (WAITING, self._clock.wall(), _number(id), self._name, DEAD),
        )
        return cursor.rowcount == 1

    def discard(self, id: str) -> bool:
        cursor = self._connection.execute(
            "DELETE FROM amends_tasks WHERE id = ? AND queue = ? AND state = ?",
            (_number(id), self._name, DEAD),
        )
        return cursor.rowcount == 1

    def drop(self) -> None:
        self._connection.execute("DELETE FROM amends_tasks WHERE queue = ?", (self._name,))


def _number(id: str) -> int:
    return int(id) if id.isdecimal() and len(id) < 19 else -1


class SqliteQueue:
    """See `contract.Queue`."""

    def __init__(self, store: SqliteStore, name: str, lease: float, max_attempts: int | None) -> None:
        self.store = store
        self.name = name
        self.lease = lease
        self._max_attempts = max_attempts

    def rows(self, connection: sqlite3.Connection) -> QueueRows:
        """This queue's statements on a connection."""
        return QueueRows(connection, self.store.clock, self.name)

    async def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return await self.restore(value, key=key, delay=delay, attempts=0)

    async def restore(
        self, value: bytes, *, key: str | None, delay: float, attempts: int, token: str | None = None
    ) -> bool:
        value = check_value(value)
        check_seconds(delay, "delay")
        if key is not None:
            check_key(key)
        return await self.store.write(
            lambda c: self.rows(c).restore(value, key=key, delay=delay, attempts=attempts)
        )

    async def take(self, *, wait: float | None = 0.0) -> SqliteLease | None:
        clock = self.store.clock
        end = None if wait is None else clock.steady() + check_seconds(wait, "wait")
        while True:
            seen = self.store.signal.count
            asked = clock.steady()
            found = await self._try()
            if isinstance(found, Taken):
                return SqliteLease(self, found, asked + self.lease)
            # Idle workers look without asking for the write lock, and ask only when there is something to take.
            while found is None or found > 0:
                left = None if end is None else end - clock.steady()
                if left is not None and left <= 0:
                    return None
                await self.store.signal.wait(
                    seen, min((x for x in (left, found) if x is not None), default=None)
                )
                seen = self.store.signal.count
                found = await self.store.read(lambda c: self.rows(c).next_in())

    async def _try(self) -> Taken | float | None:
        future = self.store.write(lambda c: self.rows(c).take(self.lease, self._max_attempts), alone=True)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            # The thread may already hold the task for a worker that is gone: have it put back.
            future.add_done_callback(self._put_back)
            raise

    def _put_back(self, future: asyncio.Future[Taken | float | None]) -> None:
        if future.cancelled() or future.exception() is not None or self.store.closed:
            return
        found = future.result()
        if isinstance(found, Taken):
            self.store.write(lambda c: self.rows(c).untake(found.number, found.epoch))

    async def size(self) -> QueueSize:
        return await self.store.read(lambda c: self.rows(c).size())

    def _page(self, after: int, connection: sqlite3.Connection) -> list[tuple[int, Task]]:
        return self.rows(connection).page(after)

    async def tasks(self) -> AsyncIterator[Task]:
        after = 0
        while True:
            page = await self.store.read(partial(self._page, after))
            for number, task in page:
                after = number
                yield task
            if len(page) < _PAGE:
                return

    async def dead(self, *, limit: int = 100) -> list[DeadTask]:
        check_limit(limit)
        return await self.store.read(lambda c: self.rows(c).dead(limit))

    async def revive(self, id: str) -> bool:
        return await self.store.write(lambda c: self.rows(c).revive(id))

    async def restore_dead(self, letter: DeadTask) -> None:
        await self.store.write(lambda c: self.rows(c).restore_dead(letter))

    async def discard(self, id: str) -> bool:
        return await self.store.write(lambda c: self.rows(c).discard(id))

    async def drop(self) -> None:
        await self.store.write(lambda c: self.rows(c).drop())


class SqliteLease:
    """See `contract.Lease`."""

    def __init__(self, queue: SqliteQueue, taken: Taken, until: float) -> None:
        self._queue = queue
        self._store = queue.store
        self._number = taken.number
        self._until = until
        self.id = str(taken.number)
        self.key = taken.key
        self.value = taken.value
        self.attempt = taken.attempt
        self.epoch = taken.epoch

    @property
    def expires_in(self) -> float:
        return max(0.0, self._until - self._store.clock.steady())

    async def extend(self) -> None:
        lease = self._queue.lease
        until = self._store.clock.steady() + lease
        await self._store.write(
            lambda c: self._queue.rows(c).extend(self._number, self.epoch, lease), alone=True
        )
        self._until = until

    async def done(self) -> None:
        await self._store.write(lambda c: self._queue.rows(c).done(self._number, self.epoch), alone=True)

    async def give_back(self, *, delay: float = 0.0) -> None:
        check_seconds(delay, "delay")
        await self._store.write(
            lambda c: self._queue.rows(c).give_back(self._number, self.epoch, delay), alone=True
        )

    async def bury(self, reason: str) -> None:
        await self._store.write(
            lambda c: self._queue.rows(c).bury(self._number, self.epoch, reason), alone=True
        )
