"""One worker: its messages, its leases, its end, and a store that does not answer."""

import asyncio

import pytest
from msgspec.structs import replace

from amends import stores
from amends.durable import worker as worker_module
from amends.errors import task as errors
from amends.stores.errors import StoreUnavailableError
from amends.tasks import Agent, Orchestrator, Step, entries, fan_out
from amends.tasks.entries import Taken
from amends.tasks.journal import log_name, read_task
from tests.tasks.conftest import advance_until_rest, wait_until
from tests.tasks.crashes import recording_agent


async def test_another_worker_continues_after_a_stop(open_orchestrator, store):
    """At once, if the interrupted step may be repeated."""
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

    first = await open_orchestrator(agent(True))
    handle = await first.submit("work", id="t")
    await begun.wait()
    await first.close()
    second = await open_orchestrator(agent(False))
    assert (await asyncio.wait_for(second.get("t").wait(), 100)).result == "done"
    assert handle.id == "t"


async def test_running_tasks_finish_within_the_grace(open_orchestrator):
    """Closing waits for them."""
    begun = asyncio.Event()
    agent = Agent("worker")

    @agent.capability
    async def work(payload):
        begun.set()
        await asyncio.sleep(0.1)
        return "done"

    orchestrator = await open_orchestrator(agent, grace=10)
    await orchestrator.submit("work", id="t")
    await begun.wait()
    await orchestrator.close()
    again = await open_orchestrator(worker=False)
    assert (await again.get("t").response()).result == "done"


async def test_a_long_run_extends_its_lease(other, open_orchestrator):
    """The task is listed as in progress, and no other worker takes it."""
    runs = []
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def work(payload):
        runs.append(1)
        await asyncio.sleep(1.2 * long)
        return "done"

    # Long enough for a busy machine to extend it in time.
    long = 4.0
    one = await open_orchestrator(agent, lease=long)
    await open_orchestrator(on=other, lease=long)
    handle = await one.submit("work", id="t")

    async def in_progress():
        return [each.status async for each in one.list()] == ["in_progress"]

    await wait_until(in_progress)
    assert (await handle.wait()).result == "done"
    assert len(runs) == 1


async def test_superfluous_messages_have_no_effect(manual, clock):
    """Messages of tasks that are over, unknown, waiting or held."""
    ran = []
    agent = recording_agent(ran, read_only=True)

    @agent.capability(read_only=True)
    async def later(payload):
        raise errors.RateLimitedError(retry_after=100)

    manual.register(agent)
    await manual.submit("work", id="over")
    await manual.submit("later", id="waits")
    await manual.drain()
    queue = manual.store.queue("tasks")
    for id in ("over", "waits", "unknown"):
        await queue.put(id.encode(), key=f"{id}!9")
    await manual.drain()
    assert len(ran) == 1
    assert (await queue.size()).delayed == 1
    _, last, _ = await read_task(manual.store, "tasks", "waits")
    held = entries.encode([Taken(at=clock.now, worker="alive")])
    await manual.store.log(log_name("tasks", "waits")).append(held, last=last)
    await queue.put(b"waits", key="waits!10")
    await manual.drain()
    assert not (await manual.state("waits")).over


async def test_a_message_that_comes_early_is_given_back(manual, clock):
    """A message that was delivered before the task is due, because of a crash."""
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def later(payload):
        raise errors.RateLimitedError(retry_after=100)

    manual.register(agent)
    handle = await manual.submit("later", id="t")
    await manual.drain()
    state, last, _ = await read_task(manual.store, "tasks", "t")
    later_still = replace(state.release, until=clock.now + 200)
    await manual.store.log(log_name("tasks", "t")).append(entries.encode([later_still]), last=last)
    clock.pass_(100)
    assert await manual.drain() == 1
    assert not (await handle.response()).metadata.completed
    assert sum(await advance_until_rest(manual, clock, handle)) > 0


class Flaky:
    """A store whose transactions fail while `down` is set, for longer than a lease."""

    def __init__(self, store, clock=None):
        self._store, self._clock, self.down = store, clock, False

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def transaction(self, work):
        if self.down:
            if self._clock is not None:
                self._clock.pass_(40)
            raise StoreUnavailableError("unavailable", "maybe")
        return await self._store.transaction(work)


async def test_a_store_that_fails_during_a_step(clock):
    """If it does not answer before the lease is over, the task is taken again, and its repeatable step is repeated."""
    ran = []
    agent = Agent("worker")
    async with await stores.open("memory:", clock=clock) as plain:
        flaky = Flaky(plain, clock)

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


async def test_an_agent_that_no_worker_has(manual, clock):
    """The task fails only after some time, because a worker with the agent may be starting."""
    handle = await manual.submit("work", agent="away", id="t")
    assert await manual.drain() == 1
    assert (await handle.response()).status == "pending"
    clock.pass_(31)
    await manual.drain()
    assert (await handle.response()).error.code == "AGENT_NOT_FOUND"


class FlakyQueue:
    """A queue whose `take` fails while its store is down."""

    def __init__(self, store, queue):
        self._store, self._queue = store, queue

    def __getattr__(self, name):
        return getattr(self._queue, name)

    async def take(self, **options):
        if self._store.down:
            raise StoreUnavailableError("unavailable", "no")
        return await self._queue.take(**options)


class FlakyStore(Flaky):
    def queue(self, name, **options):
        return FlakyQueue(self, self._store.queue(name, **options))


async def test_a_store_that_fails_while_a_worker_takes_tasks(monkeypatch, caplog):
    """The worker tries again, keeps its running task, and goes on when the store answers."""
    monkeypatch.setattr(worker_module, "_PAUSE", 0.01)
    agent, begun, go = Agent("worker"), asyncio.Event(), asyncio.Event()

    @agent.capability(read_only=True)
    async def work(payload):
        begun.set()
        await go.wait()
        return payload

    async with await stores.open("memory:") as plain:
        flaky = FlakyStore(plain)
        async with Orchestrator([agent], store=flaky, lease=1.0) as orchestrator:
            first = await orchestrator.submit("work", 1)
            await begun.wait()
            flaky.down = True
            await plain.queue("tasks").put(b"\xff", key="poison")
            await wait_until(lambda: "trying again" in caplog.text)
            flaky.down = False
            go.set()
            assert (await first.wait()).result == 1
            assert (await orchestrator.run("work", 2)).result == 2
            await wait_until(lambda: not orchestrator._worker._runs)


async def test_a_message_that_is_no_task_id(manual, caplog):
    """It is removed from the queue."""
    await manual.store.queue("tasks").put(b"\xff\xfe", key="poison")
    assert await manual.drain() == 1
    assert await manual.drain() == 0
    assert "unexpected error" not in caplog.text


async def test_a_failed_start_closes_the_store(tmp_path):
    """The store's error is raised, and the store that was opened is closed."""
    orchestrator = Orchestrator([Agent("worker")], store=f"sqlite:///{tmp_path}/tasks.db")
    opened = []

    async def announce(self):
        opened.append(orchestrator.store)
        raise StoreUnavailableError("unavailable", "no")

    with pytest.MonkeyPatch.context() as patch, pytest.raises(StoreUnavailableError):
        patch.setattr("amends.tasks.offers.Offers.announce", announce)
        await orchestrator.start()
    with pytest.raises(stores.StoreClosedError):
        await opened[0].table("tasks").get("x")
    async with orchestrator:
        assert orchestrator.agents["worker"].name == "worker"
    with pytest.raises(RuntimeError, match="not open"):
        _ = orchestrator.store


@pytest.mark.parametrize("which", ["the task's own message", "a command's message that was given back"])
async def test_a_held_task_is_taken_over_only_with_the_message_it_is_held_by(clock, which):
    """
    A task may have two messages: its own, delayed until a retry, and that of a command. A worker runs the task with one of them.

    The delivery of the other one does not mean that this worker is lost.
    """
    effects, own = [], which == "the task's own message"
    options = {"worker": False, "clock": clock.wall, "keep": None, "lease": 1000}
    async with (
        await stores.open("memory:", clock=clock) as store,
        Orchestrator(store=store, **options) as first,
        Orchestrator(store=store, **options) as second,
    ):
        queue = store.queue("tasks")

        def agent(orchestrator):
            made = Agent("worker")

            @made.capability(read_only=True)
            async def later(payload, ctx):
                if ctx.attempt == 1:
                    raise errors.RateLimitedError(retry_after=100)
                return "done"

            @made.capability(verify=lambda payload, ctx: bool(effects) and "seen")
            async def pay(payload, ctx):
                if own:
                    ctx.ask("How much?")
                if orchestrator is first:
                    clock.pass_(101)
                    await second.drain()
                effects.append(ctx.key)
                return "paid"

            return made

        first.register(agent(first))
        second.register(agent(second))
        steps = [Step(name="pay", type="pay"), *([Step(name="later", type="later")] if own else [])]
        await first.submit(fan_out(*steps), id="t")
        if own:
            await first.drain()
            await second.answer("t", 5)
        else:
            await queue.put(b"t", key="t!9", delay=50)
            clock.pass_(50)
            message, command = await queue.take(), await queue.take()
            assert (message.key, command.key) == ("t", "t!9")
            await message.give_back()
            await command.give_back(delay=60)
        await first.drain()
        clock.pass_(1001)
        await second.drain()
        assert (await first.get("t").response()).status == "completed"
        assert effects == ["t/pay"]
        assert not any(isinstance(each, Taken) and each.takeover for each in await first.records("t"))
        assert [each async for each in queue.messages()] == []
