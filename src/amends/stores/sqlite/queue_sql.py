# ruff: noqa: D102, S608  (what a method means is said in contract.py; only numbers of ours are written into statements)
"""The statements of a queue on SQLite: one row per task."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from amends.stores.arguments import check_key, check_seconds, check_value
from amends.stores.clock import Clock
from amends.stores.contract import DeadMessage, Message, QueueSize
from amends.stores.errors import LeaseLostError
from amends.stores.sqlite.access import NO_BOUND, Elsewhere
from amends.stores.sqlite.schema import DEAD, HELD, WAITING

__all__ = ["PAGE", "QueueRows", "Taken"]

PAGE = 256

# The tasks of dead workers first: they have waited longest.
_NEXT = f"""coalesce(
    (SELECT id FROM amends_tasks WHERE queue = :queue AND state = {HELD} AND at <= :steady ORDER BY at, id LIMIT 1),
    (SELECT id FROM amends_tasks WHERE queue = :queue AND state = {WAITING} AND at <= :now ORDER BY at, id LIMIT 1)
)"""
_TAKE = f"""
    UPDATE amends_tasks SET state = {HELD}, at = :until, attempts = attempts + 1, epoch = epoch + 1
    WHERE id = {_NEXT} AND attempts < :bound AND length(value) <= :room
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
    """
    One queue's statements, inside whatever transaction the connection is in.

    A task above `room` bytes is neither taken nor put.
    """

    def __init__(self, connection: sqlite3.Connection, clock: Clock, name: str, room: int = NO_BOUND) -> None:
        self._connection = connection
        self._clock = clock
        self._name = name
        self._room = room

    def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return self.restore(value, key=key, delay=delay, attempts=0)

    def restore(self, value: bytes, *, key: str | None, delay: float, attempts: int) -> bool:
        if len(value := check_value(value)) > self._room:
            raise Elsewhere
        if key is not None:
            check_key(key)
        due = self._clock.wall() + check_seconds(delay, "delay")
        cursor = self._connection.execute(
            "INSERT INTO amends_tasks (queue, state, at, attempts, epoch, key, value) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            (self._name, WAITING, due, attempts, attempts, key, value),
        )
        return cursor.rowcount == 1

    def take(self, lease: float, max_attempts: int | None) -> Taken | float | None:
        """The next task; or in how many seconds there may be one; or None when only a put can bring one."""
        bound = NO_BOUND if max_attempts is None else max_attempts
        now, steady = self._clock.wall(), self._clock.steady()
        found = {
            "queue": self._name,
            "now": now,
            "steady": steady,
            "until": steady + lease,
            "bound": bound,
            "room": self._room,
        }
        while True:
            rows = self._connection.execute(_TAKE, found).fetchall()
            if rows:
                return Taken(*rows[0])
            # Nothing is due; or the first that is has been taken too often, and has to go before the next is seen.
            if self._room != NO_BOUND:
                return self._none_due()
            if not self._connection.execute(_BURY_SPENT, found).rowcount:
                return self.next_in()

    def _none_due(self) -> float | None:
        wait = self.next_in()
        if wait == 0:
            raise Elsewhere
        return wait

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
            f"{change} WHERE id = ? AND queue = ? AND epoch = ? AND state = ?",
            (*parameters, number, self._name, epoch, HELD),
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

    def page(self, after: int) -> list[tuple[int, Message]]:
        now, steady = self._clock.wall(), self._clock.steady()
        rows = self._connection.execute(
            "SELECT id, key, value, attempts, state, at FROM amends_tasks "
            "WHERE id > ? AND queue = ? AND state < ? ORDER BY id LIMIT ?",
            (after, self._name, DEAD, PAGE),
        )
        return [
            (
                number,
                Message(
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

    def dead(self, limit: int) -> list[DeadMessage]:
        rows = self._connection.execute(
            "SELECT id, key, value, attempts, reason FROM amends_tasks WHERE queue = ? AND state = ? ORDER BY at LIMIT ?",
            (self._name, DEAD, limit),
        )
        return [DeadMessage(str(number), *rest) for number, *rest in rows]

    def restore_dead(self, letter: DeadMessage) -> None:
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
