"""The table that lists tasks: one row per task, derived from its log (see `amends.durable.index`)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from amends.core.text import truncate
from amends.durable import index
from amends.durable.index import IndexRow
from amends.stores.contract import Store
from amends.tasks.documents import ENDED, Status
from amends.tasks.state import TaskState

__all__ = ["TaskRow", "row_of", "scan_rows"]

_QUESTION_BYTES = 200
_encode = msgspec.json.Encoder().encode


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


def scan_rows(store: Store, space: str) -> AsyncIterator[TaskRow]:
    """Iterate over all rows, in no particular order. Rows that cannot be decoded are skipped."""
    return index.scan_rows(store, space, TaskRow)
