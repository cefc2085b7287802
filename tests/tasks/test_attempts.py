"""A worker that has lost its task starts nothing more for it, and steps are undone after a lost worker's call must have ended."""

import asyncio

import pytest

from amends.errors import task as errors
from amends.tasks import Agent, Step, sequence
from amends.tasks.attempts import Attempts, operation_of
from amends.tasks.entries import Finished, Started, Taken
from amends.tasks.journal import Fenced, Journal, LeaseGuard, read_task
from tests.tasks.conftest import advance_until_rest
from tests.tasks.crashes import crash


class LostLease:
    """A lease that has run out and belongs to another worker."""

    id, attempt, key, value = "1", 1, "t", b"t"
    expires_in = 0.0

    async def extend(self):
        from amends.stores import LeaseLostError

        raise LeaseLostError("tasks", "1", 1)


def agent_with_everything(calls, **options):
    agent = Agent("worker", setup=lambda: calls.append("setup"))

    @agent.capability(
        verify=lambda payload: calls.append("verify"),
        undo=lambda payload: calls.append("undo"),
        fallback=lambda payload: calls.append("fallback"),
        **options,
    )
    async def work(payload, ctx):
        calls.append("work")

    return agent


@pytest.mark.parametrize("options", [{}, {"idempotent": True}, {"read_only": True}])
async def test_nothing_is_called_without_a_hold(manual, options):
    """Neither the capability nor one of its hooks."""
    calls = []
    manual.register(agent_with_everything(calls, **options))
    await manual.submit("work", id="t")
    found = await read_task(manual.store, "tasks", "t")
    # The log itself would refuse the worker too; here only the guard knows.
    journal = Journal(manual.store, "tasks", found, await manual.store.queue("tasks", lease=30).take())
    journal.guard = LeaseGuard(LostLease())
    attempts = Attempts(manual._registry, journal)
    with pytest.raises(Fenced):
        await attempts.attempt_step("work")
    with pytest.raises(Fenced):
        await attempts.attempt_undo("work")
    with pytest.raises(Fenced):
        await attempts.resolve("work", repeats=False)
    recovery = attempts.recovery(
        manual.agents["worker"], manual.agents["worker"].capabilities["work"], found.state.head.steps[0], "k"
    )
    step = found.state.steps["work"]
    operation = operation_of(manual.agents["worker"].capabilities["work"], "worker", "k")
    for fault in (errors.McpNotConnectedError().fault, errors.KnowledgeNotFoundError().fault):
        with pytest.raises(Fenced):
            await recovery.handle_failure(fault, "work", step, (0.0, 1.0), operation, None, object())
    assert calls == []


@pytest.mark.parametrize("keyed", [True, False])
async def test_a_delegation_is_not_called_without_a_hold(manual, keyed):
    """Also if the capability that delegates catches every exception."""
    calls, agent = [], Agent("worker")

    @agent.capability(read_only=True)
    async def order(payload, ctx):
        run.guard._lease = LostLease()
        for _ in range(3):
            try:
                await ctx.delegate("pay")
            except Exception:
                continue

    @agent.capability(keyed=keyed)
    async def pay(payload):
        calls.append("pay")

    manual.register(agent)
    await manual.submit("order", id="t")
    lease = await manual.store.queue("tasks", lease=30).take()
    from amends.tasks.run import Run

    run = Run(
        manual._registry, Journal(manual.store, "tasks", await read_task(manual.store, "tasks", "t"), lease)
    )
    with pytest.raises(Fenced):
        await run.execute(takeover=False)
    assert calls == []


@pytest.mark.parametrize(("timeout", "wait"), [(7.0, 7.0), (None, 300.0), (900.0, 300.0)])
async def test_a_step_is_undone_when_the_lost_workers_call_must_have_ended(manual, clock, timeout, wait):
    undone, agent = [], Agent("worker")

    @agent.capability(keyed=True, timeout=timeout, undo=lambda payload, result, ctx: undone.append(clock.now))
    async def work(payload, ctx):
        if ctx.step_name == "b":
            raise errors.KnowledgeNotFoundError
        return "done"

    manual.register(agent)
    handle = await manual.submit(sequence(Step(name="a", type="work"), Step(name="b", type="work")), id="t")
    await crash(manual, clock, "t", Taken(at=clock.now, worker="lost"))
    taken_over = clock.now
    await advance_until_rest(manual, clock, handle)
    assert undone == [taken_over + wait]
    assert (await handle.response()).error.details["undone"] == ["a"]


async def test_a_step_that_the_lost_worker_had_finished_is_undone_at_once(manual, clock):
    undone, agent = [], Agent("worker")

    @agent.capability(keyed=True, undo=lambda: undone.append(clock.now))
    async def work(payload, ctx):
        raise errors.KnowledgeNotFoundError

    manual.register(agent)
    handle = await manual.submit(sequence(Step(name="a", type="work"), Step(name="b", type="work")), id="t")
    done = Finished(at=clock.now, step="a", began=clock.now)
    await crash(manual, clock, "t", Taken(at=clock.now, worker="lost"), done)
    taken_over = clock.now
    await advance_until_rest(manual, clock, handle)
    assert undone == [taken_over]


async def test_a_deadline_leaves_an_undo_one_attempt(manual, clock):
    tries, agent = [], Agent("worker")

    async def undo(payload, result, ctx):
        tries.append(ctx.attempt)
        raise errors.AgentUnavailableError

    @agent.capability(keyed=True, undo=undo)
    async def work(payload, ctx):
        if ctx.step_name == "b":
            clock.pass_(20)
            raise errors.KnowledgeNotFoundError

    manual.register(agent)
    plan = sequence(Step(name="a", type="work"), Step(name="b", type="work"))
    handle = await manual.submit(plan, id="t", deadline=10)
    await advance_until_rest(manual, clock, handle)
    assert tries == [1]
    assert (await handle.response()).error.details["notUndone"] == ["a"]


async def test_the_version_and_the_promises_are_recorded(manual):
    agent = Agent("worker", version="1.4.2")

    @agent.capability(undo=lambda: None)
    async def pay(payload):
        return "paid"

    manual.register(agent)
    await manual.submit("pay", id="t")
    await manual.drain()
    records = await manual.records("t")
    started = next(r for r in records if isinstance(r, Started))
    finished = next(r for r in records if isinstance(r, Finished))
    assert (started.version, started.promises, finished.version) == ("1.4.2", "", "1.4.2")
    assert records[0].promises == {"pay": ""}


@pytest.mark.parametrize(
    ("began", "now", "status", "runs"),
    [
        ({}, {"idempotent": True}, "input_required", 0),
        ({"keyed": True}, {}, "input_required", 0),
        ({"keyed": True}, {"idempotent": True}, "input_required", 0),
        ({"read_only": True}, {}, "completed", 1),
        ({"keyed": True}, {"keyed": True}, "completed", 1),
    ],
)
async def test_a_step_that_began_under_other_promises_is_in_doubt(manual, clock, began, now, status, runs):
    """It is not run again under the promises that the code has now."""
    ran = []

    def agent(options):
        made = Agent("worker")

        @made.capability(**options)
        async def pay(payload):
            ran.append(1)

        return made

    old = agent(began)
    manual.register(old)
    handle = await manual.submit("pay", id="t")
    promises = old.capabilities["pay"].promises
    lost = [Taken(at=clock.now, worker="lost", promises={"pay": promises})]
    if not promises:
        lost.append(Started(at=clock.now, step="pay", attempt=1, promises=promises))
    await crash(manual, clock, "t", *lost)
    manual._registry.agents["worker"] = agent(now)
    await manual.drain()
    assert ((await handle.response()).status, len(ran)) == (status, runs)


@pytest.mark.parametrize("hook", ["verify", "undo", "fallback", "setup", "reauth"])
async def test_hooks_have_a_time_limit(manual, clock, hook):
    """The capability's, and they obey the deadline."""
    called, options, agent_options = [], {}, {}

    async def hang(*_):
        called.append(hook)
        await asyncio.sleep(3600)

    if hook in {"setup", "reauth"}:
        agent_options[hook] = hang
    else:
        options[hook] = hang
    agent = Agent("worker", **agent_options)
    raised = {
        "verify": errors.TimeoutError,
        "setup": errors.McpNotConnectedError,
        "reauth": errors.McpAuthFailedError,
    }.get(hook, errors.KnowledgeNotFoundError)

    @agent.capability(timeout=0.05, **options)
    async def work(payload, ctx):
        if payload == "fails" or hook != "undo":
            raised_one = raised()
            raise raised_one
        return "done"

    manual.register(agent)
    steps = Step(name="a", type="work"), Step(name="b", type="work", payload="fails")
    handle = await manual.submit(sequence(*steps), id="t")
    await asyncio.wait_for(advance_until_rest(manual, clock, handle), 20)
    assert hook in called
    assert (await handle.response()).status == "failed"
