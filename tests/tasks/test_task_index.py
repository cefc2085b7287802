"""The rows that list tasks: a newer row is never replaced by an older one."""

import pytest

from amends.durable.index import write_row
from amends.tasks import entries
from amends.tasks.fold import fold
from amends.tasks.journal import scan_rows
from amends.tasks.state import TaskState


def state(updated):
    made = fold(TaskState(), [entries.Submitted(at=1.0, id="t", type="work", steps=())])
    made.updated = updated
    return made


async def update_row(store, state, seq, revision=0):
    row = state.row("tasks", seq)
    row.revision = revision
    await write_row(store, row)


async def rows(store):
    return [(row.seq, row.updated) async for row in scan_rows(store, "tasks")]


@pytest.mark.parametrize("expected", [0, 7])
async def test_update_row(store, expected):
    """Independent of the expected revision, a newer row is kept, and an older or missing one is written."""
    await update_row(store, state(2.0), 2, expected)
    assert await rows(store) == [(2, 2.0)]
    await update_row(store, state(1.0), 1, expected)
    assert await rows(store) == [(2, 2.0)]
    await update_row(store, state(3.0), 3, expected)
    assert await rows(store) == [(3, 3.0)]


async def test_unreadable_rows(store):
    """They are skipped, and replaced by the next update."""
    await store.table("tasks").put("t", b"\xff")
    assert await rows(store) == []
    await update_row(store, state(1.0), 1)
    assert await rows(store) == [(1, 1.0)]
