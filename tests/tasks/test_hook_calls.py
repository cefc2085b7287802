"""Hooks have a time limit, obey the deadline, and are not called by a worker that lost its task."""

import asyncio

import pytest

from amends.errors import task as errors
from amends.errors.task import InternalError
from amends.tasks import Agent, Step, sequence
from amends.tasks.capability import HOOK_SECONDS, Capability
from amends.tasks.context import Context, Question
from amends.tasks.invoke import HookCalls, Threads
from amends.tasks.journal import Fenced


class Lost:
    async def ensure(self):
        raise Fenced


def hooks(timeout=None, guard=None, until=None, capability=True):
    declared = Capability(name="c", call=print, timeout=timeout) if capability else None
    return HookCalls(guard, Threads(), declared, "k", clock=lambda: 100.0, until=until)


async def hang(*_):
    await asyncio.sleep(60)


async def test_the_time_limit():
    """That of the capability, or less for one call; 300 s without one."""
    for limited in (hooks(0.01).call(hang), hooks().call(hang, most=0.01), hooks(until=100.01).call(hang)):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(limited, 20)
    assert hooks()._seconds == hooks(capability=False)._seconds == HOOK_SECONDS


async def test_after_the_deadline_nothing_is_called():
    called = []
    with pytest.raises(TimeoutError):
        await hooks(until=100.0).call(called.append, 1)
    assert called == []


async def test_a_worker_that_lost_its_task():
    called = []
    with pytest.raises(Fenced):
        await hooks(guard=Lost()).call(called.append, 1)
    assert called == []


async def test_the_arguments():
    """As many as the hook takes, async or in a thread."""

    async def one(first):
        return first

    assert await hooks().call(one, 1, 2) == 1
    assert await hooks().call(lambda *all: all, 1, 2) == (1, 2)
    assert await hooks().call(lambda: "none", 1, 2) == "none"


async def test_a_hook_cannot_ask():
    """A fallback can. A question of another hook would leave the task without a way to go on."""

    async def ask(ctx):
        return ctx.ask("?")

    ctx = Context(task="t", agent="a", capability="c")
    with pytest.raises(InternalError) as refused:
        await hooks().call(ask, ctx)
    assert refused.value.fault.recovery == "terminal"
    with pytest.raises(Question):
        await hooks().call(ask, ctx, may_ask=True)


async def test_questions_of_verify_and_undo(open_orchestrator):
    """The step stays in doubt, or could not be undone, and the task ends."""
    agent = Agent("worker")

    @agent.capability(verify=lambda payload, ctx: ctx.ask("Did it?"))
    async def pay(payload):
        raise errors.TimeoutError

    @agent.capability(undo=lambda payload, result, ctx: ctx.ask("Really?"))
    async def book(payload):
        return "booked"

    @agent.capability
    async def fail(payload):
        raise errors.KnowledgeNotFoundError

    orchestrator = await open_orchestrator(agent)
    assert (await orchestrator.run("pay", timeout=20)).error.details["inDoubt"] == ["pay"]
    plan = sequence(Step(name="a", type="book"), Step(name="b", type="fail"))
    assert (await orchestrator.run(plan, timeout=20)).error.details["notUndone"] == ["a"]
