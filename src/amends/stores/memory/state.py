# ruff: noqa: D102  (what a method means is said once, in contract.py)
"""
The three primitives as plain data, changed without waiting: what the other backends are compared with.

Every change notes how to undo it, so that a transaction that raises leaves nothing behind.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from amends.stores.clock import Clock
from amends.stores.contract import Bounds, DeadTask, Entry, QueueSize, Row, Task
from amends.stores.errors import ConflictError, LeaseLostError, TrimmedError

__all__ = ["LogState", "QueueState", "State", "TableState", "Taken"]

Undo = list[Callable[[], object]]


class LogState:
    """Entries by number; a dictionary, because trimming takes them from the front."""

    def __init__(self, name: str, undo: Undo) -> None:
        self.name = name
        self.first = 1
        self.last = 0
        self._entries: dict[int, Entry] = {}
        self._ids: dict[str, int] = {}
        self._undo = undo

    def append(self, value: bytes, *, dedupe: str | None = None, last: int | None = None) -> int:
        if dedupe is not None and dedupe in self._ids:
            return self._ids[dedupe]
        if last is not None and last != self.last:
            raise ConflictError(f"log {self.name!r}", last, self.last)
        self.last += 1
        self._entries[self.last] = Entry(self.last, value, dedupe)
        if dedupe is not None:
            self._ids[dedupe] = self.last
        self._undo.append(self._take_back)
        return self.last

    def _take_back(self) -> None:
        entry = self._entries.pop(self.last)
        if entry.dedupe is not None:
            del self._ids[entry.dedupe]
        self.last -= 1

    def read(self, start: int | None, limit: int) -> list[Entry]:
        if start is None:
            start = self.first
        elif start < self.first:
            raise TrimmedError(self.name, start, self.first)
        return [self._entries[seq] for seq in range(start, min(self.last, start + limit - 1) + 1)]

    def bounds(self) -> Bounds:
        return Bounds(self.first, self.last)

    def trim(self, before: int) -> int:
        for seq in range(self.first, min(before, self.last + 1)):
            entry = self._entries.pop(seq)
            if entry.dedupe is not None:
                del self._ids[entry.dedupe]
            self.first = seq + 1
        return self.first


@dataclass(slots=True)
class _Cell:
    value: bytes
    revision: int
    expires: float | None


class TableState:
    """Cells by key; expired ones are as good as absent, and removed when met."""

    def __init__(self, name: str, clock: Clock, undo: Undo) -> None:
        self.name = name
        self._cells: dict[str, _Cell] = {}
        self._revisions = itertools.count(1)
        self._clock = clock
        self._undo = undo

    def get(self, key: str) -> Row | None:
        cell = self._cells.get(key)
        if cell is None:
            return None
        if cell.expires is None:
            return Row(key, cell.value, cell.revision)
        left = cell.expires - self._clock.wall()
        if left <= 0:
            del self._cells[key]
            return None
        return Row(key, cell.value, cell.revision, left)

    def put(
        self, key: str, value: bytes, *, revision: int | None = None, expires_in: float | None = None
    ) -> int:
        self._expect(key, revision)
        self._remember(key)
        number = next(self._revisions)
        expires = None if expires_in is None else self._clock.wall() + expires_in
        self._cells[key] = _Cell(value, number, expires)
        return number

    def create(self, key: str, value: bytes, *, expires_in: float | None = None) -> int:
        return self.put(key, value, revision=0, expires_in=expires_in)

    def delete(self, key: str, *, revision: int | None = None) -> bool:
        self._expect(key, revision)
        if self.get(key) is None:
            return False
        self._remember(key)
        del self._cells[key]
        return True

    def scan(self, prefix: str) -> list[Row]:
        rows = (self.get(key) for key in sorted(self._cells) if key.startswith(prefix))
        return [row for row in rows if row is not None]

    def _expect(self, key: str, revision: int | None) -> None:
        if revision is not None:
            row = self.get(key)
            actual = 0 if row is None else row.revision
            if actual != revision:
                raise ConflictError(f"key {key!r} of table {self.name!r}", revision, actual)

    def _remember(self, key: str) -> None:
        before = self._cells.get(key)
        if before is None:
            self._undo.append(lambda: self._cells.pop(key, None))
        else:
            self._undo.append(lambda: self._cells.__setitem__(key, before))


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

    def __init__(self, name: str, clock: Clock, undo: Undo) -> None:
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
        self._forget(self._held(number, epoch))

    def give_back(self, number: int, epoch: int, delay: float) -> None:
        job = self._held(number, epoch)
        job.held = False
        job.due = self._clock.wall() + delay
        heapq.heappush(self._waiting, (job.due, number))

    def bury(self, number: int, epoch: int, reason: str) -> None:
        self._bury(self._held(number, epoch), reason)

    def _bury(self, job: _Job, reason: str) -> None:
        self._forget(job)
        job.reason = reason
        self._dead[job.number] = job

    def _held(self, number: int, epoch: int) -> _Job:
        job = self._jobs.get(number)
        if job is None or job.epoch != epoch or not job.held:
            raise LeaseLostError(self.name, str(number), epoch)
        return job

    def size(self) -> QueueSize:
        tasks = self.tasks()
        leased = sum(task.leased for task in tasks)
        delayed = sum(not task.leased and task.due_in > 0 for task in tasks)
        return QueueSize(len(tasks) - leased - delayed, delayed, leased, len(self._dead))

    def tasks(self) -> list[Task]:
        now, steady = self._clock.wall(), self._clock.steady()
        return [
            Task(
                str(job.number),
                job.key,
                job.value,
                job.attempts,
                max(0.0, job.due - now),
                job.held and job.leased_until > steady,
            )
            for job in self._jobs.values()
        ]

    def dead(self, limit: int) -> list[DeadTask]:
        jobs = itertools.islice(self._dead.values(), limit)
        return [DeadTask(str(job.number), job.key, job.value, job.attempts, job.reason) for job in jobs]

    def restore_dead(self, letter: DeadTask) -> None:
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


@dataclass(slots=True)
class State:
    """All that one memory store holds; what a later write brings into being is here too."""

    clock: Clock
    logs: dict[str, LogState] = field(default_factory=dict)
    tables: dict[str, TableState] = field(default_factory=dict)
    queues: dict[str, QueueState] = field(default_factory=dict)
    undo: Undo = field(default_factory=list)

    def log(self, name: str) -> LogState:
        return self.logs.get(name) or self.logs.setdefault(name, LogState(name, self.undo))

    def table(self, name: str) -> TableState:
        return self.tables.get(name) or self.tables.setdefault(name, TableState(name, self.clock, self.undo))

    def queue(self, name: str) -> QueueState:
        return self.queues.get(name) or self.queues.setdefault(name, QueueState(name, self.clock, self.undo))
