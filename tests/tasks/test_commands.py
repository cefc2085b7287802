"""Commands to tasks that change at the same time, have ended, or cannot be read."""

import asyncio
from functools import partial

import pytest

from amends.errors import task as errors
from amends.tasks import Agent, commands, entries
from amends.tasks.journal import log_name
from tests.durable.faulty import Faulty


def asking():
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def ask(payload, ctx):
        return [ctx.ask("One?"), ctx.ask("Two?")]

    return agent


async def test_a_command_is_checked_against_the_current_state(manual):
    """If another process answered first, the command is checked again and refused."""
    manual.register(asking())
    await manual.submit("ask", id="t")
    await manual.drain()
    earlier = [entries.encode([entries.Answered(at=1.0, step="ask", answer="theirs")])]

    class Busy:
        """A store on which another process appends an answer just before the first commit."""

        def __getattr__(self, name):
            return getattr(manual.store, name)

        async def transaction(self, work):
            if earlier:
                await manual.store.log(log_name("tasks", "t")).append(earlier.pop())
            return await manual.store.transaction(work)

    async def notify_worker(id):
        return False

    answer = partial(commands.answer, now=2.0, answer="ours", step=None)
    with pytest.raises(errors.InvalidFieldValueError):
        await commands.send_command(Busy(), "tasks", "t", answer, notify_worker)
    assert [
        record.answer for record in await manual.records("t") if isinstance(record, entries.Answered)
    ] == ["theirs"]


async def test_result_of_a_task_without_one_raises(manual):
    """For a task that waits for an answer, was cancelled, or failed."""
    manual.register(asking())
    handle = await manual.submit("ask", id="t")
    assert repr(handle) == "Handle('t')"
    await manual.drain()
    with pytest.raises(errors.InvalidFieldValueError):
        await handle.result()
    await handle.cancel()
    await manual.drain()
    with pytest.raises(errors.InvalidFieldValueError):
        await handle.result()
    assert (await handle.cancel()).status == "cancelled"
    agent = Agent("broken")

    @agent.capability(read_only=True)
    async def fail(payload):
        raise errors.KnowledgeNotFoundError

    manual.register(agent)
    failed = await manual.submit("fail")
    await manual.drain()
    with pytest.raises(errors.KnowledgeNotFoundError):
        await failed.result()


async def test_an_invalid_deadline_is_refused(manual):
    """The error names the field, and nothing is stored."""
    manual.register(asking())
    refused = await manual.run("ask", deadline="tomorrow")
    assert (refused.error.code, refused.error.field) == ("INVALID_FIELD_VALUE", "/deadline")
    assert [each async for each in manual.list()] == []


async def test_a_log_that_cannot_be_read(manual, clock, caplog):
    """The task is left alone without a busy loop, and the maintenance goes on with the other tasks."""
    from amends.stores.errors import DamagedStoreError
    from amends.tasks.maintenance import maintain

    manual.register(asking())
    for id in ("bad", "good"):
        await manual.submit("ask", id=id)
    await manual.store.log(log_name("tasks", "bad")).append(b'[{"what":"invented","at":1}]', last=1)
    assert await manual.drain() == 2
    assert await manual.drain() == 0
    assert "cannot be read" in caplog.text
    with pytest.raises(DamagedStoreError):
        await manual.state("bad")
    assert (await manual.get("good").response()).status == "input_required"
    await manual.cancel("good")
    await manual.drain()
    manual._registry.local_clock = lambda: 9e12
    assert await maintain(manual.store, manual._registry, keep=3600) == 1
    assert [row.id async for row in manual.list()] == ["bad"]


async def test_a_command_to_a_task_with_an_impossible_record(manual):
    """The command is not lost behind the entries that are skipped."""
    manual.register(asking())
    await manual.submit("ask", id="t")
    impossible = entries.encode([entries.Answered(at=1.0, step="other", answer=1)])
    await manual.store.log(log_name("tasks", "t")).append(impossible, last=1)
    await manual.cancel("t")
    await manual.drain()
    assert (await manual.get("t").response()).status == "cancelled"


async def test_a_task_that_is_over_takes_no_answers(manual, clock):
    """The deadline has ended its question. The refusal names the task, its status, and the step that was asked for."""
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def book(payload, ctx):
        return ctx.ask("Which seat?")

    manual.register(agent)
    await manual.submit("book", id="t", deadline=5)
    await manual.drain()
    with pytest.raises(
        errors.InvalidFieldValueError,
        match="Task 't' is input_required: no step 'x' of it waits for an answer; those that do: 'book'",
    ):
        await manual.answer("t", "12A", step="x")
    clock.pass_(6)
    await manual.drain()
    assert (await manual.state("t")).status == "failed"
    with pytest.raises(
        errors.InvalidFieldValueError, match="Task 't' is failed: no step of it waits for an answer"
    ):
        await manual.answer("t", "12A")


@pytest.mark.parametrize("transactions", [True, False])
@pytest.mark.parametrize("how", ["cancelled before", "cancelled after"])
async def test_a_caller_that_is_cancelled_while_it_sends_a_command(manual, transactions, how):
    """The command is in the log together with its message, or there is neither, whichever operation is interrupted."""
    agent, answered = Agent("worker"), 0

    @agent.capability(read_only=True)
    async def ask(payload, ctx):
        return ctx.ask("?")

    manual.register(agent)
    for point in range(10):
        faults, id = Faulty(manual.store, transactions), f"t{point}"
        await manual.submit("ask", id=id)
        await manual.drain()
        answer = partial(commands.answer, now=2.0, answer="yes", step=None)
        caller = asyncio.ensure_future(commands.send_command(faults, "tasks", id, answer))
        faults.point, faults.how, faults.caller = point, how, caller
        await asyncio.wait([caller])
        if faults.count <= point:
            break
        for _ in range(50):
            await asyncio.sleep(0)
        await manual.drain()
        state = await manual.state(id)
        answers = state.steps["ask"].answers
        assert state.status == ("completed" if answers else "input_required"), point
        answered += bool(answers)
    assert point > 1
    assert answered
