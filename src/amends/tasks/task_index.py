"""
The table that lists tasks: one row per task, derived from its log, so that a list does not have to read all logs.

On a store with transactions, the row is written together with the log. On other stores it is written after the log, and updated
later if it is found to be behind.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from amends.stores.contract import Store
from amends.stores.errors import ConflictError
from amends.tasks.documents import ENDED
from amends.tasks.state import TaskState

__all__ = ["TaskRow", "encode_row", "scan_rows", "update_row"]

_encoder = msgspec.json.Encoder()


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


_decoder = msgspec.json.Decoder(TaskRow)


def encode_row(state: TaskState, seq: int) -> bytes:
    """Encode the row of a task whose log ends with the entry `seq`."""
    return _encoder.encode(
        TaskRow(
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
    )


async def scan_rows(store: Store, space: str) -> AsyncIterator[TaskRow]:
    """Iterate over all rows, in no particular order. Rows that cannot be decoded are skipped."""
    async for row in store.table(space).scan():
        found = _read(row.value)
        if found is not None:
            yield found


async def update_row(store: Store, space: str, state: TaskState, seq: int, revision: int = 0) -> int:
    """
    Write a task's row, unless the table has a newer one.

    Args:
        store: where the table is.
        space: the name of the table.
        state: the state of the task.
        seq: the number of the last entry of its log.
        revision: the expected revision of the row; 0: there is none yet.

    Returns:
        The revision of the row in the table.
    """
    table, id, value = store.table(space), state.head.id, encode_row(state, seq)
    while True:
        try:
            return await table.put(id, value, revision=revision)
        except ConflictError:
            found = await table.get(id)
            if found is None:
                revision = 0
                continue
            current, revision = _read(found.value), found.revision
            if current is not None and current.seq >= seq:
                return revision


def _read(value: bytes) -> TaskRow | None:
    try:
        return _decoder.decode(value)
    except msgspec.MsgspecError:
        return None
