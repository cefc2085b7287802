"""Crashes: finished steps are kept, steps that must not happen twice are verified, and paused workers are fenced."""

import asyncio
from contextlib import suppress

import pytest

from amends import FaultError, stores
from amends.errors import task as errors
from amends.tasks import Agent, Step, entries, sequence
from amends.tasks.entries import Started, Taken
from amends.tasks.journal import Fenced, log_name, read_task
from tests.tasks.conftest import wait_until
from tests.tasks.crashes import SHORT, crash, paused_worker, recording_agent, records


@pytest.mark.parametrize("safe", [True, False])
async def test_a_paused_worker_is_fenced(open_orchestrator, store, safe):
    """A worker that was paused for longer than its lease cannot finish its task, on every backend."""
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

    client = await open_orchestrator(worker=False, lease=SHORT)
    await client.submit("work", agent="worker", id="t")
    async with paused_worker(store, [agent("paused")], "t") as (_, paused):
        await wait_until(lambda: begun == ["paused"])
        rescuer = await open_orchestrator(agent("rescuer"), lease=SHORT)
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
        await rescuer.verify("t", happened=True, result="verified")
        assert (await rescuer.get("t").wait()).result == "verified"
    ends = [record for record in await records(client, "t") if isinstance(record, entries.Ended)]
    assert len(ends) == 1
    taken = [record for record in await records(client, "t") if isinstance(record, Taken)]
    assert [record.takeover for record in taken][:2] == [False, True]


async def test_an_interrupted_repeatable_step_is_repeated(manual, clock):
    """Finished steps are not."""
    ran = []
    manual.register(recording_agent(ran, keyed=True))
    plan = sequence(*(Step(name=name, type="work") for name in "abc"))
    handle = await manual.submit(plan, id="t")
    done = entries.Finished(at=clock.now, step="a", began=clock.now, result="A")
    await crash(manual, clock, "t", done)
    await manual.drain()
    assert ran == [("b", 1, "t/b"), ("c", 1, "t/c")]
    assert (await handle.response()).result == {"a": "A", "b": "b", "c": "c"}


@pytest.mark.parametrize(
    ("verified", "status", "runs"),
    [(None, "input_required", 0), (False, "completed", 1), ("it did", "completed", 0)],
)
async def test_an_interrupted_step_is_verified(manual, clock, verified, status, runs):
    """With `verify`, the capability decides whether it happened; without, the task waits for a command."""
    ran = []
    verify = (lambda payload, ctx: verified) if verified is not None else None
    manual.register(recording_agent(ran, verify=verify))
    handle = await manual.submit("work", id="t")
    await crash(manual, clock, "t", Started(at=clock.now, step="work", attempt=1))
    await manual.drain()
    response = await handle.response()
    assert (response.status, len(ran)) == (status, runs)
    if verified is None:
        with pytest.raises(FaultError, match="not known") as waits:
            await handle.result(timeout=5)
        # It does not invite to submit the task again.
        assert (waits.value.fault.executed, waits.value.fault.recovery) == ("maybe", "uncertain")
        assert await manual.drain() == 0
        await manual.verify("t", happened=False)
        await manual.drain()
        assert (await handle.response()).result == "work"
        assert ran == [("work", 1, "t/work")]
        with pytest.raises(errors.InvalidFieldValueError):
            await manual.verify("t", happened=True)


async def test_an_interrupted_step_of_a_missing_agent(manual, clock):
    """Without the agent, the task waits for a command."""
    handle = await manual.submit("work", agent="worker", id="t")
    await crash(manual, clock, "t", Started(at=clock.now, step="work", attempt=1))
    await manual.drain()
    assert (await handle.response()).status == "input_required"


async def test_undoing_goes_on_after_a_crash(manual, clock):
    """Another worker undoes the remaining steps in reverse."""
    undone = []
    agent = Agent("worker")

    @agent.capability(
        keyed=True, undo=lambda payload, result, ctx: undone.append((ctx.step_name, ctx.key, result))
    )
    async def work(payload):
        raise AssertionError

    manual.register(agent)
    plan = sequence(*(Step(name=name, type="work") for name in "abcd"))
    await manual.submit(plan, id="t")
    now = clock.now
    fault = errors.KnowledgeNotFoundError().fault
    await crash(
        manual,
        clock,
        "t",
        *(entries.Finished(at=now, step=name, began=now, result=name) for name in "abc"),
        entries.Undoing(at=now, fault=fault),
        entries.Finished(at=now, step="c", began=now, undo=True),
    )
    await manual.drain()
    assert undone == [("b", "t/b/undo", "b"), ("a", "t/a/undo", "a")]
    response = await manual.get("t").response()
    assert response.error.details["undone"] == ["a", "b", "c"]
    assert response.error.details["cause"]["code"] == "KNOWLEDGE_NOT_FOUND"


async def test_a_task_is_given_up_after_too_many_lost_workers(manual, clock):
    """The error has the number of lost workers."""
    manual._registry.takeovers = 3
    manual.register(recording_agent([], read_only=True))
    plan = sequence(Step(name="a", type="work"), Step(name="b", type="work"))
    await manual.submit(plan, id="t")
    for alone in (False, False, True):
        await crash(manual, clock, "t", Taken(at=clock.now, worker="dead", takeover=True, alone=alone))
    await manual.drain()
    response = await manual.get("t").response()
    assert response.status == "failed"
    assert response.error.recovery == "terminal"
    assert response.error.errors[0].details == {"workersLost": 4}


async def test_undoing_is_given_up_after_too_many_lost_workers(manual, clock):
    """Undoing is not attempted for ever."""
    manual._registry.takeovers = 2
    agent = Agent("worker")

    @agent.capability(keyed=True, undo=lambda: None)
    async def work(payload):
        raise AssertionError

    manual.register(agent)
    await manual.submit(sequence(Step(name="a", type="work"), Step(name="b", type="work")), id="t")
    now = clock.now
    done = entries.Finished(at=now, step="a", began=now)
    await crash(manual, clock, "t", done, entries.Undoing(at=now, fault=errors.McpError().fault))
    for _ in range(3):
        await crash(manual, clock, "t", Taken(at=now, worker="dead", takeover=True))
    await manual.drain()
    response = await manual.get("t").response()
    assert response.status == "failed"
    assert "undone" not in response.error.details


async def test_a_run_that_is_taken_over_stops_its_calls(open_orchestrator):
    """The worker notices that another one has the task, and cancels the capability."""
    stopped = asyncio.Event()
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def work(payload):
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.set()

    orchestrator = await open_orchestrator(agent, lease=SHORT)
    await orchestrator.submit(sequence(Step(name="a", type="work"), Step(name="b", type="work")), id="t")

    async def running():
        return any(run is not None and run.state.held for run in orchestrator._worker._runs.values())

    await wait_until(running)
    (run,) = orchestrator._worker._runs.values()

    async def taken_over():
        # After the last entry that the run has written.
        _, last, _ = await read_task(orchestrator.store, "tasks", "t")
        with suppress(stores.ConflictError):
            await orchestrator.store.log(log_name("tasks", "t")).append(
                entries.encode([Taken(at=1.0, worker="other", takeover=True)]), last=last
            )
            return True
        return False

    await wait_until(taken_over)
    await asyncio.wait_for(stopped.wait(), 100)
    await wait_until(lambda: run not in orchestrator._worker._runs.values())


async def test_undoing_a_step_of_a_missing_agent(manual, clock):
    """The step is in `notUndone`, and the other steps are undone."""
    undone = []
    agent = Agent("worker")

    @agent.capability(keyed=True, undo=lambda payload, result, ctx: undone.append(ctx.step_name))
    async def work(payload):
        raise AssertionError

    manual.register(agent)
    plan = sequence(
        Step(name="a", type="work"), Step(name="b", type="gone", agent="gone"), Step(name="c", type="work")
    )
    manual._works = False
    await manual.submit(plan, id="t")
    now = clock.now
    done = [entries.Finished(at=now, step=name, began=now) for name in "ab"]
    fault = errors.KnowledgeNotFoundError().fault
    await crash(manual, clock, "t", *done, entries.Undoing(at=now, fault=fault))
    await manual.drain()
    assert undone == ["a"]
    details = (await manual.get("t").response()).error.details
    assert (details["undone"], details["notUndone"]) == (["a"], ["b"])
