"""
A task's log: reading it, and writing it as the worker that holds the task.

The log refuses the writes of a worker that has lost its task, but it cannot stop a call that is under way. The worker therefore
cancels such a call itself when the lease ends by its own clock, which started before the lease was requested. The worker that
takes over then checks whether the step happened; because of the cancellation, the step cannot happen after that check.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Sequence
from functools import cache
from typing import TypeVar

import amends.tasks.entries as log_entries
from amends.durable import index, journal
from amends.durable.journal import Fenced, Kind, Snapshot
from amends.stores.contract import Lease, Store
from amends.stores.errors import StoreError
from amends.tasks.entries import COMMANDS, Ended, Record, Released, Repaired
from amends.tasks.fold import fold
from amends.tasks.state import TaskRow, TaskState

__all__ = [
    "SEPARATOR",
    "Fenced",
    "Journal",
    "LeaseGuard",
    "TaskNotFoundError",
    "log_name",
    "read_existing",
    "read_records",
    "read_task",
    "scan_rows",
    "task_logs",
]

T = TypeVar("T")

SEPARATOR = "\0"
"""
Separates the parts of the keys of messages on the queue. No id of a task contains it.

A submission's message has the task's id as its key, so that the messages of commands and of the maintenance need other keys.
"""


# Reading --------------------------------------------------------------------------------------------------------


class TaskNotFoundError(LookupError):
    """
    The store has no task with that id.

    >>> import asyncio
    >>> from amends.tasks import Orchestrator
    >>> async def example():
    ...     async with Orchestrator() as orchestrator:
    ...         await orchestrator.get("t-1").response()
    >>> try:
    ...     asyncio.run(example())
    ... except TaskNotFoundError as error:
    ...     error.id
    't-1'
    """

    def __init__(self, id: str, url: str) -> None:
        super().__init__(id, url)
        self.id, self.url = id, url

    def __str__(self) -> str:
        return f"no task {self.id!r} on {self.url}"


def log_name(space: str, id: str) -> str:
    """The name of a task's log."""
    return f"{space}/{id}"


@cache
def task_logs(space: str) -> Kind[TaskState, Record]:
    """The logs of a set of tasks."""
    return Kind(
        new=TaskState,
        encode=log_entries.encode,
        decoder=log_entries.decode,
        fold=fold,
        table=space,
        row=TaskState.row,
        is_command=lambda record: isinstance(record, COMMANDS),
        valid_until=lambda record: record.valid if isinstance(record, Repaired) else None,
    )


async def read_task(store: Store, space: str, id: str) -> Snapshot[TaskState] | None:
    """Return a task's state and the number of its last entry; None if there is no such task."""
    return await journal.read(store, log_name(space, id), task_logs(space))


async def read_existing(store: Store, space: str, id: str) -> Snapshot[TaskState]:
    """
    Return a task's state and the number of its last entry.

    Raises:
        TaskNotFoundError: there is no such task.
    """
    found = await read_task(store, space, id)
    if found is None:
        raise TaskNotFoundError(id, store.url)
    return found


async def read_records(store: Store, space: str, id: str) -> list[Record]:
    """
    Return the records of a task's log.

    Raises:
        TaskNotFoundError: there is no such task.
    """
    found = await journal.read_records(store, log_name(space, id), task_logs(space))
    if not found:
        raise TaskNotFoundError(id, store.url)
    return found


def scan_rows(store: Store, space: str) -> AsyncIterator[TaskRow]:
    """Iterate over all rows, in no particular order. Rows that cannot be decoded are skipped."""
    return index.scan_rows(store, space, TaskRow)


# Holding a task and writing its log -----------------------------------------------------------------------------


class LeaseGuard:
    """Runs work only for as long as a lease lasts. The lease must be extended through `extend`."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._timeouts: set[asyncio.Timeout] = set()

    @property
    def expires_in(self) -> float:
        """Seconds until the lease ends; 0 when it is over."""
        return self._lease.expires_in

    async def extend(self) -> None:
        """
        Extend the lease, and with it the time limit of all work that runs under it.

        Raises:
            LeaseLostError: another worker has taken the task.
        """
        await self._lease.extend()
        end = asyncio.get_running_loop().time() + self._lease.expires_in
        for timeout in self._timeouts:
            if not timeout.expired():
                timeout.reschedule(end)

    async def ensure(self) -> None:
        """
        Make sure, immediately before a call, that this worker still has the task.

        The worker may have been paused, or the acknowledgement of its last write may have arrived late. By then the lease may
        have run out, and another worker may have taken the task over.

        Raises:
            Fenced: another worker has the task, or the lease ran out and the store does not answer.
        """
        if self._lease.expires_in > 0:
            return
        try:
            await self.extend()
        except StoreError as error:
            raise Fenced from error
        if self._lease.expires_in <= 0:
            raise Fenced  # extending the lease takes longer than it lasts

    async def run(self, work: Awaitable[T]) -> T:
        """
        Return the result of `work`; cancel it when the lease runs out.

        If the work ignores the cancellation, its result is returned, and the log decides whether it counts.

        Raises:
            Fenced: the lease ran out.
        """
        timeout = asyncio.timeout(self._lease.expires_in)
        try:
            async with timeout:
                self._timeouts.add(timeout)
                return await work
        except TimeoutError:
            if timeout.expired():
                raise Fenced from None
            raise
        finally:
            self._timeouts.discard(timeout)


class Journal(journal.Journal[TaskState, Record]):
    """A task's state. All changes of a running task go through it; its last record also releases the task's message."""

    def __init__(self, store: Store, space: str, snapshot: Snapshot[TaskState], lease: Lease) -> None:
        """
        Args:
            store: where the log is.
            space: the name of the set of tasks.
            snapshot: the state of the task when its log was read.
            lease: the lease on the task's message.
        """
        self.lease, self.store, self.space = lease, store, space
        self.guard = LeaseGuard(lease)
        """Makes sure that this worker has the task before it calls anything."""
        self._announced: Record | None = None
        super().__init__(store, log_name(space, snapshot.state.head.id), task_logs(space), snapshot, lease)

    def announce(self, record: Record) -> None:
        """Write this record, which says who runs the task, with the first entry that is written, or with `write_announced`."""
        self._announced = record

    async def write_announced(self) -> None:
        """Write the announced record now, if it is not written yet. Raises as `write` does."""
        announced, self._announced = self._announced, None
        if announced is not None:
            await super().write([announced])

    async def write(
        self, records: Sequence[Record], *, if_open: bool = False, if_unchanged: bool = False
    ) -> bool:
        """See `amends.durable.journal.Journal.write`."""
        announced, self._announced = self._announced, None
        if announced is None or not records:
            self._announced = announced
            return await super().write(records, if_open=if_open, if_unchanged=if_unchanged)
        written = await super().write([announced, *records], if_open=if_open, if_unchanged=if_unchanged)
        if not written:
            self._announced = announced
        return written

    def lease_end(self, record: Record) -> float | None:
        """The end of a task removes its message, and so does a release for good; a release until a time gives it back."""
        if isinstance(record, Released) and record.until is not None:
            return max(0.0, record.until - record.at)
        return math.inf if isinstance(record, Ended | Released) else None
