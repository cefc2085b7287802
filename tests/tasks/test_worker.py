"""One worker: its messages, its leases, its end, and a store that is away."""

import asyncio

import pytest
from msgspec.structs import replace

from amends import stores
from amends.errors import task as errors
from amends.stores.errors import StoreUnavailableError
from amends.tasks import Agent, Orchestrator, entries
from amends.tasks import worker as worker_module
from amends.tasks.entries import Taken
from amends.tasks.task_reader import log_name, read
from tests.tasks.conftest import through_time, until
from tests.tasks.crashes import lonely


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


async def test_nobody_has_the_agent(still, clock):
    """Workers come and go: only after a while is it said that nobody has it."""
    handle = await still.submit("work", agent="away", id="t")
    assert await still.drain() == 1
    assert (await handle.response()).status == "pending"
    clock.pass_(31)
    await still.drain()
    assert (await handle.response()).error.code == "AGENT_NOT_FOUND"


class FlakyQueue:
    """A queue nothing can be taken from while its store is down."""

    def __init__(self, store, queue):
        self._store, self._queue = store, queue

    def __getattr__(self, name):
        return getattr(self._queue, name)

    async def take(self, **options):
        if self._store.down:
            raise StoreUnavailableError("away", "no")
        return await self._queue.take(**options)


class FlakyStore(Flaky):
    def queue(self, name, **options):
        return FlakyQueue(self, self._store.queue(name, **options))


async def test_a_store_that_is_away_while_a_worker_looks(monkeypatch, caplog):
    """It looks again, keeps what it has, and goes on when the store is back."""
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
            await until(lambda: "a lease may be lost" in caplog.text)
            await until(lambda: "looking again" in caplog.text)
            flaky.down = False
            go.set()
            assert (await first.wait()).result == 1
            assert (await orchestrator.run("work", 2)).result == 2
            await until(lambda: not orchestrator._worker._runs)


async def test_a_message_that_is_no_id(still, caplog):
    """Whoever wrote it: it is put away, and is not taken for ever."""
    await still.store.queue("tasks").put(b"\xff\xfe", key="poison")
    assert await still.drain() == 1
    assert await still.drain() == 0
    assert "mistake" not in caplog.text


async def test_a_start_that_fails_leaves_nothing_open(tmp_path):
    """What the store said is raised, and the store that was opened for it is closed."""
    orchestrator = Orchestrator([Agent("worker")], store=f"sqlite:///{tmp_path}/tasks.db")
    opened = []

    async def announce(self):
        opened.append(orchestrator.store)
        raise StoreUnavailableError("away", "no")

    with pytest.MonkeyPatch.context() as patch, pytest.raises(StoreUnavailableError):
        patch.setattr("amends.tasks.offers.Offers.announce", announce)
        await orchestrator.start()
    with pytest.raises(stores.StoreClosedError):
        await opened[0].table("tasks").get("x")
    async with orchestrator:
        assert orchestrator.agents["worker"].name == "worker"
    with pytest.raises(RuntimeError, match="not open"):
        _ = orchestrator.store
