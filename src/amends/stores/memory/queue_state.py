# ruff: noqa: D102  (contract.py documents the methods)
"""The queue as plain data. No method waits, and every change that a transaction can make records how to undo it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass

from amends.stores.arguments import check_key, check_seconds, check_value
from amends.stores.clock import Clock
from amends.stores.contract import DeadMessage, Message, QueueSize
from amends.stores.errors import LeaseLostError
from amends.stores.taken import TakenMessage

__all__ = ["QueueState"]


@dataclass(slots=True)
class _StoredMessage:
    number: int
    key: str | None
    value: bytes
    due: float
    attempts: int = 0
    epoch: int = 0
    leased_until: float = 0.0
    held: bool = False
    """TakenMessage by the holder of `epoch` and not given back; True even if the lease has expired."""
    reason: str = ""


class QueueState:
    """
    Messages by number, a heap of waiting messages by due time, and a heap of leases by expiry.

    A change of a message leaves its old heap items in place; `take` compares each item with the message before using it.
    """

    def __init__(self, name: str, clock: Clock, undo: list[Callable[[], object]]) -> None:
        self.name = name
        self._messages: dict[int, _StoredMessage] = {}
        self._dead: dict[int, _StoredMessage] = {}
        self._keys: dict[str, int] = {}
        self._waiting: list[tuple[float, int]] = []
        self._leases: list[tuple[float, int]] = []
        self._numbers = itertools.count(1)
        self._clock = clock
        self._undo = undo

    def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return self.restore(value, key=key, delay=delay, attempts=0)

    def restore(self, value: bytes, *, key: str | None, delay: float, attempts: int) -> bool:
        value, due = check_value(value), self._clock.wall() + check_seconds(delay, "delay")
        if key is not None and check_key(key) in self._keys:
            return False
        message = _StoredMessage(next(self._numbers), key, value, due, attempts, attempts)
        self._messages[message.number] = message
        if key is not None:
            self._keys[key] = message.number
        heapq.heappush(self._waiting, (message.due, message.number))
        self._undo.append(lambda: self._remove(message))
        return True

    def _remove(self, message: _StoredMessage) -> None:
        del self._messages[message.number]
        if message.key is not None:
            del self._keys[message.key]

    def take(self, lease: float, max_attempts: int | None) -> TakenMessage | float | None:
        """Take the next message; or return in how many seconds one may be due, or None if only a put can add one."""
        now, steady = self._clock.wall(), self._clock.steady()
        while self._leases and self._leases[0][0] <= steady:
            until, number = heapq.heappop(self._leases)
            expired = self._messages.get(number)
            if expired is not None and expired.held and expired.leased_until == until:
                heapq.heappush(self._waiting, (expired.due, number))
        while self._waiting and self._waiting[0][0] <= now:
            due, number = heapq.heappop(self._waiting)
            found = self._messages.get(number)
            if found is None or found.due != due or (found.held and found.leased_until > steady):
                continue
            if max_attempts is not None and found.attempts >= max_attempts:
                self._move_to_dead(found, f"taken {found.attempts} times without being finished")
                continue
            found.attempts += 1
            found.epoch += 1
            self._hold(found, steady + lease)
            return TakenMessage(number, found.key, found.value, found.attempts, found.epoch)
        waits = [self._leases[0][0] - steady] if self._leases else []
        waits += [self._waiting[0][0] - now] if self._waiting else []
        return max(min(waits), 0.001) if waits else None

    def _hold(self, message: _StoredMessage, until: float) -> None:
        message.held = True
        message.leased_until = until
        heapq.heappush(self._leases, (until, message.number))

    def check_lease(self, number: int, epoch: int) -> None:
        self._held(number, epoch)

    def extend(self, number: int, epoch: int, lease: float) -> None:
        self._hold(self._held(number, epoch), self._clock.steady() + lease)

    def done(self, number: int, epoch: int) -> None:
        message = self._held(number, epoch)
        self._record_undo(message)
        self._remove(message)

    def give_back(self, number: int, epoch: int, delay: float) -> None:
        due = self._clock.wall() + check_seconds(delay, "delay")
        message = self._held(number, epoch)
        self._record_undo(message)
        message.held = False
        message.due = due
        heapq.heappush(self._waiting, (message.due, number))

    def dead_letter(self, number: int, epoch: int, reason: str) -> None:
        message = self._held(number, epoch)
        self._record_undo(message)
        self._move_to_dead(message, reason)

    def _move_to_dead(self, message: _StoredMessage, reason: str) -> None:
        self._remove(message)
        message.reason = reason
        self._dead[message.number] = message

    def _record_undo(self, message: _StoredMessage) -> None:
        """Record the undo step: hold the message again. `take` ignores heap items that no longer match."""
        due = message.due

        def hold_again() -> None:
            message.held, message.due = True, due
            self._dead.pop(message.number, None)
            self._messages[message.number] = message
            if message.key is not None:
                self._keys[message.key] = message.number

        self._undo.append(hold_again)

    def _held(self, number: int, epoch: int) -> _StoredMessage:
        message = self._messages.get(number)
        if message is None or message.epoch != epoch or not message.held:
            raise LeaseLostError(self.name, str(number), epoch)
        return message

    def size(self) -> QueueSize:
        messages = self.messages()
        leased = sum(message.leased for message in messages)
        delayed = sum(not message.leased and message.due_in > 0 for message in messages)
        return QueueSize(len(messages) - leased - delayed, delayed, leased, len(self._dead))

    def messages(self) -> list[Message]:
        now, steady = self._clock.wall(), self._clock.steady()
        return [
            Message(
                str(message.number),
                message.key,
                message.value,
                message.attempts,
                max(0.0, message.due - now),
                message.held and message.leased_until > steady,
            )
            for message in self._messages.values()
        ]

    def dead(self, limit: int) -> list[DeadMessage]:
        messages = itertools.islice(self._dead.values(), limit)
        return [
            DeadMessage(str(message.number), message.key, message.value, message.attempts, message.reason)
            for message in messages
        ]

    def restore_dead(self, letter: DeadMessage) -> None:
        message = _StoredMessage(
            next(self._numbers), letter.key, letter.value, 0.0, letter.attempts, letter.attempts
        )
        message.reason = letter.reason
        self._dead[message.number] = message

    def revive(self, id: str) -> bool:
        message = self._dead.get(int(id)) if id.isdecimal() else None
        if message is None or not self.put(message.value, key=message.key):
            return False
        del self._dead[message.number]
        return True

    def discard(self, id: str) -> bool:
        return id.isdecimal() and self._dead.pop(int(id), None) is not None
