"""
The table that lists tasks: one row each, derived from its log, so that nobody has to read every log to see what there is.

Where the store has transactions, a row is written with what it says. Elsewhere it follows the log, and whoever finds it behind
mends it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from amends.stores.contract import Store
from amends.stores.errors import ConflictError
from amends.tasks.documents import ENDED
from amends.tasks.state import TaskState

__all__ = ["Listing", "listed", "mend", "row_of"]

_encoder = msgspec.json.Encoder()


class Listing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task's row: what its log said as of its entry `seq`."""

    id: str
    status: str
    type: str
    seq: int
    created: float
    updated: float
    agent: str | None = None
    code: str | None = None
    due: float | None = None


_decoder = msgspec.json.Decoder(Listing)


def row_of(state: TaskState, seq: int) -> bytes:
    """The row of a task whose log ends with entry `seq`."""
    return _encoder.encode(
        Listing(
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


async def listed(store: Store, space: str) -> AsyncIterator[Listing]:
    """Every row, in no promised order. What is none is left alone."""
    async for row in store.table(space).scan():
        found = _read(row.value)
        if found is not None:
            yield found


async def mend(store: Store, space: str, state: TaskState, seq: int, revision: int = 0) -> int:
    """
    Write the row, unless a newer one is there.

    Args:
        store: where the table is.
        space: its name.
        state: the task.
        seq: the last entry of its log.
        revision: of the row that is probably there; 0: there is none yet.

    Returns:
        the revision of the row that is there now.
    """
    table, id, value = store.table(space), state.head.id, row_of(state, seq)
    while True:
        try:
            return await table.put(id, value, revision=revision)
        except ConflictError:
            found = await table.get(id)
            if found is None:
                revision = 0
                continue
            there, revision = _read(found.value), found.revision
            if there is not None and there.seq >= seq:
                return revision


def _read(value: bytes) -> Listing | None:
    try:
        return _decoder.decode(value)
    except msgspec.MsgspecError:
        return None
