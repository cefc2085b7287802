"""What is stored of a task: its log, and the row that lists it, which is derived from the log (see `amends.durable.index`)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cache, partial

import msgspec

import amends.tasks.entries as log_entries
from amends.core.text import truncate
from amends.durable import index, journal
from amends.durable.index import IndexRow
from amends.durable.journal import Kind, Snapshot
from amends.stores.contract import Store
from amends.tasks.documents import ENDED, Status
from amends.tasks.entries import COMMANDS, Record, Repaired
from amends.tasks.state import TaskState

__all__ = [
    "TaskNotFoundError",
    "TaskRow",
    "log_name",
    "read_existing",
    "read_records",
    "read_task",
    "row_of",
    "scan_rows",
    "task_logs",
]


_QUESTION_BYTES = 200
_encode = msgspec.json.Encoder().encode


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


class TaskRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task's row: a summary of its log up to the entry `seq`."""

    id: str
    status: str
    type: str
    seq: int
    created: float
    updated: float
    agent: str | None = None
    code: str | None = None
    due: float | None = None
    question: str | None = None
    """The question, or what has to be verified, if the task waits for input."""
    in_doubt: bool = False
    """Whether it is unknown whether a step happened."""


def row_of(space: str, state: TaskState, seq: int) -> IndexRow:
    """The row of a task whose log ends with the entry `seq`."""
    row = TaskRow(
        id=state.head.id,
        status=state.status,
        type=state.head.type,
        seq=seq,
        created=state.created,
        updated=state.updated,
        agent=state.agent,
        code=state.fault.code if state.fault is not None else None,
        question=_question(state),
        in_doubt=_in_doubt(state),
        due=None if state.held or state.status in ENDED else state.release.until,
    )
    return IndexRow(space, row.id, _encode(row), seq)


def _question(state: TaskState) -> str | None:
    wanted = state.pending_input() if state.status is Status.INPUT_REQUIRED else None
    return None if wanted is None else truncate(str(wanted.get("question", "")), _QUESTION_BYTES)


def _in_doubt(state: TaskState) -> bool:
    """A step that is running has no known outcome either; it is not in doubt."""
    return bool(state.over and state.in_doubt) or any(step.state == "doubt" for step in state.steps.values())


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


def scan_rows(store: Store, space: str) -> AsyncIterator[TaskRow]:
    """Iterate over all rows, in no particular order. Rows that cannot be decoded are skipped."""
    return index.scan_rows(store, space, TaskRow)
