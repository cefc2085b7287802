"""The rows that list tasks: never newer than their logs for long, and never put back by somebody late."""

import pytest

from amends.tasks import entries
from amends.tasks.state import TaskState
from amends.tasks.task_index import listed, mend


def state(updated):
    made = TaskState()
    made.apply([entries.Submitted(at=1.0, id="t", type="work", steps=())])
    made.updated = updated
    return made


async def rows(store):
    return [(row.seq, row.updated) async for row in listed(store, "tasks")]


@pytest.mark.parametrize("guess", [0, 7])
async def test_mending(store, guess):
    """Whatever row was thought to be there: a newer one stays, an older one or none is replaced."""
    await mend(store, "tasks", state(2.0), 2, guess)
    assert await rows(store) == [(2, 2.0)]
    await mend(store, "tasks", state(1.0), 1, guess)
    assert await rows(store) == [(2, 2.0)]
    await mend(store, "tasks", state(3.0), 3, guess)
    assert await rows(store) == [(3, 3.0)]


async def test_rows_that_are_none(store):
    """Left out of the list, and replaced when their task has something to say."""
    await store.table("tasks").put("t", b"\xff")
    assert await rows(store) == []
    await mend(store, "tasks", state(1.0), 1)
    assert await rows(store) == [(1, 1.0)]
