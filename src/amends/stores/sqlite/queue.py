# ruff: noqa: D102, S608  (contract.py documents the methods; only our own numbers are written into statements)
"""The SQL statements of a queue: one row per message, in the table `amends_tasks`."""

from __future__ import annotations

import sqlite3

from amends.stores.arguments import check_key, check_seconds, check_stored, check_value
from amends.stores.clock import Clock
from amends.stores.contract import DeadMessage, Message, QueueSize
from amends.stores.errors import LeaseLostError
from amends.stores.rows import PAGE, TakenMessage
from amends.stores.sqlite.schema import DEAD, HELD, WAITING

__all__ = ["QueueRows"]

_UNLIMITED = 2**62

# Messages with an expired lease first: they have waited longest.
_NEXT = f"""coalesce(
    (SELECT id FROM amends_tasks WHERE queue = :queue AND state = {HELD} AND at <= :steady ORDER BY at, id LIMIT 1),
    (SELECT id FROM amends_tasks WHERE queue = :queue AND state = {WAITING} AND at <= :now ORDER BY at, id LIMIT 1)
)"""
_TAKE = f"""
    UPDATE amends_tasks SET state = {HELD}, at = :until, attempts = attempts + 1, epoch = epoch + 1
    WHERE id = {_NEXT} AND attempts < :bound
    RETURNING id, key, value, attempts, epoch
"""
_DEAD_LETTER_SPENT = f"""
    UPDATE amends_tasks SET state = {DEAD}, at = :now, reason = 'taken ' || attempts || ' times without being finished'
    WHERE id = {_NEXT} AND attempts >= :bound
"""


class QueueRows:
    """The statements of one queue, run in the connection's current transaction."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock, name: str, filled: set[str]) -> None:
        """
        Args:
            connection: runs the statements.
            clock: gives the time.
            name: the queue.
            filled: gets the name when the queue has a new message.

        """
        self._connection = connection
        self._clock = clock
        self._name = name
        self._filled = filled

    def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return self.restore(value, key=key, delay=delay, attempts=0)

    def restore(self, value: bytes, *, key: str | None, delay: float, attempts: int) -> bool:
        value = check_value(value)
        if key is not None:
            check_key(key)
        due = self._clock.wall() + check_seconds(delay, "delay")
        self._filled.add(self._name)
        cursor = self._connection.execute(
            "INSERT INTO amends_tasks (queue, state, at, attempts, epoch, key, value) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            (self._name, WAITING, due, attempts, attempts, key, value),
        )
        return cursor.rowcount == 1

    def take(self, lease: float, max_attempts: int | None) -> TakenMessage | float | None:
        """Take the next message; or return in how many seconds one may be due, or None if only a put can add one."""
        bound = _UNLIMITED if max_attempts is None else max_attempts
        now, steady = self._clock.wall(), self._clock.steady()
        parameters = {
            "queue": self._name,
            "now": now,
            "steady": steady,
            "until": steady + lease,
            "bound": bound,
        }
        while True:
            rows = self._connection.execute(_TAKE, parameters).fetchall()
            if rows:
                return TakenMessage(*rows[0])
            # No message is due, or the first due one was taken too often and must become a dead letter first.
            if not self._connection.execute(_DEAD_LETTER_SPENT, parameters).rowcount:
                return self.next_in()

    def next_in(self) -> float | None:
        """Seconds until a message can be taken; 0 if one can be taken now, None if there is none."""
        waits = []
        for state, now in ((HELD, self._clock.steady()), (WAITING, self._clock.wall())):
            row = self._connection.execute(
                "SELECT at FROM amends_tasks WHERE queue = ? AND state = ? ORDER BY at LIMIT 1",
                (self._name, state),
            ).fetchone()
            if row is not None:
                waits.append(max(0.0, row[0] - now))
        return min(waits, default=None)

    def now(self) -> float:
        return self._clock.wall()

    def untake(self, number: int, epoch: int) -> None:
        """Undo a take whose worker was cancelled before it received the message."""
        self._filled.add(self._name)
        self._connection.execute(
            "UPDATE amends_tasks SET state = ?, at = 0, attempts = attempts - 1 WHERE id = ? AND epoch = ? AND state = ?",
            (WAITING, number, epoch, HELD),
        )

    def check_lease(self, number: int, epoch: int) -> None:
        query = "SELECT 1 FROM amends_tasks WHERE id = ? AND queue = ? AND epoch = ? AND state = ?"
        if self._connection.execute(query, (number, self._name, epoch, HELD)).fetchone() is None:
            raise LeaseLostError(self._name, str(number), epoch)

    def extend(self, number: int, epoch: int, lease: float) -> None:
        self._held("UPDATE amends_tasks SET at = ?", (self._clock.steady() + lease,), number, epoch)

    def done(self, number: int, epoch: int) -> None:
        self._held("DELETE FROM amends_tasks", (), number, epoch)

    def give_back(self, number: int, epoch: int, delay: float) -> None:
        due = self._clock.wall() + check_seconds(delay, "delay")
        self._filled.add(self._name)
        self._held("UPDATE amends_tasks SET state = ?, at = ?", (WAITING, due), number, epoch)

    def dead_letter(self, number: int, epoch: int, reason: str) -> None:
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

    def page(self, after: int) -> list[Message]:
        now, steady = self._clock.wall(), self._clock.steady()
        rows = self._connection.execute(
            "SELECT id, key, value, attempts, state, at FROM amends_tasks "
            "WHERE id > ? AND queue = ? AND state < ? ORDER BY id LIMIT ?",
            (after, self._name, DEAD, PAGE),
        )
        return [
            Message(
                str(number),
                key,
                check_stored(value, "queue", self._name),
                attempts,
                max(0.0, at - now) if state == WAITING else 0.0,
                state == HELD and at > steady,
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
        self._filled.add(self._name)
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
