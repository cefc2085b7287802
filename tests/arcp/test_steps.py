"""Durable steps in agents: jobs that another node takes over, and what their clients get."""

import asyncio

import pytest

from amends.arcp import connect
from amends.errors import FaultError


async def interrupted(begin, store_url, name, agent, input, **submission):
    """Start a job on a node that is then suspended while its agent waits; return its end on another node, and both nodes."""
    reached, attempts = asyncio.Event(), []

    async def interruptible(input, ctx):
        attempts.append((ctx.attempt, ctx.run, ctx.replaying))

        async def hang():
            if ctx.attempt == 1:
                reached.set()
                await asyncio.Event().wait()

        return await agent(input, ctx, hang)

    first = await begin(store_url, limits={"node_lease": 30.0})
    second = await begin(store_url, limits={"node_lease": 0.4})
    first.register_agent(name, interruptible, repeatable=True)
    async with connect(first, token="alice-token") as mine, connect(second, token="alice-token") as other:
        handle = await mine.submit(name, input, **submission)
        async with asyncio.timeout(60):
            await reached.wait()
        second.register_agent(name, interruptible, repeatable=True)

        async def silent():
            pass

        first._node.membership.announce = silent
        await first._node.store.table("arcp.nodes").delete(first._node.id)
        watched = await other.subscribe(handle.job_id)
        async with asyncio.timeout(60):
            try:
                return await watched.done, attempts
            except FaultError as error:
                return error, attempts


async def test_a_job_continues_on_another_node(begin, store_url):
    """Ended steps are returned, the waiting one is called; time and ids are the same; `run` stays and `attempt` counts."""
    called, seen = [], []

    async def plan(input, ctx, hang):
        async def work(number):
            called.append(number)
            return {"n": number}

        found = [await ctx.step("work", work, number) for number in range(3)]
        seen.append((await ctx.now(), await ctx.uuid(), await ctx.random()))
        await hang()
        return [each["n"] for each in found] + [(await ctx.step("work", work, 3))["n"]]

    result, attempts = await interrupted(begin, store_url, "plan", plan, None)
    assert result == [0, 1, 2, 3]
    assert called == [0, 1, 2, 3]
    assert seen[0] == seen[1]
    assert attempts == [(1, 1, False), (2, 1, True)]


async def test_an_interrupted_step_ends_the_job_in_doubt(begin, store_url):
    """Without `verify`: the mail may have been sent, and is not sent again."""
    sent = []

    async def plan(input, ctx, hang):
        async def send(text):
            sent.append(text)
            await hang()

        await ctx.step("mail", send, "hello")

    error, attempts = await interrupted(begin, store_url, "mailing", plan, None)
    assert isinstance(error, FaultError)
    assert error.fault.executed == "maybe"
    assert sent == ["hello"]
    assert len(attempts) == 2


async def test_another_call_under_the_same_identity_stops_the_job(begin, store_url):
    """The model words it differently after the restart: nothing is called."""
    paid = []

    async def plan(input, ctx, hang):
        async def pay(amount):
            paid.append(amount)

        await ctx.step("pay", pay, 5 if ctx.attempt == 1 else 6, key="order-1")
        await hang()

    error, _ = await interrupted(begin, store_url, "rewording", plan, None)
    assert isinstance(error, FaultError)
    assert paid == [5]


@pytest.mark.parametrize("fails", [False, True])
async def test_a_delegated_job_is_joined(begin, store_url, fails):
    """It runs once and its outcome, also a failure, is the same for the second start."""
    runs, seen = [], []

    async def plan(input, ctx, hang):
        try:
            seen.append(await ctx.delegate("pay", 17, key="order-17"))
        except FaultError as error:
            seen.append(error.fault.code)
        await hang()
        return seen[-1]

    async def pay(input, ctx):
        runs.append(input)
        if fails:
            raise FaultError("No such account", code="NOT_FOUND", executed="no")
        return f"receipt {input}"

    async def starting(store=None, **options):
        runtime = await begin(store, **options)
        runtime.register_agent("pay", pay)
        return runtime

    result, attempts = await interrupted(
        starting, store_url, "delegating_once", plan, None, lease={"agent.delegate": ["*"]}
    )
    assert len(attempts) == 2
    assert runs == [17]
    assert seen[0] == seen[1] == result


async def test_steps_are_not_sent_to_clients(begin):
    """The journal is the runtime's own."""
    runtime = await begin()

    async def plan(input, ctx):
        await ctx.step("a", lambda: 1)
        await ctx.log("between")
        return await ctx.step("b", lambda: 2)

    runtime.register_agent("plan", plan)
    async with connect(runtime, token="alice-token") as client:
        handle = await client.submit("plan")
        events = [event.kind async for event in handle.events()]
        assert await handle.done == 2
    assert events == ["log"]
