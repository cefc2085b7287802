"""Durable steps inside a step of a task: what another attempt calls again, and what a lost worker leaves in doubt."""

import asyncio

import pytest

from amends import stores
from amends.effects import Effects
from amends.errors import FaultError, RateLimitedError
from amends.stores import UnsupportedError
from amends.tasks import Agent, Context
from amends.tasks.journal import Fenced
from tests.tasks.conftest import wait_until
from tests.tasks.crashes import SHORT, paused_worker


def agent_of(function, **options):
    agent = Agent("worker")
    agent.capability("work", idempotent=True, **options)(function)
    return agent


async def test_another_attempt_gets_the_results_of_ended_steps(open_orchestrator):
    """A step that failed without effect is called again; the others, times and random values are the same."""
    called, seen = [], []

    async def work(payload, ctx):
        def charge(order):
            called.append(order)
            if order == 2 and ctx.attempt == 1:
                raise RateLimitedError("later", executed="no")
            return {"receipt": order}

        first = await ctx.step("charge", charge, 1, key=1)
        seen.append((await ctx.now(), await ctx.uuid(), await ctx.random()))
        return [first, await ctx.step("charge", charge, 2, key=2)]

    orchestrator = await open_orchestrator(agent_of(work))
    result = await (await orchestrator.submit("work")).result(timeout=60)
    assert result == [{"receipt": 1}, {"receipt": 2}]
    assert called == [1, 2, 2]
    assert len(seen) == 2
    assert seen[0] == seen[1]


@pytest.mark.parametrize("happened", [True, False])
async def test_an_interrupted_step_waits_for_an_answer(open_orchestrator, store, happened):
    """A worker is paused in it: another one asks, and the answer lets the task go on. The paused one writes nothing."""
    wake, called = asyncio.Event(), []

    def agent(where):
        async def work(payload, ctx):
            async def pay(amount):
                called.append((where, amount))
                if where == "paused":
                    await wake.wait()
                return f"paid by {where}"

            before = await ctx.step("prepare", lambda: where)
            return [before, await ctx.step("pay", pay, 5, timeout=0.2)]

        return agent_of(work)

    client = await open_orchestrator(worker=False, lease=SHORT)
    await client.submit("work", agent="worker", id="t")
    async with paused_worker(store, [agent("paused")], "t") as (_, paused):
        await wait_until(lambda: called)
        rescuer = await open_orchestrator(agent("rescuer"), lease=SHORT)
        response = await asyncio.wait_for(rescuer.get("t").wait(), 60)
        assert response.status == "input_required"
        assert response.input["question"] == "Did “pay#1” of “work” happen?"
        await rescuer.verify("t", happened=happened, result="found")
        response = await asyncio.wait_for(rescuer.get("t").wait(), 60)
        assert response.result == ["paused", "found" if happened else "paid by rescuer"]
        assert called == [("paused", 5)] + ([] if happened else [("rescuer", 5)])
        wake.set()
        with pytest.raises((Fenced, stores.LeaseLostError)):
            await paused
    assert (await rescuer.get("t").response()).result == response.result


async def test_verify_decides_instead_of_a_person(open_orchestrator, store):
    """What `verify` returns is the result, and nothing is asked."""
    called = []

    def agent(where):
        async def work(payload, ctx):
            async def pay(amount):
                called.append(where)
                await asyncio.Event().wait()

            return await ctx.step("pay", pay, 5, verify=lambda amount: {"found": amount})

        return agent_of(work)

    client = await open_orchestrator(worker=False, lease=SHORT)
    await client.submit("work", agent="worker", id="t")
    async with paused_worker(store, [agent("paused")], "t"):
        await wait_until(lambda: called)
        rescuer = await open_orchestrator(agent("rescuer"), lease=SHORT)
        assert (await asyncio.wait_for(rescuer.get("t").wait(), 60)).result == {"found": 5}
    assert called == ["paused"]


async def test_other_arguments_fail_the_task(open_orchestrator):
    """The second attempt calls the step with another amount: nothing is called."""
    called = []

    async def work(payload, ctx):
        await ctx.step("pay", called.append, ctx.attempt, key="order")
        raise RateLimitedError("later", executed="no")

    orchestrator = await open_orchestrator(agent_of(work))
    response = await (await orchestrator.submit("work")).wait(timeout=60)
    assert response.status == "failed"
    assert called == [1]


async def test_effects_of_the_ledger_are_steps(open_orchestrator):
    """Another attempt gets the outcome of the ledger, and a second call in one attempt is told that it was done."""
    effects, paid, seen = Effects("memory:"), [], []

    @effects.once
    async def pay(amount):
        paid.append(amount)
        return f"receipt {len(paid)}"

    async def work(payload, ctx):
        seen.append(await pay(5))
        if ctx.attempt == 1:
            raise RateLimitedError("later", executed="no")
        with pytest.raises(FaultError) as done:
            await pay(5)
        return [seen[-1], done.value.fault.code]

    orchestrator = await open_orchestrator(agent_of(work))
    assert await (await orchestrator.submit("work")).result(timeout=60) == ["receipt 1", "ALREADY_DONE"]
    assert (paid, seen) == ([5], ["receipt 1", "receipt 1"])


async def test_two_tasks_with_one_key_pay_once(open_orchestrator):
    """The ledger's row is the authority across tasks, and beside a program without any."""
    effects, paid = Effects("memory:"), []

    @effects.once(key="order")
    async def pay(order):
        paid.append(order)
        return "receipt"

    async def work(payload, ctx):
        return await pay(payload)

    orchestrator = await open_orchestrator(agent_of(work))
    handles = [await orchestrator.submit("work", 17) for _ in range(2)]
    results = await asyncio.gather(*(handle.result(timeout=60) for handle in handles), pay(17))
    assert results == ["receipt"] * 3
    assert paid == [17]


async def test_steps_inside_a_delegation(open_orchestrator):
    """They are recorded with the delegating step until the delegation is done."""
    called = []

    async def work(payload, ctx):
        return await ctx.delegate("help", 1) + await ctx.delegate("help", 2)

    async def help(payload, ctx):
        def count(number):
            called.append(number)
            return number

        found = await ctx.step("count", count, payload)
        if len(called) == 1:
            await ctx.step("count", count, 10)
            raise RateLimitedError("later", executed="no")
        return found

    agent = agent_of(work)
    agent.capability("help", idempotent=True)(help)
    orchestrator = await open_orchestrator(agent)
    assert await (await orchestrator.submit("work")).result(timeout=60) == 3
    assert called == [1, 10, 2]


async def test_a_delegation_inside_a_delegation_that_is_tried_again(open_orchestrator):
    """The first try of the outer one fails after it: the second gets its result."""
    calls = []

    async def work(payload, ctx):
        return await ctx.delegate("help")

    async def help(payload, ctx):
        calls.append("help")
        paid = await ctx.delegate("pay")
        if calls.count("help") == 1:
            raise RateLimitedError("later", executed="no")
        return paid

    async def pay(payload, ctx):
        calls.append("pay")
        return "receipt"

    agent = agent_of(work)
    agent.capability("help", idempotent=True)(help)
    agent.capability("pay")(pay)
    orchestrator = await open_orchestrator(agent)
    assert await (await orchestrator.submit("work")).result(timeout=60) == "receipt"
    assert calls == ["help", "pay", "help"]


async def test_without_a_store():
    """The error says what to do."""
    with pytest.raises(UnsupportedError, match="Orchestrator"):
        await Context(task="t", agent="a", capability="c").step("pay", print)
