"""Durable steps in agents: jobs that another node takes over, and what their clients get."""

import asyncio

import pytest

from amends.arcp import connect
from amends.effects import Effects
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


async def test_a_signal_wakes_its_agent_and_counts_once(begin, store_url):
    """Also one that was sent before; each call gets another one, and a repeated id counts once."""
    runtime = await begin(store_url)

    async def plan(input, ctx):
        return [await ctx.signal("go"), await ctx.signal("go"), await ctx.signal("stop", timeout=60)]

    runtime.register_agent("plan", plan)
    async with connect(runtime, token="alice-token") as client:
        handle = await client.submit("plan")
        assert await client.signal(handle.job_id, "stop", "early")
        assert await client.signal(handle.job_id, "go", {"n": 1}, id="one")
        assert not await client.signal(handle.job_id, "go", {"n": 1}, id="one")
        assert await client.signal(handle.job_id, "go", {"n": 2}, id="two")
        async with asyncio.timeout(30):
            assert await handle.done == [{"n": 1}, {"n": 2}, "early"]
        with pytest.raises(FaultError) as late:
            await client.signal(handle.job_id, "go")
        assert late.value.fault.code == "INVALID_REQUEST"


async def test_signals_and_answers_need_the_owner(begin):
    """Another principal learns nothing of the job."""
    runtime = await begin()

    async def plan(input, ctx):
        return await ctx.signal("go", timeout=30)

    runtime.register_agent("plan", plan)
    async with connect(runtime, token="alice-token") as alice, connect(runtime, token="bob-token") as bob:
        handle = await alice.submit("plan")
        for call in (
            bob.signal(handle.job_id, "go", "mine"),
            bob.answer(handle.job_id, "x#1", happened=True),
            bob.steps(handle.job_id),
        ):
            with pytest.raises(FaultError) as refused:
                await call
            assert refused.value.fault.code == "JOB_NOT_FOUND"
        await alice.signal(handle.job_id, "go", "hers")
        assert await handle.done == "hers"


async def test_an_observer_may_not_signal(begin):
    """It sees the job and its steps."""
    runtime = await begin(may_observe=lambda observer, owner: True)

    async def plan(input, ctx):
        return await ctx.signal("go", timeout=30)

    runtime.register_agent("plan", plan)
    async with connect(runtime, token="alice-token") as alice, connect(runtime, token="bob-token") as bob:
        handle = await alice.submit("plan")
        while not (steps := await bob.steps(handle.job_id)):
            await asyncio.sleep(0.01)
        assert (steps[0]["step"], steps[0]["state"]) == ("amends.signal go#1", "waiting")
        with pytest.raises(FaultError) as refused:
            await bob.signal(handle.job_id, "go")
        assert refused.value.fault.code == "PERMISSION_DENIED"
        await alice.signal(handle.job_id, "go")
        await handle.done


async def test_a_signal_that_does_not_come(begin):
    """The time-out counts from the first start, and is raised by every start."""
    runtime = await begin()

    async def plan(input, ctx):
        await ctx.signal("go", timeout=0.05)

    runtime.register_agent("plan", plan)
    async with connect(runtime, token="alice-token") as client:
        with pytest.raises(FaultError) as late:
            await (await client.submit("plan")).done
        assert late.value.fault.code == "TIMEOUT"


async def test_a_signal_that_was_received_is_replayed(begin, store_url):
    """Another node returns the same value, and the next call gets the next signal."""
    received = []

    async def plan(input, ctx, hang):
        received.append(await ctx.signal("go"))
        if ctx.attempt == 1:
            await hang()
        return [received[-1], await ctx.signal("go")]

    async def starting(store=None, **options):
        runtime = await begin(store, **options)
        nodes.append(runtime)
        return runtime

    nodes = []

    async def send():
        while not nodes or not (jobs := [row async for _, row in nodes[0]._node.ledger.active()]):
            await asyncio.sleep(0.01)
        async with connect(nodes[0], token="alice-token") as client:
            await client.signal(jobs[0].job_id, "go", 1, id="a")
            await client.signal(jobs[0].job_id, "go", 2, id="b")

    sending = asyncio.ensure_future(send())
    result, attempts = await interrupted(starting, store_url, "signalled", plan, None)
    await sending
    assert result == [1, 2]
    assert received == [1, 1]
    assert len(attempts) == 2


@pytest.mark.parametrize("happened", [True, False])
async def test_an_answered_job_continues(begin, store_url, happened):
    """With the steps and keys that it had; the author is recorded, and a second answer is refused."""
    runtime = await begin(store_url)
    sent, keys, prepared = [], [], []

    async def plan(input, ctx):
        async def send(text):
            sent.append(text)
            keys.append(ctx.key)
            if len(sent) == 1:
                raise TimeoutError
            return "sent again"

        first = await ctx.step("prepare", lambda: prepared.append(1) or "ready")
        return [first, await ctx.step("mail", send, "hello", key="m", timeout=0.1)]

    runtime.register_agent("plan", plan, repeatable=True)
    async with connect(runtime, token="alice-token") as client:
        handle = await client.submit("plan")
        with pytest.raises(FaultError) as doubt:
            await handle.done
        assert doubt.value.fault.executed == "maybe"
        states = {step["step"]: step for step in await client.steps(handle.job_id)}
        assert {name: step["state"] for name, step in states.items()} == {
            "prepare#1": "done",
            "mail/m": "doubt",
        }
        assert "amends runtime answer" in states["mail/m"]["question"]
        with pytest.raises(FaultError, match="mail/m"):
            await client.answer(handle.job_id, "prepare#1", happened=True)
        await client.answer(handle.job_id, "mail/m", happened=happened, value="found")
        async with asyncio.timeout(30):
            again = await client.subscribe(handle.job_id, history=False)
            result = await again.done
        assert result == ["ready", "found" if happened else "sent again"]
        assert (prepared, len(sent)) == ([1], 1 if happened else 2)
        assert len(set(keys)) == 1
        with pytest.raises(FaultError):
            await client.answer(handle.job_id, "mail/m", happened=not happened)
        states = {step["step"]: step for step in await client.steps(handle.job_id)}
        assert states["mail/m"]["state"] == "done"


async def test_an_answered_delegation_lets_its_parent_continue(begin):
    """The parent does not store the doubt as the outcome: it gets the outcome of the child that continued, and its cost once."""
    runtime = await begin()
    paid = []

    async def pay(input, ctx):
        async def charge(amount):
            paid.append(amount)
            await ctx.metric("cost.payment", 1, "USD")
            raise TimeoutError

        return await ctx.step("charge", charge, input)

    async def plan(input, ctx):
        receipt = await ctx.delegate("pay", 5, lease={"cost.budget": ["USD:5"]})
        return [receipt, ctx.budget, ctx.attempt]

    runtime.register_agent("pay", pay, repeatable=True)
    runtime.register_agent("plan", plan, repeatable=True)
    lease = {"agent.delegate": ["*"], "cost.budget": ["USD:10"]}
    async with connect(runtime, token="alice-token") as client:
        handle = await client.submit("plan", lease=lease)
        with pytest.raises(FaultError):
            await handle.done
        child = next(job.job_id for job in await client.jobs() if job.parent_job_id == handle.job_id)
        await client.answer(child, "charge#1", happened=True, value="receipt")
        await (await client.subscribe(child, history=False)).done
        await client.answer(handle.job_id, "delegate pay#1", happened=True)
        async with asyncio.timeout(30):
            assert await (await client.subscribe(handle.job_id, history=False)).done == [
                "receipt",
                {"USD": "9"},
                2,
            ]
    assert paid == [5]


async def test_effects_of_the_ledger_are_steps(begin, store_url):
    """Another node gets the outcome, though the ledger has forgotten the effect; a second call in one start is told."""
    effects, paid = Effects("memory:"), []

    @effects.once(expires_in=1)
    async def pay(amount):
        paid.append(amount)
        return f"receipt {len(paid)}"

    async def plan(input, ctx, hang):
        first = await pay(5)
        with pytest.raises(FaultError) as done:
            await pay(5)
        await ctx.step("mark", lambda: None)
        await hang()
        return [first, done.value.fault.code]

    result, attempts = await interrupted(begin, store_url, "effects", plan, None)
    assert result == ["receipt 1", "ALREADY_DONE"]
    assert paid == [5]
    assert len(attempts) == 2


async def test_two_jobs_with_one_key_pay_once(begin):
    """The ledger's row is the authority across jobs, and beside a program without any."""
    runtime, effects, paid = await begin(), Effects("memory:"), []

    @effects.once(key="order")
    async def pay(order):
        paid.append(order)
        return "receipt"

    async def plan(input, ctx):
        return await pay(input)

    runtime.register_agent("plan", plan)
    async with connect(runtime, token="alice-token") as client:
        handles = [await client.submit("plan", 17) for _ in range(2)]
        results = await asyncio.gather(*(handle.done for handle in handles), pay(17))
    assert results == ["receipt"] * 3
    assert paid == [17]
