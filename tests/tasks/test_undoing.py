"""Undoing, partial plans, cancelling and retrying."""

import asyncio

import pytest
from msgspec.structs import replace

from amends import FaultError
from amends.core.backoff import Backoff
from amends.errors import task as errors
from amends.recovery import TASK
from amends.tasks import Agent, Step, fan_out, graph, result_of, sequence
from tests.tasks.agents import booking, calendar
from tests.tasks.conftest import wait_until


async def test_finished_steps_are_undone_in_reverse(open_orchestrator):
    """T5: finished steps are undone before the task fails, and the error reports them."""
    undone = []
    orchestrator = await open_orchestrator(booking(undone))
    steps = [Step(name=what, type="book", payload=what) for what in ("hotel", "flight", "moon")]
    response = await orchestrator.run(sequence(*steps), id="trip")
    assert [each[2] for each in undone] == ["trip/flight/undo", "trip/hotel/undo"]
    assert undone[0][:2] == ("flight", "flight booked")
    error = response.document()["error"]
    assert error["code"] == "COORDINATION_FAILED"
    assert error["details"]["step"] == "moon"
    assert error["details"]["cause"]["code"] == "INVALID_FIELD_VALUE"
    assert error["details"]["undone"] == ["hotel", "flight"]
    assert error["details"]["completed"] == {}


async def test_undoing_is_retried(open_orchestrator):
    """With the same key. A step that cannot be undone is reported, and the others are undone."""
    undone = []
    agent = booking(undone, broken={"flight"})
    quick = replace(TASK, backoff=Backoff(first=0.02))

    async def never(what, result, ctx):
        raise errors.KnowledgeNotFoundError

    @agent.capability(keyed=True, undo=never)
    async def glue(what):
        return "stuck"

    orchestrator = await open_orchestrator(agent, policy=quick)
    steps = [Step(name=what, type="book", payload=what) for what in ("hotel", "flight")]
    steps.insert(1, Step(name="glue", type="glue"))
    response = await orchestrator.run(sequence(*steps, Step(name="moon", type="book", payload="moon")))
    assert [each[0] for each in undone] == ["flight", "flight", "hotel"]
    assert undone[0][2] == undone[1][2]
    details = response.error.details
    assert details["undone"] == ["hotel", "flight"]
    assert details["notUndone"] == ["glue"]
    assert details["completed"] == {"glue": "stuck"}


async def test_undoing_keeps_the_wait_of_a_failure(manual, clock):
    """By a delay of the queue."""
    tries = []
    agent = Agent("worker")

    async def busy(payload, result, ctx):
        tries.append(clock.now)
        if ctx.attempt == 1:
            raise errors.AgentUnavailableError(retry_after=60)

    @agent.capability(keyed=True, undo=busy)
    async def work(payload):
        if payload == "bad":
            raise errors.InvalidFieldValueError(field="/what")

    manual.register(agent)
    steps = Step(name="good", type="work"), Step(name="bad", type="work", payload="bad")
    handle = await manual.submit(sequence(*steps))
    await manual.drain()
    assert len(tries) == 1
    clock.pass_(60)
    await manual.drain()
    assert tries[1] - tries[0] == 60
    assert (await handle.response()).error.details["undone"] == ["good"]


async def test_a_fan_out_may_be_partial(open_orchestrator):
    """Failed optional steps are in `failures`; if all steps fail, the task fails."""
    undone = []
    orchestrator = await open_orchestrator(booking(undone))
    some = [Step(name=what, type="book", payload=what) for what in ("hotel", "moon")]
    response = await orchestrator.run(fan_out(*some, partial=True))
    assert response.ok
    assert response.result == {"hotel": "hotel booked"}
    assert response.document()["failures"]["moon"]["code"] == "INVALID_FIELD_VALUE"
    assert undone == []
    uses = Step(name="after", type="book", payload=result_of("moon"))
    assert (await orchestrator.run(graph([*fan_out(*some, partial=True), uses]))).result[
        "after"
    ] == "None booked"
    none = await orchestrator.run(fan_out(some[1], partial=True))
    assert none.error.code == "COORDINATION_FAILED"


async def test_cancelling(open_orchestrator):
    """Running steps are stopped and finished ones undone; an ended task does not change."""
    undone, started = [], asyncio.Event()
    agent = booking(undone)

    @agent.capability(read_only=True)
    async def forever(payload):
        started.set()
        await asyncio.sleep(3600)

    orchestrator = await open_orchestrator(agent)
    handle = await orchestrator.submit(
        sequence(Step(name="hotel", type="book", payload="hotel"), Step(name="wait", type="forever"))
    )
    await started.wait()
    await handle.cancel()
    response = await handle.wait()
    assert response.status == "cancelled"
    assert response.error is None
    assert [each[0] for each in undone] == ["hotel"]
    assert (await handle.cancel()).status == "cancelled"
    with pytest.raises(FaultError):
        await handle.result()

    started.clear()
    single = await orchestrator.submit("forever")
    await started.wait()
    await single.cancel()
    assert (await single.wait()).status == "cancelled"


async def test_cancelling_a_task_that_waits(open_orchestrator):
    """A task whose next attempt is due in minutes ends at once."""
    agent = calendar()

    @agent.capability(read_only=True)
    async def later(payload):
        raise errors.RateLimitedError(retry_after=250)

    orchestrator = await open_orchestrator(agent)
    handle = await orchestrator.submit("later")

    async def waiting():
        return (await orchestrator.state(handle.id)).release.until is not None

    await wait_until(waiting)
    await handle.cancel()
    assert (await asyncio.wait_for(handle.wait(), 100)).status == "cancelled"


async def test_retrying_a_failed_task(open_orchestrator):
    """Finished steps are kept; undone ones run again with new keys."""
    undone, works = [], []
    agent = booking(undone)

    @agent.capability(read_only=True)
    async def shaky(payload):
        if not works:
            raise errors.KnowledgeNotFoundError
        return "ok"

    @agent.capability(read_only=True)
    async def look(payload):
        works.append("looked")
        works.pop()
        return "seen"

    orchestrator = await open_orchestrator(agent)
    plan = sequence(
        Step(name="look", type="look"),
        Step(name="hotel", type="book", payload="hotel"),
        Step(name="shaky", type="shaky"),
    )
    assert (await orchestrator.run(plan, id="p")).error.code == "COORDINATION_FAILED"
    works.append(1)
    await orchestrator.retry("p")
    response = await orchestrator.get("p").wait()
    assert response.result == {"look": "seen", "hotel": "hotel booked", "shaky": "ok"}
    state = await orchestrator.state("p")
    assert (state.steps["look"].round, state.steps["hotel"].round) == (1, 2)
    with pytest.raises(FaultError):
        await orchestrator.retry("p")
