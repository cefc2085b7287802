"""Crashes between any two lines: what was finished stays, what must not happen twice does not, and late ones are fenced."""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest
from msgspec.structs import replace

from amends import stores
from amends.errors import task as errors
from amends.stores.errors import StoreUnavailableError
from amends.tasks import Agent, Orchestrator, Step, entries, fan_out, sequence
from amends.tasks.entries import Doubted, Started, Submitted, Taken
from amends.tasks.house import House
from amends.tasks.journal import Fenced, Journal
from amends.tasks.listing import Listing
from amends.tasks.reading import log_name, read
from amends.tasks.run import Run
from amends.tasks.submitting import submit
from amends.tasks.sweeping import sweep
from tests.tasks.conftest import through_time, until

SHORT = 0.4


async def records(orchestrator, id):
    found = []
    for entry in await orchestrator.store.log(log_name("tasks", id)).read(limit=1000):
        found += entries.decode(entry.value)
    return found


@asynccontextmanager
async def paused_worker(store, agents, id):
    """A worker that has taken the task, and forgets to say that it lives."""
    queue = store.queue("tasks", lease=SHORT)
    lease = await queue.take(wait=10)
    state, last = await read(store, "tasks", id)
    house = House("paused")
    house.register(agents)
    run = Run(house, Journal(store, "tasks", state, last, lease))
    task = asyncio.ensure_future(run.go(takeover=False))
    yield run, task
    if not task.done():
        task.cancel()
    await asyncio.wait([task])


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


def lonely(steps_run, **promises):
    agent = Agent("worker")

    @agent.capability(**promises)
    async def work(payload, ctx):
        steps_run.append((ctx.step, ctx.attempt, ctx.key))
        return ctx.step

    return agent


async def crash(orchestrator, clock, id, *more):
    """A worker took the message, perhaps wrote something, and died."""
    lease = await orchestrator.store.queue("tasks", lease=30).take()
    assert lease is not None
    if more:
        _, last = await read(orchestrator.store, "tasks", id)
        await orchestrator.store.log(log_name("tasks", id)).append(entries.encode(more), last=last)
    clock.pass_(31)


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


async def test_a_worker_that_stops_hands_over(open_at, store):
    """What can be repeated goes on elsewhere at once; what is in doubt waits for its lease and a look."""
    begun = asyncio.Event()

    def agent(hold):
        made = Agent("worker")

        @made.capability(read_only=True)
        async def work(payload):
            begun.set()
            if hold:
                await asyncio.sleep(3600)
            return "done"

        return made

    first = await open_at(agent(True))
    handle = await first.submit("work", id="t")
    await begun.wait()
    await first.close()
    second = await open_at(agent(False))
    assert (await asyncio.wait_for(second.get("t").wait(), 100)).result == "done"
    assert handle.id == "t"


async def test_a_worker_that_is_let_finish(open_at):
    """Grace: running tasks end before the worker does."""
    begun = asyncio.Event()
    agent = Agent("worker")

    @agent.capability
    async def work(payload):
        begun.set()
        await asyncio.sleep(0.1)
        return "done"

    orchestrator = await open_at(agent, grace=10)
    await orchestrator.submit("work", id="t")
    await begun.wait()
    await orchestrator.close()
    again = await open_at(worker=False)
    assert (await again.get("t").response()).result == "done"


async def test_a_long_run_keeps_its_lease_and_says_so(other, open_at):
    """Longer than the lease: extended, listed as in progress, and taken by nobody else."""
    runs = []
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def work(payload):
        runs.append(1)
        await asyncio.sleep(1.2 * long)
        return "done"

    # So long that a busy machine can extend it in time: whoever cannot has lost it, as he should.
    long = 4.0
    one = await open_at(agent, lease=long)
    await open_at(on=other, lease=long)
    handle = await one.submit("work", id="t")

    async def in_progress():
        return [each.status async for each in one.list()] == ["in_progress"]

    await until(in_progress)
    assert (await handle.wait()).result == "done"
    assert len(runs) == 1


async def test_the_list_is_mended(open_at, store):
    """The log is the truth: a list that is behind, or a message that is lost, is put right by the sweep."""
    ran = []
    worker = await open_at(lonely(ran, read_only=True), worker=False)
    house = worker._house
    await worker.submit("work", id="lost")
    lease = await store.queue("tasks").take(wait=10)
    await lease.done()
    await store.table("tasks").put("ghost", _row("ghost"))
    await store.table("tasks").put("junk", b"junk")
    await store.table("tasks").put("lost", _row("lost", seq=0))
    assert await sweep(store, house, keep=None) == 0
    assert await store.table("tasks").get("ghost") is None
    assert sorted([each.id async for each in worker.list()]) == ["lost"]
    await worker.drain()
    assert (await worker.get("lost").response()).result == "work"
    house.clock = lambda: 9e12
    assert await sweep(store, house, keep=3600) == 1
    assert [each async for each in worker.list()] == []


def _row(id, seq=1):
    import msgspec

    return msgspec.json.encode(Listing(id=id, status="pending", type="work", seq=seq, created=0, updated=0))


async def test_a_submitter_that_died_half_way(open_at, store):
    """Asked again, it goes on where it stopped: once."""
    if store.supports_transactions:
        return
    ran = []
    record = Submitted(at=1.0, id="t", type="work", steps=(Step(name="work", type="work"),))
    await store.table("tasks").create("t", _row("t"))
    await store.log(log_name("tasks", "t")).append(entries.encode([record]), last=0)
    worker = await open_at(lonely(ran, read_only=True), worker=False)
    assert (await submit(store, "tasks", record)) == ("t", None)
    await worker.drain()
    assert len(ran) == 1


async def test_forgetting_by_itself(still, clock):
    """After `keep`, one worker of all sweeps."""
    still.register(lonely([], read_only=True))
    still._worker._keep, still._worker._sweep_every = 100.0, 10.0
    await still.submit("work", id="t")
    await still.store.queue("tasks").put(b"~sweep", key="~sweep", delay=10)
    await still.drain()
    clock.pass_(50)
    assert await still.drain() == 1
    assert [each.id async for each in still.list()] == ["t"]
    clock.pass_(60)
    await still.drain()
    assert [each.id async for each in still.list()] == []


async def test_messages_too_many_do_nothing(still, clock):
    """A message is a hint: one for a task that is over, unknown, waiting or held costs a look."""
    ran = []
    agent = lonely(ran, read_only=True)

    @agent.capability(read_only=True)
    async def later(payload):
        raise errors.RateLimitedError(retry_after=100)

    still.register(agent)
    await still.submit("work", id="over")
    await still.submit("later", id="waits")
    await still.drain()
    queue = still.store.queue("tasks")
    for id in ("over", "waits", "nobody"):
        await queue.put(id.encode(), key=f"{id}!9")
    await still.drain()
    assert len(ran) == 1
    assert (await queue.size()).delayed == 1
    _, last = await read(still.store, "tasks", "waits")
    held = entries.encode([Taken(at=clock.now, worker="alive")])
    await still.store.log(log_name("tasks", "waits")).append(held, last=last)
    await queue.put(b"waits", key="waits!10")
    await still.drain()
    assert not (await still.state("waits")).over


async def test_a_carrier_that_comes_early_is_sent_back(still, clock):
    """A message that a crash brought back before its time."""
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def later(payload):
        raise errors.RateLimitedError(retry_after=100)

    still.register(agent)
    handle = await still.submit("later", id="t")
    await still.drain()
    state, last = await read(still.store, "tasks", "t")
    later_still = replace(state.release, until=clock.now + 200)
    await still.store.log(log_name("tasks", "t")).append(entries.encode([later_still]), last=last)
    clock.pass_(100)
    assert await still.drain() == 1
    assert not (await handle.response()).metadata.completed
    assert sum(await through_time(still, clock, handle)) > 0


class Flaky:
    """A store that does not answer now and then."""

    def __init__(self, store):
        self._store, self.down = store, False

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def transaction(self, work, *, short=False):
        if self.down:
            raise StoreUnavailableError("away", "maybe")
        return await self._store.transaction(work, short=short)


async def test_a_store_that_is_away_for_a_moment(clock):
    """The task is taken up again, and the step that is safe done again."""
    ran = []
    agent = Agent("worker")
    async with await stores.open("memory:", clock=clock) as plain:
        flaky = Flaky(plain)

        @agent.capability(read_only=True)
        async def work(payload):
            ran.append(1)
            flaky.down = len(ran) == 1
            return "done"

        async with Orchestrator(
            [agent], store=flaky, worker=False, clock=clock.wall, keep=None
        ) as orchestrator:
            handle = await orchestrator.submit("work")
            await orchestrator.drain()
            flaky.down = False
            clock.pass_(2)
            await orchestrator.drain()
            assert (await handle.response()).result == "done"
            assert len(ran) == 2


async def test_records_of_another_kind_are_not_guessed(still):
    """A newer version's log is left alone, with a word about it."""
    await still.store.log(log_name("tasks", "t")).append(b'[{"what":"invented","at":1}]')
    with pytest.raises(stores.DamagedStoreError):
        await still.state("t")


async def test_a_write_that_lost_the_race_takes_nothing_with_it(still, clock):
    """Commands come in between appends: they are heard, and the append follows them."""
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def work(payload, ctx):
        if payload:
            await still.cancel(ctx.task)
        return "done"

    still.register(agent)
    handle = await still.submit("work", 1)
    await still.drain()
    assert (await handle.response()).status in {"completed", "cancelled"}
    assert sum(isinstance(r, entries.Cancelled) for r in await records(still, handle.id)) == 1


async def test_nothing_is_said_after_the_last_word(still, clock):
    """A run that let go says nothing more: neither that it is at it, nor that it stops."""
    still.register(lonely([], read_only=True))
    await still.submit("work", id="t")
    lease = await still.store.queue("tasks", lease=30).take()
    state, last = await read(still.store, "tasks", "t")
    run = Run(still._house, Journal(still.store, "tasks", state, last, lease))
    await run.go(takeover=False)
    await run.declare()
    await run.release()
    await run.listen()
    said = await records(still, "t")
    assert isinstance(said[-1], entries.Ended)
    assert len(said) == 3


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


async def test_what_cannot_be_written_down_is_refused(still):
    """Before anything is stored."""
    still.register(lonely([]))
    for task, payload in (("work", object()), ({"id": "x", "type": "work", "payload": {1, object()}}, None)):
        with pytest.raises(errors.InvalidInputError):
            await still.submit(task, payload)
    assert [each async for each in still.list()] == []


async def test_nobody_has_the_agent(still, clock):
    """Workers come and go: only after a while is it said that nobody has it."""
    handle = await still.submit("work", agent="away", id="t")
    assert await still.drain() == 1
    assert (await handle.response()).status == "pending"
    clock.pass_(31)
    await still.drain()
    assert (await handle.response()).error.code == "AGENT_NOT_FOUND"


async def test_two_writers_of_one_log(open_at, store):
    """The log alone decides: whoever writes behind what it has not seen is refused, whatever leases say."""
    client = await open_at(worker=False)
    await client.submit("work", agent="worker", id="t")
    lease = await store.queue("tasks", lease=30).take()
    one, two = [Journal(store, "tasks", *await read(store, "tasks", "t"), lease) for _ in range(2)]
    await one.write([Started(at=1.0, step="work", attempt=1)])
    with pytest.raises(Fenced):
        await two.write([Started(at=2.0, step="work", attempt=1)])
    await client.cancel("t")
    await one.write([entries.Finished(at=3.0, step="work", began=1.0)])
    assert one.state.cancelled
    assert [type(record).__name__ for record in await records(client, "t")] == [
        *("Submitted", "Started", "Cancelled", "Finished")
    ]
    if store.supports_transactions:
        late = Journal(store, "tasks", *await read(store, "tasks", "t"), lease)
        await one.write([entries.Effect(at=4.0, step="work", name="a")])
        with pytest.raises(Fenced):
            await late.commit(lambda tx: tx.table("x").put("k", b"v"), lambda _: Doubted(at=5.0, step="work"))
        assert await store.table("x").get("k") is None


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


async def test_an_answer_that_comes_while_the_run_lets_go(still, clock):
    """What is said between the question and the letting go is heard: the run goes on instead of letting go."""
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def ask(payload, ctx):
        return ctx.ask("?")

    still.register(agent)
    await still.submit("ask", id="t")
    lease = await still.store.queue("tasks", lease=30).take()
    state, last = await read(still.store, "tasks", "t")
    journal = Journal(still.store, "tasks", state, last, lease)
    run = Run(still._house, journal)
    plain = journal.write

    async def slowly(records, **how):
        if isinstance(records[-1], entries.Released):
            answer = entries.encode([entries.Answered(at=clock.now, step="ask", answer="now")])
            now = (await read(still.store, "tasks", "t"))[1]
            if now == 2:
                await still.store.log(log_name("tasks", "t")).append(answer, last=now)
        return await plain(records, **how)

    journal.write = slowly
    await run.go(takeover=False)
    assert run.state.response().result == "now"
    assert not await run.listen()


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
