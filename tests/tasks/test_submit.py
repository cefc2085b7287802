"""A request that is submitted twice is one task."""

import asyncio

import pytest
from msgspec.structs import replace

from amends.errors import FaultError
from amends.tasks import Agent
from amends.tasks.entries import Cancelled, Submitted, encode
from amends.tasks.journal import read_records, read_task, scan_rows
from amends.tasks.maintenance import MAINTENANCE, forget
from amends.tasks.plan import Step
from amends.tasks.submit import build_submission, keys_of, submit

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


async def test_a_task_that_is_deleted_while_it_is_submitted_again(store):
    """It is stored again: a submission that returns is complete."""
    await submit(store, "tasks", RECORD)

    class Deleting:
        """A store on which another process deletes the task after the first conflict."""

        def __init__(self):
            self.deleted = False

        def __getattr__(self, name):
            return getattr(store, name)

        def log(self, name):
            return _Deleting(self, store.log(name))

    class _Deleting:
        def __init__(self, on, log):
            self._on, self._log = on, log

        def __getattr__(self, name):
            return getattr(self._log, name)

        async def read(self, *given, **options):
            if not self._on.deleted:
                self._on.deleted = True
                await forget(store, "tasks", RECORD.id)
            return await self._log.read(*given, **options)

    again = Deleting()
    assert await submit(again, "tasks", RECORD) == (RECORD.id, True)
    assert again.deleted
    assert (await read_task(store, "tasks", RECORD.id)).state.head == RECORD


@pytest.mark.parametrize(
    "id", ["maintenance", "~sweep", "t!2", "t!!2", "!", "a/b", " ", "ключ 🎉", "x" * 5000]
)
async def test_ids_may_be_any_text(open_orchestrator, id):
    """Also one that looks like the key of another message: that of the maintenance, or of a command to another task."""
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def ask(payload, ctx):
        return ctx.ask("?")

    orchestrator = await open_orchestrator(agent)
    await orchestrator.run("ask", id="t", timeout=20)
    assert (await orchestrator.run("ask", id=id, timeout=20)).status == "input_required"
    for each in (id, "t"):
        await orchestrator.answer(each, each)
        assert (await orchestrator.get(each).wait(timeout=20)).result == each


def test_an_id_with_the_separator_of_message_keys():
    """INVALID_FIELD_VALUE: it could be that of another message."""
    options = {"now": 1.0, "agent": None, "retry_policy": None, "deadline": None, "key": None}
    with pytest.raises(FaultError, match="NUL") as refused:
        build_submission("x", None, id=MAINTENANCE, **options)
    assert refused.value.fault.field == "/id"
