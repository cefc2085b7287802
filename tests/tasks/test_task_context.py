"""Delegations honour the promises of the capability that is called, also after a crash, a time-out or an uncertain failure."""

import asyncio

import pytest

from amends.errors import task as errors
from amends.tasks import Agent
from tests.tasks.conftest import advance_until_rest
from tests.tasks.crashes import crash


def agents(effects, outcome, parent=None, **options):
    """An agent whose `order` delegates to `pay`, which has its effect and then does what `outcome` does."""
    agent = Agent("worker")

    @agent.capability(**(parent or {"idempotent": True}))
    async def order(payload, ctx):
        return await ctx.delegate("pay", {"item": "book"})

    @agent.capability(**options)
    async def pay(payload, ctx):
        effects.append(ctx.key)
        return await outcome(ctx)

    return agent


async def uncertain(ctx):
    raise errors.AgentUnavailableError


async def hangs(ctx):
    await asyncio.sleep(3600)


@pytest.mark.parametrize("outcome", [uncertain, hangs])
@pytest.mark.parametrize("parent", [{"idempotent": True}, {"read_only": True}, {}])
async def test_a_delegation_without_promises_is_not_repeated(manual, clock, outcome, parent):
    effects = []
    manual.register(agents(effects, outcome, parent=parent, timeout=0.05))
    handle = await manual.submit("order", id="t")
    await advance_until_rest(manual, clock, handle)
    assert len(effects) == 1
    state = await manual.state("t")
    assert state.in_doubt
    assert (await handle.response()).status in {"failed", "input_required"}
    if state.over:
        await manual.retry("t")
        await advance_until_rest(manual, clock, handle)
        assert (await handle.response()).status == "input_required"
        assert len(effects) == 1


async def test_a_delegation_without_promises_is_not_repeated_after_a_crash(manual, clock):
    """It waits for a verification, which gives the delegation its result."""
    from amends.tasks.entries import Started

    effects = []
    manual.register(agents(effects, uncertain))
    handle = await manual.submit("order", id="t")
    name = "order>worker/pay#1"
    started = Started(
        at=clock.now, step=name, attempt=1, agent="worker", type="pay", payload={"item": "book"}
    )
    await crash(manual, clock, "t", started)
    await manual.drain()
    response = await handle.response()
    assert (response.status, response.input["step"], effects) == ("input_required", name, [])
    await manual.verify("t", happened=True, result="paid", step=name)
    await manual.drain()
    assert ((await handle.response()).result, effects) == ("paid", [])


@pytest.mark.parametrize(("seen", "calls", "status"), [("paid", 1, "completed"), (False, 2, "failed")])
async def test_a_delegation_is_verified(manual, clock, seen, calls, status):
    effects = []
    manual.register(agents(effects, uncertain, verify=lambda payload, ctx: seen))
    handle = await manual.submit("order", id="t")
    await advance_until_rest(manual, clock, handle)
    response = await handle.response()
    assert (len(effects), response.status) == (calls, status)
    if status == "completed":
        assert response.result == "paid"


async def test_a_delegation_that_certainly_had_no_effect_is_repeated(manual, clock):
    effects = []

    async def busy(ctx):
        if len(effects) < 3:
            raise errors.RateLimitedError(retry_after=0.01)
        return "paid"

    manual.register(agents(effects, busy))
    handle = await manual.submit("order", id="t")
    await advance_until_rest(manual, clock, handle)
    assert ((await handle.response()).result, len(effects)) == ("paid", 3)


async def test_a_repeatable_delegation_is_repeated(manual, clock):
    effects = []

    async def shaky(ctx):
        if len(effects) < 2:
            raise errors.AgentUnavailableError(retry_after=0.01)
        return "paid"

    manual.register(agents(effects, shaky, keyed=True))
    handle = await manual.submit("order", id="t")
    await advance_until_rest(manual, clock, handle)
    assert ((await handle.response()).result, len(set(effects))) == ("paid", 1)
