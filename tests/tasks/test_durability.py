"""Crashes between any two lines: what was finished stays, what must not happen twice does not, and late ones are fenced."""

import asyncio
from contextlib import suppress

import pytest

from amends import stores
from amends.errors import task as errors
from amends.tasks import Agent, Step, entries, sequence
from amends.tasks.entries import Started, Taken
from amends.tasks.journal import Fenced
from amends.tasks.task_reader import log_name, read
from tests.tasks.conftest import until
from tests.tasks.crashes import SHORT, crash, lonely, paused_worker, records


@pytest.mark.parametrize("safe", [True, False])
async def test_a_late_worker_is_fenced(open_at, store, safe):
    """A worker that was paused past its lease finishes nothing, on every backend; what it began is looked at first."""
    wake, begun = asyncio.Event(), []

    def agent(where):
        made = Agent("worker")

        @made.capability(read_only=safe)
        async def work(payload):
            begun.append(where)
            if where == "paused":
                await wake.wait()
            return where

        return made

    client = await open_at(worker=False, lease=SHORT)
    await client.submit("work", agent="worker", id="t")
    async with paused_worker(store, [agent("paused")], "t") as (_, paused):
        await until(lambda: begun == ["paused"])
        rescuer = await open_at(agent("rescuer"), lease=SHORT)
        response = await asyncio.wait_for(rescuer.get("t").wait(), 100)
        if safe:
            assert response.result == "rescuer"
        else:
            assert response.status == "input_required"
            assert response.input["kind"] == "verify"
        wake.set()
        with pytest.raises((Fenced, stores.LeaseLostError)):
            await paused
    if not safe:
        assert begun == ["paused"]
        await rescuer.verify("t", happened=True, result="somebody looked")
        assert (await rescuer.get("t").wait()).result == "somebody looked"
    ends = [record for record in await records(client, "t") if isinstance(record, entries.Ended)]
    assert len(ends) == 1
    taken = [record for record in await records(client, "t") if isinstance(record, Taken)]
    assert taken[0].takeover


async def test_an_interrupted_step_that_is_safe_is_repeated(still, clock):
    """And finished ones are not."""
    ran = []
    still.register(lonely(ran, keyed=True))
    plan = sequence(*(Step(name=name, type="work") for name in "abc"))
    handle = await still.submit(plan, id="t")
    done = entries.Finished(at=clock.now, step="a", began=clock.now, result="A")
    await crash(still, clock, "t", done)
    await still.drain()
    assert ran == [("b", 1, "t/b"), ("c", 1, "t/c")]
    assert (await handle.response()).result == {"a": "A", "b": "b", "c": "c"}


@pytest.mark.parametrize(
    ("look", "status", "runs"),
    [(None, "input_required", 0), (False, "completed", 1), ("it did", "completed", 0)],
)
async def test_an_interrupted_step_that_is_not(still, clock, look, status, runs):
    """It is looked at, by the agent's own eyes where it has some; otherwise it waits for somebody's."""
    ran = []
    verify = (lambda payload, ctx: look) if look is not None else None
    still.register(lonely(ran, verify=verify))
    handle = await still.submit("work", id="t")
    await crash(still, clock, "t", Started(at=clock.now, step="work", attempt=1))
    await still.drain()
    response = await handle.response()
    assert (response.status, len(ran)) == (status, runs)
    if look is None:
        assert await still.drain() == 0
        await still.verify("t", happened=False)
        await still.drain()
        assert (await handle.response()).result == "work"
        assert ran == [("work", 1, "t/work")]
        with pytest.raises(errors.InvalidFieldValueError):
            await still.verify("t", happened=True)


async def test_in_doubt_with_nobody_who_knows(still, clock):
    """The agent is gone: somebody has to look, all the same."""
    handle = await still.submit("work", agent="worker", id="t")
    await crash(still, clock, "t", Started(at=clock.now, step="work", attempt=1))
    await still.drain()
    assert (await handle.response()).status == "input_required"


async def test_undoing_goes_on_after_a_crash(still, clock):
    """In reverse, from where it was."""
    undone = []
    agent = Agent("worker")

    @agent.capability(
        keyed=True, undo=lambda payload, result, ctx: undone.append((ctx.step, ctx.key, result))
    )
    async def work(payload):
        raise AssertionError

    still.register(agent)
    plan = sequence(*(Step(name=name, type="work") for name in "abcd"))
    await still.submit(plan, id="t")
    now = clock.now
    fault = errors.KnowledgeNotFoundError().fault
    await crash(
        still,
        clock,
        "t",
        *(entries.Finished(at=now, step=name, began=now, result=name) for name in "abc"),
        entries.Undoing(at=now, fault=fault),
        entries.Finished(at=now, step="c", began=now, undo=True),
    )
    await still.drain()
    assert undone == [("b", "t/b/undo", "b"), ("a", "t/a/undo", "a")]
    response = await still.get("t").response()
    assert response.error.details["undone"] == ["a", "b", "c"]
    assert response.error.details["cause"]["code"] == "KNOWLEDGE_NOT_FOUND"


async def test_a_task_that_kills_its_workers(still, clock):
    """After too many of them it is given up, undone if possible, and says why."""
    still._house.takeovers = 3
    still.register(lonely([], read_only=True))
    plan = sequence(Step(name="a", type="work"), Step(name="b", type="work"))
    await still.submit(plan, id="t")
    for _ in range(3):
        await crash(still, clock, "t", Taken(at=clock.now, worker="dead", takeover=True))
    await still.drain()
    response = await still.get("t").response()
    assert response.status == "failed"
    assert response.error.recovery == "terminal"
    assert response.error.errors[0].details == {"workersLost": 4}


async def test_undoing_that_kills_its_workers(still, clock):
    """It is not tried for ever either."""
    still._house.takeovers = 2
    agent = Agent("worker")

    @agent.capability(keyed=True, undo=lambda: None)
    async def work(payload):
        raise AssertionError

    still.register(agent)
    await still.submit(sequence(Step(name="a", type="work"), Step(name="b", type="work")), id="t")
    now = clock.now
    done = entries.Finished(at=now, step="a", began=now)
    await crash(still, clock, "t", done, entries.Undoing(at=now, fault=errors.McpError().fault))
    for _ in range(3):
        await crash(still, clock, "t", Taken(at=now, worker="dead", takeover=True))
    await still.drain()
    response = await still.get("t").response()
    assert response.status == "failed"
    assert "undone" not in response.error.details


async def test_a_dead_worker_leaves_a_call(open_at):
    """A run that loses its lease stops what it began."""
    stopped = asyncio.Event()
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def work(payload):
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.set()

    orchestrator = await open_at(agent, lease=SHORT)
    await orchestrator.submit(sequence(Step(name="a", type="work"), Step(name="b", type="work")), id="t")

    async def running():
        return any(run is not None and run.state.held for run in orchestrator._worker._runs.values())

    await until(running)
    (run,) = orchestrator._worker._runs.values()

    async def taken_over():
        # Behind whatever the run has just written.
        _, last = await read(orchestrator.store, "tasks", "t")
        with suppress(stores.ConflictError):
            await orchestrator.store.log(log_name("tasks", "t")).append(
                entries.encode([Taken(at=1.0, worker="other", takeover=True)]), last=last
            )
            return True
        return False

    await until(taken_over)
    await asyncio.wait_for(stopped.wait(), 100)
    await until(lambda: run not in orchestrator._worker._runs.values())


async def test_undoing_what_nobody_here_can(still, clock):
    """The agent that did it is gone: said so, and the rest is undone."""
    undone = []
    agent = Agent("worker")

    @agent.capability(keyed=True, undo=lambda payload, result, ctx: undone.append(ctx.step))
    async def work(payload):
        raise AssertionError

    still.register(agent)
    plan = sequence(
        Step(name="a", type="work"), Step(name="b", type="gone", agent="gone"), Step(name="c", type="work")
    )
    still._works = False
    await still.submit(plan, id="t")
    now = clock.now
    done = [entries.Finished(at=now, step=name, began=now) for name in "ab"]
    fault = errors.KnowledgeNotFoundError().fault
    await crash(still, clock, "t", *done, entries.Undoing(at=now, fault=fault))
    await still.drain()
    assert undone == ["a"]
    details = (await still.get("t").response()).error.details
    assert (details["undone"], details["notUndone"]) == (["a"], ["b"])
