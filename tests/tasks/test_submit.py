"""A request that is submitted twice is one task."""

import asyncio

import pytest
from msgspec.structs import replace

from amends.errors import FaultError
from amends.tasks.entries import Cancelled, Submitted, encode
from amends.tasks.journal import read_records, scan_rows
from amends.tasks.plan import Step
from amends.tasks.submit import keys_of, submit

RECORD = Submitted(at=1.0, id="t", type="x", steps=(Step(name="x", type="x"),))


async def stored(store):
    return [(row.id, row.status) async for row in scan_rows(store, "tasks")], await store.queue(
        "tasks"
    ).size()


async def test_the_same_request_again(store):
    """At another time and with another deadline, it is the same task; nothing is stored again."""
    assert await submit(store, "tasks", RECORD) == ("t", True)
    assert await submit(store, "tasks", replace(RECORD, at=2.0, until=9.0)) == ("t", False)
    rows, size = await stored(store)
    assert (rows, size.ready) == ([("t", "pending")], 1)
    assert len(await read_records(store, "tasks", "t")) == 1


async def test_another_request_with_the_same_id(store):
    await submit(store, "tasks", RECORD)
    with pytest.raises(FaultError) as refused:
        await submit(store, "tasks", replace(RECORD, type="y"))
    assert (refused.value.fault.code, refused.value.fault.field) == ("INVALID_FIELD_VALUE", "/id")


async def test_the_same_key(store):
    """The first id counts, also if many are submitted at once."""
    records = [replace(RECORD, id=f"t{number}", key="k") for number in range(8)]
    found = await asyncio.gather(*(submit(store, "tasks", record) for record in records))
    (id,) = {id for id, _ in found}
    assert sorted(new for _, new in found) == [False] * 7 + [True]
    assert (await keys_of(store, "tasks").get("k")).id == id
    assert [listed for listed, _ in (await stored(store))[0]] == [id]
    with pytest.raises(FaultError) as refused:
        await submit(store, "tasks", replace(RECORD, id="u", key="k", type="y"))
    assert refused.value.fault.field == "/idempotencyKey"


async def test_a_submission_that_was_interrupted(store):
    """The log is there and the message is not: without transactions, the next submission adds it."""
    await store.log("tasks/t").append(encode([RECORD]))
    await store.log("tasks/t").append(encode([Cancelled(at=2.0)]))
    assert await submit(store, "tasks", RECORD) == ("t", False)
    rows, size = await stored(store)
    assert (len(rows), size.ready) == ((0, 0) if store.traits.transactions else (1, 1))
