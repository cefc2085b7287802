"""Read a task's log, as a state or as records."""

from __future__ import annotations

from amends.stores.contract import Store
from amends.tasks import entries
from amends.tasks.entries import Record
from amends.tasks.state import TaskState

__all__ = ["PAGE", "TaskNotFoundError", "log_name", "read_existing", "read_records", "read_task"]

PAGE = 256
"""Entries that are read with one call."""


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


async def read_task(store: Store, space: str, id: str) -> tuple[TaskState, int] | None:
    """Return a task's state and the number of its last entry; None if there is no such task."""
    log = store.log(log_name(space, id))
    state, last = TaskState(), 0
    while page := await log.read(last + 1, limit=PAGE):
        for entry in page:
            state.apply(entries.decode(entry.value))
        last = page[-1].seq
    return (state, last) if last else None


async def read_existing(store: Store, space: str, id: str) -> tuple[TaskState, int]:
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
    log, last = store.log(log_name(space, id)), 0
    found: list[Record] = []
    while page := await log.read(last + 1, limit=PAGE):
        for entry in page:
            found += entries.decode(entry.value)
        last = page[-1].seq
    if not found:
        raise TaskNotFoundError(id, store.url)
    return found
