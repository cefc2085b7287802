"""Those who wait for tasks hear of them, whoever works on them."""

import asyncio

import pytest

from amends import stores
from amends.tasks import Agent, Step, fan_out
from amends.tasks.entries import Ended
from amends.tasks.wait import Waiting
from tests.tasks.conftest import until
from tests.tasks.crashes import lonely


async def test_waiting_for_what_is_closed(open_at):
    """Whoever waits is told; nothing is remembered about those who are gone."""
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def ask(payload, ctx):
        return ctx.ask("?")

    @agent.capability(read_only=True)
    async def slow(payload):
        await asyncio.sleep(3600)

    orchestrator = await open_at(agent)
    asked = await orchestrator.submit("ask")
    both = await asyncio.gather(asked.wait(), asked.wait())
    assert both[0] == both[1]
    assert len(orchestrator._waiting) == 0
    waiting = asyncio.ensure_future((await orchestrator.submit("slow")).wait())
    await until(lambda: len(orchestrator._waiting))
    await orchestrator.close()
    with pytest.raises(stores.StoreClosedError):
        await waiting


@pytest.mark.parametrize("look", [1, 2])
async def test_closed_while_somebody_looks(open_at, monkeypatch, look):
    """Between two times of listening, too: whoever waits is told."""
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def slow(payload):
        await asyncio.sleep(3600)

    orchestrator = await open_at(agent)
    waiting, looks = orchestrator._waiting, []
    state = waiting._state

    async def closing(store, id):
        found = await state(store, id)
        looks.append(1)
        if len(looks) == look:
            waiting.close()
        return found

    monkeypatch.setattr(waiting, "_state", closing)
    await orchestrator.submit("slow", id="t")
    await until(lambda: not orchestrator._worker.expects("t"))
    with pytest.raises(stores.StoreClosedError):
        await asyncio.wait_for(orchestrator.wait("t"), 100)
    assert len(looks) == look
    assert len(waiting) == 0


async def test_an_answer_while_other_steps_run(open_at):
    """The step that asked goes on at once, not when another one ends."""
    free = asyncio.Event()
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def ask(payload, ctx):
        answer = ctx.ask("?")
        free.set()
        return answer

    @agent.capability(read_only=True)
    async def hold(payload):
        await free.wait()
        return "held"

    orchestrator = await open_at(agent)
    handle = await orchestrator.submit(fan_out(Step(name="a", type="ask"), Step(name="h", type="hold")))

    async def asking():
        return (await orchestrator.state(handle.id)).steps["a"].state == "asking"

    await until(asking)
    await handle.answer("yes", step="a")
    assert (await asyncio.wait_for(handle.wait(), 100)).result == {"a": "yes", "h": "held"}


async def test_many_are_waited_for(open_at):
    """So many logs are followed and no more; the others are looked at now and then, and all are heard of at once here."""
    agent, go = Agent("worker"), asyncio.Event()

    @agent.capability(read_only=True)
    async def work(number):
        await go.wait()
        return number

    orchestrator = await open_at(agent)
    waiting = [
        asyncio.ensure_future((await orchestrator.submit("work", number)).wait()) for number in range(20)
    ]
    await until(lambda: orchestrator._waiting._following == 16)
    go.set()
    assert [(await each).result for each in waiting] == list(range(20))
    assert (orchestrator._waiting._following, len(orchestrator._waiting)) == (0, 0)


async def test_whoever_waits_here_is_told(still):
    """Without a look at the store: what is known here need not be read."""
    still.register(lonely([]))
    await still.submit("work", id="t")
    await still.drain()
    state = await still.state("t")
    waiting = Waiting("tasks", worker=True)
    async with await stores.open("memory:") as empty:
        told = asyncio.ensure_future(waiting.wait(empty, "t", new=True))
        await until(lambda: len(waiting))
        waiting.tell(state)
        assert await told is state


async def test_whoever_is_told_stops_following(still, clock):
    """The log may not go on for hours."""
    await still.submit("work", agent="nobody", id="t")
    waiting = Waiting("tasks", worker=False)
    told = asyncio.ensure_future(waiting.wait(still.store, "t", new=False))
    await until(lambda: waiting._following)
    state = await still.state("t")
    state.apply([Ended(at=clock.now, status="completed")])
    waiting.tell(state)
    assert await asyncio.wait_for(told, 20) is state
    assert (waiting._following, len(waiting)) == (0, 0)


async def test_a_question_that_is_answered_is_none(still):
    """Whoever waits after that waits for what comes of it."""
    agent = Agent("worker")
    agent.capability("ask")(lambda payload, ctx: ctx.ask("?"))
    still.register(agent)
    handle = await still.submit("ask")
    await still.drain()
    assert (await handle.wait()).status == "input_required"
    await handle.answer("yes")
    waiting = asyncio.ensure_future(handle.wait())
    await until(lambda: still._waiting._following or waiting.done())
    await still.drain()
    assert (await asyncio.wait_for(waiting, 100)).result == "yes"
