"""What a task's log holds, and reading it as a state or as records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amends.durable import journal
from amends.durable.index import IndexRow
from amends.durable.journal import Snapshot
from amends.stores.contract import Store
from amends.tasks import entries
from amends.tasks.entries import COMMANDS, Record, Repaired
from amends.tasks.state import TaskState
from amends.tasks.task_index import row_of

__all__ = ["TaskLog", "TaskNotFoundError", "log_name", "read_existing", "read_records", "read_task"]


class TaskNotFoundError(LookupError):
    """The store has no task with that id."""

    def __init__(self, id: str, url: str) -> None:
        super().__init__(id, url)
        self.id, self.url = id, url

    def __str__(self) -> str:
        return f"no task {self.id!r} on {self.url}"


def log_name(space: str, id: str) -> str:
    """The name of a task's log."""
    return f"{space}/{id}"


@dataclass(frozen=True, slots=True)
class TaskLog:
    """The logs of tasks; see `amends.durable.journal.Kind`."""

    space: str
    """The name of the set of tasks."""

    def new(self) -> TaskState:
        """See `Kind.new`."""
        return TaskState()

    def encode(self, records: Sequence[Record]) -> bytes:
        """See `Kind.encode`."""
        return entries.encode(records)

    def decode(self, value: bytes) -> Sequence[Record]:
        """See `Kind.decode`."""
        return entries.decode(value)

    def fold(self, state: TaskState, records: Sequence[Record]) -> TaskState:
        """See `Kind.fold`."""
        return state.after(records)

    def row(self, state: TaskState, seq: int) -> IndexRow:
        """See `Kind.row`."""
        return row_of(self.space, state, seq)

    def is_command(self, record: Record) -> bool:
        """See `Kind.is_command`."""
        return isinstance(record, COMMANDS)

    def valid_until(self, record: Record) -> int | None:
        """See `Kind.valid_until`."""
        return record.valid if isinstance(record, Repaired) else None


async def read_task(store: Store, space: str, id: str) -> Snapshot[TaskState] | None:
    """Return a task's state and the number of its last entry; None if there is no such task."""
    return await journal.read(store, log_name(space, id), TaskLog(space))


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
    found = await journal.read_records(store, log_name(space, id), TaskLog(space))
    if not found:
        raise TaskNotFoundError(id, store.url)
    return found
