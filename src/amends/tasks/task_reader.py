"""Read a task's log, as a state or as records."""

from __future__ import annotations

from collections.abc import AsyncIterator

from amends.stores.contract import Store
from amends.stores.values import Entry
from amends.tasks import entries
from amends.tasks.entries import Record
from amends.tasks.state import TaskState

__all__ = ["TaskNotFoundError", "log_name", "read_entries", "read_existing", "read_records", "read_task"]

_PAGE = 256
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


async def read_entries(store: Store, space: str, id: str, start: int = 1) -> AsyncIterator[Entry]:
    """Iterate over the entries of a task's log from number `start` on."""
    log = store.log(log_name(space, id))
    while True:
        page = await log.read(start, limit=_PAGE)
        for entry in page:
            yield entry
        if len(page) < _PAGE:
            return
        start = page[-1].seq + 1


async def read_task(store: Store, space: str, id: str) -> tuple[TaskState, int] | None:
    """Return a task's state and the number of its last entry; None if there is no such task."""
    state, last = TaskState(), 0
    async for entry in read_entries(store, space, id):
        state.apply(entries.decode(entry.value))
        last = entry.seq
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
    found: list[Record] = []
    async for entry in read_entries(store, space, id):
        found += entries.decode(entry.value)
    if not found:
        raise TaskNotFoundError(id, store.url)
    return found
