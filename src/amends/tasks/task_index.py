"""The table that lists tasks: one row per task, derived from its log (see `amends.durable.index`)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from amends.durable import index
from amends.durable.index import IndexRow
from amends.stores.contract import Store
from amends.tasks.documents import ENDED
from amends.tasks.state import TaskState

__all__ = ["TaskRow", "row_of", "scan_rows"]

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
        due=None if state.held or state.status in ENDED else state.release.until,
    )
    return IndexRow(space, row.id, _encode(row), seq)


def scan_rows(store: Store, space: str) -> AsyncIterator[TaskRow]:
    """Iterate over all rows, in no particular order. Rows that cannot be decoded are skipped."""
    return index.scan_rows(store, space, TaskRow)
