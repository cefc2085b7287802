"""What a task's log holds, and reading it as a state or as records."""

from __future__ import annotations

from functools import cache, partial

import amends.tasks.entries as log_entries
from amends.durable import journal
from amends.durable.journal import Kind, Snapshot
from amends.stores.contract import Store
from amends.tasks.entries import COMMANDS, Record, Repaired
from amends.tasks.state import TaskState
from amends.tasks.task_index import row_of

__all__ = ["TaskNotFoundError", "log_name", "read_existing", "read_records", "read_task", "task_logs"]


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


@cache
def task_logs(space: str) -> Kind[TaskState, Record]:
    """The logs of a set of tasks."""
    return Kind(
        new=TaskState,
        encode=log_entries.encode,
        decode=log_entries.decode,
        fold=TaskState.after,
        row=partial(row_of, space),
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
