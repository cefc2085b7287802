"""A handle waits for its task and sends it commands."""

import pytest

from amends.errors import FaultError
from amends.errors import task as errors
from amends.tasks import Agent
from amends.tasks.orchestrator import Handle
from amends.tasks.wait import WaitTimeoutError


def agent():
    made = Agent("worker")

    @made.capability(read_only=True)
    async def work(payload, ctx):
        if payload == "fail":
            raise errors.KnowledgeNotFoundError
        return ctx.ask("How many?") if payload == "ask" else payload

    return made


async def test_the_result(manual):
    """Or the failure, as the exception of its code."""
    manual.register(agent())
    done, failed = await manual.submit("work", 7), await manual.submit("work", "fail")
    assert (await done.response()).status == "pending"
    await manual.drain()
    assert await done.result() == 7
    with pytest.raises(errors.KnowledgeNotFoundError):
        await failed.result()
    assert repr(done) == f"Handle({done.id!r})"


async def test_a_task_without_a_result(manual):
    """It needs an answer, or was cancelled: there is nothing to return."""
    manual.register(agent())
    handle = await manual.submit("work", "ask")
    await manual.drain()
    with pytest.raises(FaultError, match="input_required"):
        await handle.result()
    assert (await handle.answer(3)).status == "input_required"
    await manual.drain()
    assert await handle.result() == 3
    cancelled = await manual.submit("work", "ask")
    await cancelled.cancel()
    await manual.drain()
    with pytest.raises(FaultError, match="cancelled"):
        await cancelled.result()


async def test_a_wait_that_is_too_long(manual):
    """The task goes on."""
    manual.register(agent())
    handle = await manual.submit("work", 7)
    for wait in (handle.wait, handle.result):
        with pytest.raises(WaitTimeoutError, match="it goes on"):
            await wait(timeout=0.01)
    await manual.drain()
    assert (await Handle(manual, handle.id).wait(timeout=5)).result == 7
