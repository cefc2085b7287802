"""The state of a task never runs ahead of its log: what is recorded is what happened."""

import asyncio
import contextlib
import sqlite3

import pytest

from amends import stores
from amends.stores import StoreFullError, StoreUnavailableError
from amends.tasks import Agent, Orchestrator, entries
from amends.tasks.journal import log_name
from tests.durable.faulty import HOWS, Faulty
from tests.stores.clocks import SetClock
from tests.tasks.conftest import wait_until


def counting_agent(effects, *, gate=None, **options):
    """An agent whose step must not happen twice."""
    agent = Agent("worker")

    @agent.capability(**options)
    async def pay(payload, ctx):
        effects.append(ctx.task)
        if gate is not None:
            await gate.wait()
        return "paid"

    return agent


async def test_a_close_while_results_wait_for_the_lock_repeats_nothing(tmp_path):
    """Ten steps have ended and their results wait for the file's lock when the orchestrator is closed."""
    url, effects, gate = f"sqlite:///{tmp_path}/tasks.db?busy_timeout=0.3", [], asyncio.Event()
    first = Orchestrator([counting_agent(effects, gate=gate)], store=url, grace=0, lease=1.0)
    await first.start()
    for number in range(10):
        await first.submit("pay", id=f"t{number}")
    await wait_until(lambda: len(effects) == 10)
    other = sqlite3.connect(tmp_path / "tasks.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    gate.set()
    await asyncio.sleep(0.05)
    closing = asyncio.ensure_future(first.close())
    # The first try to write has failed by then, and the next one is waiting.
    await asyncio.sleep(0.45)
    other.execute("ROLLBACK")
    other.close()
    await closing
    async with Orchestrator([counting_agent(effects)], store=url, lease=1.0) as second:
        for number in range(10):
            response = await second.get(f"t{number}").wait()
            assert response.status == "completed", "the result was known, so it is recorded"
    assert sorted(effects) == sorted({f"t{number}" for number in range(10)})


async def test_a_step_that_ends_while_the_orchestrator_is_closed(store):
    """Its result is recorded, though the worker no longer waits for it."""
    agent, effects, begun = Agent("worker"), [], asyncio.Event()

    @agent.capability()
    async def pay(payload, ctx):
        effects.append(ctx.task)
        begun.set()
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            return "paid"

    first = Orchestrator([agent], store=store, grace=0)
    await first.start()
    await first.submit("pay", id="t")
    await asyncio.wait_for(begun.wait(), 20)
    await first.close()
    async with Orchestrator([agent], store=store) as second:
        response = await asyncio.wait_for(second.get("t").wait(), 20)
    assert (response.status, response.result, effects) == ("completed", "paid", ["t"])


@pytest.fixture
async def slow(clock):
    """An orchestrator like `manual` on a store that can be slow and fail, and that store."""
    async with await stores.open("memory:", clock=clock) as memory:
        store = Slow(memory)
        async with Orchestrator(store=store, worker=False, clock=clock.wall, keep=None) as orchestrator:
            yield orchestrator, store


async def test_a_time_out_during_the_write_of_a_delegation(slow):
    """The delegation is recorded, the log stays readable, and the delegation is not repeated."""
    (manual, store), effects, agent = slow, [], counting_agent([])

    @agent.capability(read_only=True, timeout=1.0)
    async def order(payload, ctx):
        return await ctx.delegate("buy")

    @agent.capability()
    async def buy(payload, ctx):
        effects.append(ctx.task)
        return "bought"

    manual.register(agent)
    store.delays = {
        "delegated": 1.5
    }  # longer than the time-out, which a loaded machine does not reach earlier
    handle = await manual.submit("order", id="t")
    await asyncio.wait_for(manual.drain(), 20)
    state = await manual.state(handle.id)
    assert "order>worker/buy#1" in state.steps
    assert effects == ["t"]
    assert [type(r).__name__ for r in await manual.records("t")][:5] == [
        "Submitted",
        "Taken",
        "Started",
        "Delegated",
        "Failed",
    ]


async def test_a_disk_that_is_full_for_a_moment(slow):
    """The result is written when there is space again; the step does not run twice."""
    (manual, store), effects = slow, []
    manual.register(counting_agent(effects))
    store.failures = {"finished": [StoreFullError("full"), StoreUnavailableError("gone", "maybe")]}
    handle = await manual.submit("pay", id="t")
    await asyncio.wait_for(manual.drain(), 20)
    assert (await handle.response()).status == "completed"
    assert effects == ["t"]
    assert not store.failures["finished"]


async def test_a_commit_whose_acknowledgement_is_lost(slow):
    """The worker finds its own entry in the log and goes on."""
    (manual, store), effects = slow, []
    manual.register(counting_agent(effects))
    store.lost = {"started": 1, "finished": 2}
    handle = await manual.submit("pay", id="t")
    await asyncio.wait_for(manual.drain(), 20)
    assert (await handle.response()).status == "completed"
    assert [type(r).__name__ for r in await manual.records("t")] == [
        *("Submitted", "Taken", "Started", "Finished", "Ended")
    ]


async def test_an_impossible_record(manual, caplog):
    """The task goes on from the valid part of its log; what may have happened after it is in doubt."""
    effects = []
    manual.register(counting_agent(effects))
    await manual.submit("pay", id="t")
    log = manual.store.log(log_name("tasks", "t"))
    await log.append(entries.encode([entries.Finished(at=1.0, step="no such step", began=1.0)]))
    await log.append(entries.encode([entries.Finished(at=1.0, step="pay", began=1.0, result="unread")]))
    assert (await manual.get("t").response()).status == "pending"
    assert "no such step" not in caplog.text
    assert "2 entries" in caplog.text
    await manual.drain()
    response = await manual.get("t").response()
    assert (response.status, response.input["kind"], effects) == ("input_required", "verify", [])
    await manual.verify("t", happened=False)
    await manual.drain()
    assert ((await manual.get("t").response()).status, effects) == ("completed", ["t"])
    kinds = [type(r).__name__ for r in await manual.records("t")]
    assert kinds[:3] == ["Submitted", "Repaired", "Taken"]


async def test_an_impossible_record_of_a_repeatable_step(manual):
    """A step that may run twice runs again."""
    effects = []
    manual.register(counting_agent(effects, idempotent=True))
    await manual.submit("pay", id="t")
    log = manual.store.log(log_name("tasks", "t"))
    await log.append(entries.encode([entries.Finished(at=1.0, step="no such step", began=1.0)]))
    await manual.drain()
    assert ((await manual.get("t").response()).status, effects) == ("completed", ["t"])


async def test_a_log_without_a_readable_beginning(manual):
    """There is nothing to go on from: reading it is an error, and nothing is changed."""
    log = manual.store.log(log_name("tasks", "t"))
    await log.append(entries.encode([entries.Finished(at=1.0, step="pay", began=1.0)]))
    with pytest.raises(stores.DamagedStoreError):
        await manual.state("t")
    assert (await log.bounds()).last == 1


class RunningTasks:
    """The runs of an orchestrator's worker, to be cancelled together."""

    def __init__(self, orchestrator):
        self._orchestrator = orchestrator

    def cancel(self):
        for run in list(self._orchestrator._worker._runs):
            run.cancel()


@pytest.mark.parametrize("transactions", [True, False])
async def test_every_interruption_and_every_failure(transactions):
    """Rule 1. Whichever operation of a worker fails or is interrupted: one effect, and a result or a question at the end."""
    tried, ends = 0, set()
    for how in HOWS:
        for point in range(100):
            clock, effects = SetClock(), []
            async with await stores.open("memory:", clock=clock) as memory:
                faults = Faulty(memory, transactions)
                options = {"worker": False, "clock": clock.wall, "keep": None, "grace": 0}
                agent = counting_agent(effects)
                async with Orchestrator([agent], store=faults, **options) as first:
                    await first.submit("pay", id="t")
                    faults.count, faults.point, faults.how = 0, point, how
                    faults.caller = RunningTasks(first)
                    with contextlib.suppress(StoreUnavailableError, asyncio.CancelledError):
                        async with Hurry(clock):
                            await first.drain()
                if faults.count <= point:
                    break
                tried += 1
                clock.pass_(100)
                async with Orchestrator([agent], store=memory, **options) as second:
                    await second.drain()
                    end = (await second.get("t").response()).status
                    row = [each.status async for each in second.list()]
                assert len(effects) <= 1, (how, point)
                assert end in {"completed", "input_required"}, (how, point)
                assert row == [end], (how, point)
                assert len(effects) == 1 or end == "input_required", (how, point)
                ends.add(end)
    assert tried > 12
    assert ends == {"completed", "input_required"}


class Hurry:
    """Advances the clock while a worker repeats a write, so that its lease ends."""

    def __init__(self, clock):
        self._clock = clock

    async def __aenter__(self):
        self._task = asyncio.ensure_future(self._advance())

    async def __aexit__(self, *_):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _advance(self):
        while True:
            await asyncio.sleep(0.2)
            self._clock.pass_(10)


class Slow:
    """A store whose transactions with a record of a kind are slow, fail, or lose their acknowledgement."""

    def __init__(self, store):
        self._whole = store
        self.delays, self.failures, self.lost = {}, {}, {}

    def __getattr__(self, name):
        return getattr(self._whole, name)

    async def transaction(self, work):
        kinds = set()

        def seeing(tx):
            return work(Seeing(tx, kinds))

        class Refused(Exception):
            pass

        def refused(tx):
            seeing(tx)
            raise Refused

        try:
            await self._whole.transaction(refused)
        except Refused:
            pass
        for kind in kinds:
            if self.failures.get(kind):
                raise self.failures[kind].pop(0)
        result = await self._whole.transaction(seeing)
        for kind in kinds:
            await asyncio.sleep(self.delays.get(kind, 0))
            if self.lost.get(kind):
                self.lost[kind] -= 1
                raise StoreUnavailableError("the acknowledgement was lost", "maybe")
        return result


class Seeing:
    def __init__(self, tx, kinds):
        self._tx, self._kinds = tx, kinds

    def __getattr__(self, name):
        return getattr(self._tx, name)

    def log(self, name):
        writer, kinds = self._tx.log(name), self._kinds

        class Log:
            def append(self, value, **options):
                kinds.update(type(record).__name__.lower() for record in entries.decode(value))
                return writer.append(value, **options)

        return Log()
