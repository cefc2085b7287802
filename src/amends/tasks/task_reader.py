"""A task's log as anybody may read it: folded into a state, or record by record."""

from __future__ import annotations

from amends.stores.contract import Store
from amends.tasks import entries
from amends.tasks.entries import Record
from amends.tasks.state import TaskState

__all__ = ["PAGE", "TaskNotFoundError", "known", "log_name", "read", "records_of"]

PAGE = 256
"""Entries that are read at once."""


class TaskNotFoundError(LookupError):
    """There is no task of that id on this store."""

    def __init__(self, id: str, url: str) -> None:
        super().__init__(id, url)
        self.id, self.url = id, url

    def __str__(self) -> str:
        return f"there is no task {self.id!r} on {self.url}"


def log_name(space: str, id: str) -> str:
    """The name of a task's log."""
    return f"{space}/{id}"


async def read(store: Store, space: str, id: str) -> tuple[TaskState, int] | None:
    """A task's state and the number of its last entry, or None when there is no such task."""
    log = store.log(log_name(space, id))
    state, last = TaskState(), 0
    while page := await log.read(last + 1, limit=PAGE):
        for entry in page:
            state.apply(entries.decode(entry.value))
        last = page[-1].seq
    return (state, last) if last else None


async def known(store: Store, space: str, id: str) -> tuple[TaskState, int]:
    """
    The state and the last entry of a task that should be there.

    Raises:
        TaskNotFoundError: there is no such task.
    """
    found = await read(store, space, id)
    if found is None:
        raise TaskNotFoundError(id, store.url)
    return found


async def records_of(store: Store, space: str, id: str) -> list[Record]:
    """
    Everything that happened to a task, in order.

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
