"""Cancelling, deadlines and failed plans: what may have happened is verified, undone, or reported as in doubt."""

import asyncio

import pytest

from amends.errors import task as errors
from amends.tasks import Agent, Orchestrator, Step, fan_out, sequence
from amends.tasks import run as run_module
from tests.tasks.conftest import wait_until
from tests.tasks.crashes import crash, recording_agent


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(run_module, "_SIBLINGS", 0.05, raising=False)
    monkeypatch.setattr(run_module, "_UNDO_STOPPING", 0.05, raising=False)
    monkeypatch.setattr(run_module, "_STOPPING", 0.2, raising=False)


def hanging(effects, begun, **options):
    """An agent whose capability has its effect and then does not return."""
    agent = Agent("worker")

    @agent.capability(**options)
    async def pay(payload, ctx):
        effects.append(ctx.key)
        begun.set()
        await asyncio.sleep(3600)

    return agent


@pytest.mark.parametrize(
    ("options", "verified", "in_doubt", "undone"),
    [
        ({}, None, True, 0),
        ({"keyed": True}, None, True, 0),
        ({"read_only": True}, None, False, 0),
        ({}, "paid", False, 1),
        ({"idempotent": True}, "paid", False, 1),
        ({}, False, False, 0),
    ],
)
async def test_cancelling_a_step_that_may_have_happened(
    open_orchestrator, options, verified, in_doubt, undone
):
    """It is verified and undone if it happened; if that is unknown, the response says so."""
    effects, begun, undos = [], asyncio.Event(), []
    if verified is not None:
        options = options | {"verify": lambda payload, ctx: verified}
    agent = hanging(effects, begun, undo=lambda payload, result: undos.append(result), **options)
    orchestrator = await open_orchestrator(agent)
    handle = await orchestrator.submit("pay", id="t")
    await asyncio.wait_for(begun.wait(), 20)
    await handle.cancel()
    response = await asyncio.wait_for(handle.wait(), 20)
    assert response.status == "cancelled"
    assert undos == ["paid"] * undone
    if in_doubt:
        assert response.error.details == {"inDoubt": ["pay"]}
        assert response.document()["error"]["recoverable"]
    else:
        assert response.error is None


async def test_a_retry_after_a_cancellation_in_doubt_does_not_repeat_the_step(open_orchestrator):
    effects, begun = [], asyncio.Event()
    orchestrator = await open_orchestrator(hanging(effects, begun))
    handle = await orchestrator.submit("pay", id="t")
    await asyncio.wait_for(begun.wait(), 20)
    await handle.cancel()
    await asyncio.wait_for(handle.wait(), 20)
    await orchestrator.retry("t")
    response = await asyncio.wait_for(handle.wait(), 20)
    assert (response.status, response.input["kind"], len(effects)) == ("input_required", "verify", 1)
    await orchestrator.verify("t", happened=True, result="paid")
    assert (await asyncio.wait_for(handle.wait(), 20)).result == "paid"
    assert len(effects) == 1


@pytest.mark.parametrize("verify_first", [True, False])
async def test_a_retry_after_a_failure_in_doubt_does_not_repeat_the_step(manual, verify_first):
    """An uncertain failure of a step without promises: the task fails, and only a verification lets the step run again."""
    effects, agent = [], Agent("worker")

    @agent.capability
    async def pay(payload):
        effects.append(1)
        raise errors.TimeoutError

    manual.register(agent)
    await manual.submit("pay", id="t")
    await manual.drain()
    response = await manual.get("t").response()
    assert (response.status, response.error.code) == ("failed", "TIMEOUT")
    assert response.error.details["inDoubt"] == ["pay"]
    assert response.document()["error"]["recoverable"]
    if verify_first:
        await manual.verify("t", happened=True, result="paid")
    await manual.retry("t")
    await manual.drain()
    response = await manual.get("t").response()
    if verify_first:
        assert (response.status, response.result) == ("completed", "paid")
    else:
        assert (response.status, response.input["kind"]) == ("input_required", "verify")
    assert len(effects) == 1


async def test_a_retry_repeats_what_certainly_had_no_effect(manual):
    effects, agent = [], Agent("worker")

    @agent.capability
    async def pay(payload):
        effects.append(1)
        if len(effects) == 1:
            raise errors.KnowledgeNotFoundError
        return "paid"

    manual.register(agent)
    await manual.submit("pay", id="t")
    await manual.drain()
    assert "inDoubt" not in (await manual.get("t").response()).error.details
    await manual.retry("t")
    await manual.drain()
    assert (await manual.get("t").response()).result == "paid"


async def test_a_call_that_ignores_its_cancellation(open_orchestrator):
    """Cancelling does not wait for it."""
    agent, begun, stop = Agent("worker"), asyncio.Event(), asyncio.Event()

    @agent.capability
    async def stubborn(payload):
        begun.set()
        while not stop.is_set():
            try:
                await asyncio.wait_for(stop.wait(), 60)
            except asyncio.CancelledError:
                continue

    orchestrator = await open_orchestrator(agent)
    handle = await orchestrator.submit("stubborn")
    await begun.wait()
    await handle.cancel()
    response = await asyncio.wait_for(handle.wait(), 20)
    assert (response.status, response.error.details["inDoubt"]) == ("cancelled", ["stubborn"])
    stop.set()


async def test_cancelling_ends_a_hanging_undo(open_orchestrator):
    """The other steps are undone, and the response names the one that is not."""
    undos, hanging_undo = [], asyncio.Event()
    agent = Agent("worker")

    async def undo(payload, result, ctx):
        undos.append(ctx.step_name)
        if ctx.step_name == "b":
            hanging_undo.set()
            await asyncio.sleep(3600)

    @agent.capability(keyed=True, undo=undo)
    async def work(payload, ctx):
        if ctx.step_name == "c":
            raise errors.KnowledgeNotFoundError

    orchestrator = await open_orchestrator(agent)
    handle = await orchestrator.submit(sequence(*(Step(name=name, type="work") for name in "abc")))
    await asyncio.wait_for(hanging_undo.wait(), 20)
    await handle.cancel()
    response = await asyncio.wait_for(handle.wait(), 20)
    assert response.status == "failed"
    assert undos == ["b", "a"]
    assert response.error.details["notUndone"] == ["b"]
    assert response.error.details["undone"] == ["a"]


async def test_a_failed_plan_cancels_hanging_siblings(open_orchestrator):
    """Those that may have happened are in doubt; those that only read are not."""
    agent, begun = Agent("worker"), []

    @agent.capability
    async def write(payload, ctx):
        begun.append(1)
        await asyncio.sleep(3600)

    @agent.capability(read_only=True)
    async def read(payload, ctx):
        begun.append(1)
        await asyncio.sleep(3600)

    @agent.capability(read_only=True)
    async def fail(payload):
        await wait_until(lambda: len(begun) == 2)
        raise errors.KnowledgeNotFoundError

    orchestrator = await open_orchestrator(agent)
    steps = [Step(name=name, type=name) for name in ("write", "read", "fail")]
    response = await asyncio.wait_for(orchestrator.run(fan_out(*steps)), 20)
    assert response.error.code == "COORDINATION_FAILED"
    assert response.error.details["step"] == "fail"
    assert response.error.details["inDoubt"] == ["write"]


async def test_siblings_that_end_soon_are_completed_and_undone(open_orchestrator):
    undos, failed, agent = [], asyncio.Event(), Agent("worker")

    @agent.capability(undo=lambda payload, result: undos.append(result))
    async def write(payload):
        await failed.wait()
        return "written"

    @agent.capability(read_only=True)
    async def fail(payload):
        failed.set()
        raise errors.KnowledgeNotFoundError

    orchestrator = await open_orchestrator(agent)
    steps = [Step(name=name, type=name) for name in ("write", "fail")]
    await asyncio.wait_for(orchestrator.run(fan_out(*steps)), 20)
    assert undos == ["written"]


@pytest.mark.parametrize("kind", ["asking", "doubt"])
async def test_a_deadline_ends_a_task_that_waits_for_input(manual, clock, kind):
    agent = Agent("worker")

    @agent.capability
    async def work(payload, ctx):
        return ctx.ask("Which one?")

    manual.register(agent)
    await manual.submit("work", id="t", deadline=100)
    if kind == "doubt":
        from amends.tasks.entries import Started

        await crash(manual, clock, "t", Started(at=clock.now, step="work", attempt=1))
    await manual.drain()
    assert (await manual.get("t").response()).status == "input_required"
    assert [row.status async for row in manual.list()] == ["input_required"]
    clock.pass_(40)
    await manual.drain()
    assert (await manual.get("t").response()).status == "input_required"
    clock.pass_(61)
    await manual.drain()
    response = await manual.get("t").response()
    assert (response.status, response.error.code, response.error.recovery) == (
        "failed",
        "TIMEOUT",
        "terminal",
    )
    assert ("inDoubt" in (response.error.details or {})) == (kind == "doubt")


async def test_an_answer_before_the_deadline(manual, clock):
    agent = Agent("worker")

    @agent.capability
    async def work(payload, ctx):
        return ctx.ask("Which one?")

    manual.register(agent)
    await manual.submit("work", id="t", deadline=100)
    await manual.drain()
    await manual.answer("t", "this one")
    await manual.drain()
    assert (await manual.get("t").response()).result == "this one"
    clock.pass_(200)
    await manual.drain()
    assert (await manual.get("t").response()).result == "this one"


async def test_a_task_is_blamed_only_after_it_ran_by_itself(open_orchestrator, store):
    """After too many lost workers, a task runs alone; it fails only if the worker is lost again."""
    orchestrator = await open_orchestrator(worker=False)
    ran, agent = [], recording_agent([], read_only=True)

    @agent.capability(read_only=True)
    async def count(payload, ctx):
        ran.append(len(worker._worker._runs))
        await asyncio.sleep(0.05)

    for number in range(6):
        await orchestrator.submit("count", agent="worker", id=f"t{number}")
    for number in (0, 1):
        log = store.log(f"tasks/t{number}")
        from amends.tasks.entries import Taken, encode

        await log.append(encode([Taken(at=1.0, worker="dead", takeover=True) for _ in range(9)]))
    worker = await open_orchestrator(agent)
    for number in range(6):
        response = await asyncio.wait_for(worker.get(f"t{number}").wait(), 60)
        assert response.ok, response
    assert ran.count(1) >= 2
    for number in (0, 1):
        taken = [r for r in await worker.records(f"t{number}") if type(r).__name__ == "Taken"]
        assert taken[-1].alone
    taken = [r for r in await worker.records("t2") if type(r).__name__ == "Taken"]
    assert not any(record.takeover or record.alone for record in taken)


@pytest.mark.parametrize("undo", [True, False])
async def test_cancelling_a_step_that_ends_all_the_same(open_orchestrator, undo):
    """Its result is known, so it is undone like any finished step, also in a task of one step."""
    begun, undos, agent = asyncio.Event(), [], Agent("worker")

    @agent.capability(undo=(lambda payload, result: undos.append(result)) if undo else None)
    async def pay(payload):
        begun.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return "paid"

    orchestrator = await open_orchestrator(agent)
    handle = await orchestrator.submit("pay", id="t")
    await asyncio.wait_for(begun.wait(), 20)
    await handle.cancel()
    response = await handle.wait(timeout=20)
    assert response.status == "cancelled"
    assert undos == ["paid"] * undo
    assert (response.error is None) == undo
    assert undo or response.error.details == {"completed": {"pay": "paid"}}


async def test_a_cancellation_before_the_end_is_written(store):
    """The step ended before the worker read the cancellation, which is in the log before the step's end: the step is undone."""
    undos, agent, sent = [], Agent("worker"), []
    async with (
        Orchestrator([agent], store=store, lease=5, keep=None) as orchestrator,
        Orchestrator(store=store, worker=False) as other,
    ):

        @agent.capability(idempotent=True, undo=lambda payload, result: undos.append(result))
        async def pay(payload):
            sent.append(await other.cancel("t"))
            return "paid"

        orchestrator.register(agent)
        response = await orchestrator.run("pay", id="t", timeout=20)
    assert len(sent) == 1
    assert (response.status, undos) == ("cancelled", ["paid"])
