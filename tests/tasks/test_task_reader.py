"""Reading a task's log as a state or as records."""

import pytest

from amends.stores import DamagedStoreError
from amends.tasks import entries
from amends.tasks.journal import (
    TaskNotFoundError,
    log_name,
    read_existing,
    read_records,
    read_task,
    task_logs,
)
from amends.tasks.plan import Step

SUBMITTED = entries.Submitted(at=1.0, id="t", type="x", steps=(Step(name="x", type="x"),))


async def test_a_task_that_is_not_there(store):
    """Its name and the address of the store are in the message."""
    assert await read_task(store, "tasks", "t") is None
    for read in (read_existing, read_records):
        with pytest.raises(TaskNotFoundError, match="no task 't'") as missing:
            await read(store, "tasks", "t")
        assert missing.value.url == store.url


async def test_the_sets_of_tasks_are_apart(store):
    await store.log(log_name("tasks", "t")).append(entries.encode([SUBMITTED]))
    await store.log(log_name("tasks", "t")).append(entries.encode([entries.Cancelled(at=2.0)]))
    state, last, valid = await read_existing(store, "tasks", "t")
    assert (state.cancelled, last, valid) == (True, 2, 2)
    assert [type(each).__name__ for each in await read_records(store, "tasks", "t")] == [
        "Submitted",
        "Cancelled",
    ]
    assert await read_task(store, "others", "t") is None


async def test_a_log_of_something_else(store):
    await store.log(log_name("tasks", "t")).append(b"not a record")
    with pytest.raises(DamagedStoreError):
        await read_existing(store, "tasks", "t")


def test_the_kind_of_the_logs():
    """Commands may come from any process, and the row of a task is in the table of its set."""
    kind = task_logs("tasks")
    assert kind is task_logs("tasks")
    assert kind.is_command(entries.Cancelled(at=1.0))
    assert not kind.is_command(SUBMITTED)
    assert (kind.valid_until(entries.Repaired(at=1.0, valid=3)), kind.valid_until(SUBMITTED)) == (3, None)
    assert kind.row(kind.fold(kind.new(), [SUBMITTED]), kind.table, 1).table == "tasks"
