"""
Every operation of a worker fails, is interrupted, or is followed by a pause in which another worker takes over.

After each of them the effects are counted. Each test is one rule: what a cancelled step, a delegation, a failure that a service
reports, a worker that lost its task, a thread, a task that kills its workers, and a hanging hook must never do. Rule 1, that the
state is the log's, is in `test_committed_state.py`.
"""

import asyncio
import contextlib
import random
import threading

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from amends import stores
from amends.errors import task as errors
from amends.stores import StoreError, StoreUnavailableError
from amends.tasks import Agent, Orchestrator
from amends.tasks.entries import Taken
from amends.tasks.remote.http import Endpoint, HttpAgent
from tests.durable.faulty import HOWS, Faulty
from tests.stores.clocks import SetClock
from tests.tasks.test_committed_state import Hurry, RunningTasks

PAUSES = ("paused before", "paused after")
END = {"completed", "failed", "cancelled", "input_required"}
BOTH = pytest.mark.parametrize("transactions", [True, False])


class Trial:
    """One task, a worker in which one operation goes wrong, and the worker that finishes the task."""

    def __init__(self, faults, clock, first, second):
        self.faults, self.clock, self.first, self.second = faults, clock, first, second
        self.effects, self.undone, self.started, self.lost = [], [], [], False
        self.where, self.pause = "", self.lose

    async def status(self):
        return (await self.second.get("t").response()).status

    def check(self, condition):
        assert condition, self.where

    async def finish(self):
        """Let the second worker take over after the lease, and again after the time that an undo waits."""
        for seconds in (100, 301, 301):
            self.clock.pass_(seconds)
            await asyncio.wait_for(self.second.drain(), 20)

    async def deliver(self):
        """The first worker keeps its lease, and the second one gets a message of a command, which was delivered before."""
        queue = self.second.store.queue("tasks")
        await queue.put(b"t", key="t!9")
        message = await queue.take()
        if message is not None:
            await message.give_back()
        await asyncio.wait_for(self.second.drain(), 20)

    async def lose(self):
        """The first worker is suspended: its lease ends, and the second worker does all there is to do."""
        self.lost = True
        await self.finish()


async def trials(make_agent, transactions, hows=(*HOWS, *PAUSES), most=100):
    """Try each operation of the first worker in each way. The caller checks each trial when the second worker has finished."""
    count = 0
    for how in hows:
        for point in range(most):
            clock = SetClock()
            options = {"worker": False, "clock": clock.wall, "keep": None, "grace": 0}
            async with await stores.open("memory:", clock=clock) as memory:
                faults = Faulty(memory, transactions)
                async with (
                    Orchestrator(store=memory, **options) as second,
                    Orchestrator(store=faults, **options) as first,
                ):
                    trial = Trial(faults, clock, first, second)
                    trial.where = f"{how} {point}"
                    first.register(make_agent(trial, first))
                    second.register(make_agent(trial, second))
                    await first.submit("work", id="t")
                    faults.count, faults.point, faults.how = 0, point, how
                    faults.caller, faults.pause = RunningTasks(first), trial.pause
                    with contextlib.suppress(StoreUnavailableError, asyncio.CancelledError):
                        async with Hurry(clock):
                            await asyncio.wait_for(first.drain(), 20)
                    if faults.count <= point:
                        break
                    count += 1
                    await trial.finish()
                    trial.check(await trial.status() in END)
                    yield trial
    assert count >= 6 * len(hows), "hardly anything was tried"


@BOTH
async def test_cancelling_a_step_that_is_verified_and_undone(transactions):
    """Rule 2. In the end it happened and was not undone, or the other way round; nothing in between."""

    def agent(trial, orchestrator):
        agent = Agent("worker")

        async def undo(payload, result, ctx):
            trial.undone.append(ctx.key)

        @agent.capability(
            undo=undo, timeout=5, verify=lambda payload, ctx: len(trial.effects) == 1 and "seen"
        )
        async def work(payload, ctx):
            trial.effects.append(ctx.key)
            if len(trial.effects) == 1:
                with contextlib.suppress(StoreError):
                    await orchestrator.cancel("t")
                await asyncio.sleep(0)
            return "done"

        return agent

    ends = set()
    async for trial in trials(agent, transactions):
        status = await trial.status()
        ends.add(status)
        undone = len(set(trial.undone))  # an undo runs at least once, with one key
        trial.check(len(trial.effects) <= 1)
        trial.check(len(trial.effects) - undone == (status == "completed"))
        trial.check(status in {"completed", "cancelled"})
    assert ends == {"completed", "cancelled"}


@BOTH
async def test_cancelling_a_step_without_promises(transactions):
    """Rule 2. It ends with what is in doubt, and a retry asks instead of repeating it; or with the result, which a retry keeps."""

    def agent(trial, orchestrator):
        agent = Agent("worker")

        @agent.capability
        async def work(payload, ctx):
            trial.effects.append(ctx.key)
            with contextlib.suppress(StoreError):
                await orchestrator.cancel("t")
            await asyncio.sleep(0)
            return "done"

        return agent

    asked = 0
    async for trial in trials(agent, transactions):
        trial.check(len(trial.effects) <= 1)
        if await trial.status() != "cancelled":
            continue
        error = (await trial.second.get("t").response()).error
        known = error is not None and error.details == {"completed": {"work": "done"}}
        trial.check(
            known or (error is not None and error.details == {"inDoubt": ["work"]}) == bool(trial.effects)
        )
        before = list(trial.effects)
        await trial.second.retry("t")
        await trial.second.drain()
        if before:
            asked += not known
            trial.check(trial.effects == before)
            trial.check(await trial.status() == ("completed" if known else "input_required"))
    assert asked > 10


@BOTH
@pytest.mark.parametrize("fails", [False, True])
async def test_a_delegation_without_promises(transactions, fails):
    """Rule 3. It is called once, whatever happens to the step that delegates it, and however it fails."""

    def agent(trial, orchestrator):
        agent = Agent("worker")

        @agent.capability(idempotent=True)
        async def work(payload, ctx):
            return await ctx.delegate("buy")

        @agent.capability
        async def buy(payload, ctx):
            trial.effects.append(ctx.key)
            if fails:
                raise errors.AgentUnavailableError
            return "bought"

        return agent

    async for trial in trials(agent, transactions):
        status = await trial.status()
        trial.check(len(trial.effects) <= 1)
        trial.check(status in ({"failed", "input_required"} if fails else {"completed", "input_required"}))
        trial.check(status == "input_required" or len(trial.effects) == 1)


@BOTH
async def test_a_failure_inside_a_successful_response(transactions):
    """Rule 4. It is never the result of the step, and a call that may have happened is not repeated."""
    trial_of_now = []

    async def work(request):
        trial_of_now[-1].effects.append(request.method)
        return JSONResponse({"status": "failed"})

    app = Starlette(routes=[Route("/work", work, methods=["POST"])])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as client:

        def agent(trial, orchestrator):
            trial_of_now.append(trial)
            return HttpAgent("worker", {"work": Endpoint(url="http://shop.example/work")}, client=client)

        async for trial in trials(agent, transactions):
            trial.check(len(trial.effects) <= 1)
            trial.check(await trial.status() in {"failed", "input_required"})


@BOTH
@pytest.mark.parametrize("promises", [{}, {"idempotent": True}, {"read_only": True}])
async def test_a_worker_that_lost_its_task_starts_nothing(transactions, promises):
    """Rule 5. Neither the step, nor what it delegates, nor a hook, whether it may be repeated or not."""

    def agent(trial, orchestrator):
        agent = Agent("worker", setup=lambda: note("setup"))

        def note(what):
            trial.effects.append(what)
            if trial.lost and orchestrator is trial.first:
                trial.started.append(what)

        @agent.capability(
            **promises,
            verify=lambda payload, ctx: note("verify") or ("buy" in trial.effects and "seen"),
            fallback=lambda payload, ctx: note("fallback") or "instead",
        )
        async def work(payload, ctx):
            note("work")
            bought = await ctx.delegate("buy")
            raise errors.McpNotConnectedError(details={"mcp": bought})

        @agent.capability(**promises, verify=lambda payload, ctx: "buy" in trial.effects and "seen")
        async def buy(payload, ctx):
            note("buy")
            return "bought"

        return agent

    async for trial in trials(agent, transactions, PAUSES):
        trial.check(trial.started == [])
        if not promises:
            trial.check(trial.effects.count("buy") <= 1)
        trial.check((await trial.status()) in {"completed", "failed", "input_required"})


@BOTH
async def test_a_worker_keeps_its_task_when_another_message_of_it_is_delivered(transactions):
    """Rule 5. Only the delivery of the message that it holds the task by means that it was lost."""

    def agent(trial, orchestrator):
        agent, trial.pause = Agent("worker"), trial.deliver

        @agent.capability(verify=lambda payload, ctx: bool(trial.effects) and "seen")
        async def work(payload, ctx):
            await orchestrator.store.table("other").get("x")  # one more operation, while the step runs
            trial.effects.append(ctx.key)
            return "done"

        return agent

    async for trial in trials(agent, transactions, PAUSES):
        records = await trial.second.records("t")
        trial.check(len(trial.effects) == 1)
        trial.check(await trial.status() == "completed")
        trial.check(not any(isinstance(each, Taken) and each.takeover for each in records))


@BOTH
async def test_a_thread_that_cannot_be_stopped(transactions):
    """Rule 6. The step is in doubt until its thread ends, and is not started a second time."""
    go_on = []

    def agent(trial, orchestrator):
        agent = Agent("worker")
        gate = threading.Event()
        go_on.append(gate)

        @agent.capability(timeout=0.005)
        def work(payload, ctx):
            trial.effects.append(ctx.key)
            gate.wait(20)
            return "done"

        return agent

    try:
        async for trial in trials(agent, transactions, ("fails after", "cancelled before", "paused after")):
            trial.check(len(trial.effects) <= 1)
            trial.check(await trial.status() == "input_required")
    finally:
        for gate in go_on:
            gate.set()


@BOTH
async def test_a_hook_that_hangs(transactions):
    """Rule 8. The time-out of the capability ends it; the task ends, or waits for a verification."""

    def agent(trial, orchestrator):
        async def hang(*_):
            await asyncio.sleep(60)

        agent = Agent("worker", setup=hang, reauth=hang)

        @agent.capability(timeout=0.005, verify=hang, fallback=hang, undo=hang)
        async def work(payload, ctx):
            trial.effects.append(ctx.key)
            raise errors.AgentUnavailableError

        return agent

    hows = ("fails before", "cancelled after", "paused before")
    async for trial in trials(agent, transactions, hows):
        trial.check(len(trial.effects) <= 1)
        trial.check(await trial.status() in {"failed", "input_required"})


class Mortal:
    """A store that no longer answers once its process is dead."""

    def __init__(self, store):
        self._store, self.dead = store, asyncio.Event()
        self.traits, self.url = store.traits, store.url

    def log(self, name):
        return _Mortal(self, self._store.log(name))

    def table(self, name):
        return _Mortal(self, self._store.table(name))

    def queue(self, name, **options):
        return _Mortal(self, self._store.queue(name, **options))

    async def transaction(self, work):
        return await self.call(self._store.transaction, work)

    async def call(self, function, *given, **options):
        if self.dead.is_set():
            raise StoreUnavailableError("this process is dead")
        return await function(*given, **options)


class _Mortal:
    def __init__(self, mortal, part):
        self._mortal, self._part = mortal, part

    def __getattr__(self, name):
        return lambda *given, **options: self._mortal.call(getattr(self._part, name), *given, **options)


@pytest.mark.parametrize("seed", range(6))
async def test_a_task_that_kills_its_workers(seed):
    """Rule 7. It alone is failed, after a worker that ran nothing else was lost; the tasks beside it are completed."""
    dice, clock = random.Random(seed), SetClock()
    options = {"clock": clock.wall, "keep": None, "grace": 0, "worker": False}
    ids = [f"t{number}" for number in range(6)]
    poison, workers = dice.choice(ids), 0
    async with (
        await stores.open("memory:", clock=clock) as memory,
        Orchestrator(store=memory, **options) as client,
    ):
        for id in ids:
            await client.submit("work", agent="worker", id=id)
        while not all(row.status in END for row in [row async for row in client.list()]):
            workers += 1
            assert workers < 30
            store = Mortal(memory)
            worker = Orchestrator([killing_agent(store, poison, dice)], store=store, **options)
            worker._registry.takeovers = 3
            await worker.start()
            draining, dead = asyncio.ensure_future(worker.drain()), asyncio.ensure_future(store.dead.wait())
            await asyncio.wait([draining, dead], return_when=asyncio.FIRST_COMPLETED, timeout=20)
            for task in (draining, dead, *worker._worker._runs):
                task.cancel()
            await asyncio.gather(draining, dead, return_exceptions=True)
            await worker.close()
            clock.pass_(31)
        for id in ids:
            response = await client.get(id).response()
            assert response.status == ("failed" if id == poison else "completed"), id
            taken = [each for each in await client.records(id) if isinstance(each, Taken)]
            if id == poison:
                assert response.error.details == {"workersLost": 4}
                assert [each.alone for each in taken][-2:] == [True, False]


def killing_agent(store, poison, dice):
    agent = Agent("worker")

    @agent.capability(idempotent=True)
    async def work(payload, ctx):
        if ctx.task != poison:
            await asyncio.sleep(0.001 * dice.randrange(1, 4))
            return "done"
        await asyncio.sleep(0.0005 * dice.randrange(3))
        store.dead.set()
        return await asyncio.sleep(60)

    return agent
