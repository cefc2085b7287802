# ruff: noqa: D102  (what a method means is said once, in contract.py)
"""The queue as plain data, changed without waiting; every change that a transaction can make notes how to undo it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass

from amends.stores.arguments import check_key, check_seconds, check_value
from amends.stores.clock import Clock
from amends.stores.contract import DeadMessage, Message, QueueSize
from amends.stores.errors import LeaseLostError

__all__ = ["QueueState", "Taken", "checked_put"]


@dataclass(slots=True)
class _Job:
    number: int
    key: str | None
    value: bytes
    due: float
    attempts: int = 0
    epoch: int = 0
    leased_until: float = 0.0
    held: bool = False
    """Taken, and neither given back nor taken by somebody else since; the lease may be over all the same."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a take found: the task's number and epoch, and what the worker needs."""

    number: int
    key: str | None
    value: bytes
    attempt: int
    epoch: int


class QueueState:
    """
    Jobs by number, a heap of waiting ones by their time, and a heap of leases by their end.

    A heap is not searched when a job changes: what it holds is compared with the job when it comes up.
    """

    def __init__(self, name: str, clock: Clock, undo: list[Callable[[], object]]) -> None:
        self.name = name
        self._jobs: dict[int, _Job] = {}
        self._dead: dict[int, _Job] = {}
        self._keys: dict[str, int] = {}
        self._waiting: list[tuple[float, int]] = []
        self._leases: list[tuple[float, int]] = []
        self._numbers = itertools.count(1)
        self._clock = clock
        self._undo = undo

    def put(self, value: bytes, *, key: str | None = None, delay: float = 0.0) -> bool:
        return self.restore(value, key=key, delay=delay, attempts=0)

    def restore(self, value: bytes, *, key: str | None, delay: float, attempts: int) -> bool:
        if key is not None and key in self._keys:
            return False
        job = _Job(next(self._numbers), key, value, self._clock.wall() + delay, attempts, attempts)
        self._jobs[job.number] = job
        if key is not None:
            self._keys[key] = job.number
        heapq.heappush(self._waiting, (job.due, job.number))
        self._undo.append(lambda: self._forget(job))
        return True

    def _forget(self, job: _Job) -> None:
        del self._jobs[job.number]
        if job.key is not None:
            del self._keys[job.key]

    def take(self, lease: float, max_attempts: int | None) -> Taken | float | None:
        """The next task; or in how many seconds there may be one; or None when only a put can bring one."""
        now, steady = self._clock.wall(), self._clock.steady()
        while self._leases and self._leases[0][0] <= steady:
            until, number = heapq.heappop(self._leases)
            over = self._jobs.get(number)
            if over is not None and over.held and over.leased_until == until:
                heapq.heappush(self._waiting, (over.due, number))
        while self._waiting and self._waiting[0][0] <= now:
            due, number = heapq.heappop(self._waiting)
            found = self._jobs.get(number)
            if found is None or found.due != due or (found.held and found.leased_until > steady):
                continue
            if max_attempts is not None and found.attempts >= max_attempts:
                self._bury(found, f"taken {found.attempts} times without being finished")
                continue
            found.attempts += 1
            found.epoch += 1
            self._hold(found, steady + lease)
            return Taken(number, found.key, found.value, found.attempts, found.epoch)
        waits = [self._leases[0][0] - steady] if self._leases else []
        waits += [self._waiting[0][0] - now] if self._waiting else []
        return max(min(waits), 0.001) if waits else None

    def _hold(self, job: _Job, until: float) -> None:
        job.held = True
        job.leased_until = until
        heapq.heappush(self._leases, (until, job.number))

    def extend(self, number: int, epoch: int, lease: float) -> None:
        self._hold(self._held(number, epoch), self._clock.steady() + lease)

    def done(self, number: int, epoch: int) -> None:
        job = self._held(number, epoch)
        self._remember(job)
        self._forget(job)

    def give_back(self, number: int, epoch: int, delay: float) -> None:
        job = self._held(number, epoch)
        self._remember(job)
        job.held = False
        job.due = self._clock.wall() + delay
        heapq.heappush(self._waiting, (job.due, number))

    def bury(self, number: int, epoch: int, reason: str) -> None:
        job = self._held(number, epoch)
        self._remember(job)
        self._bury(job, reason)

    def _bury(self, job: _Job, reason: str) -> None:
        self._forget(job)
        job.reason = reason
        self._dead[job.number] = job

    def _remember(self, job: _Job) -> None:
        """Undone, it is held again; what the heaps have of it meanwhile is compared when it comes up."""
        due = job.due

        def hold_again() -> None:
            job.held, job.due = True, due
            self._dead.pop(job.number, None)
            self._jobs[job.number] = job
            if job.key is not None:
                self._keys[job.key] = job.number

        self._undo.append(hold_again)

    def _held(self, number: int, epoch: int) -> _Job:
        job = self._jobs.get(number)
        if job is None or job.epoch != epoch or not job.held:
            raise LeaseLostError(self.name, str(number), epoch)
        return job

    def size(self) -> QueueSize:
        tasks = self.messages()
        leased = sum(task.leased for task in tasks)
        delayed = sum(not task.leased and task.due_in > 0 for task in tasks)
        return QueueSize(len(tasks) - leased - delayed, delayed, leased, len(self._dead))

    def messages(self) -> list[Message]:
        now, steady = self._clock.wall(), self._clock.steady()
        return [
            Message(
                str(job.number),
                job.key,
                job.value,
                job.attempts,
                max(0.0, job.due - now),
                job.held and job.leased_until > steady,
            )
            for job in self._jobs.values()
        ]

    def dead(self, limit: int) -> list[DeadMessage]:
        jobs = itertools.islice(self._dead.values(), limit)
        return [DeadMessage(str(job.number), job.key, job.value, job.attempts, job.reason) for job in jobs]

    def restore_dead(self, letter: DeadMessage) -> None:
        job = _Job(next(self._numbers), letter.key, letter.value, 0.0, letter.attempts, letter.attempts)
        job.reason = letter.reason
        self._dead[job.number] = job

    def revive(self, id: str) -> bool:
        job = self._dead.get(int(id)) if id.isdecimal() else None
        if job is None or not self.put(job.value, key=job.key):
            return False
        del self._dead[job.number]
        return True

    def discard(self, id: str) -> bool:
        return id.isdecimal() and self._dead.pop(int(id), None) is not None


def checked_put(state: QueueState, value: bytes, key: str | None, delay: float, attempts: int) -> bool:
    """Put what was checked at the door."""
    if key is not None:
        check_key(key)
    return state.restore(check_value(value), key=key, delay=check_seconds(delay, "delay"), attempts=attempts)
