"""Waiting for tasks, whichever process works on them."""

import asyncio

import pytest

from amends import stores
from amends.errors import task as errors
from amends.tasks import Agent, Step, fan_out
from amends.tasks import wait as wait_module
from amends.tasks.entries import Ended
from amends.tasks.fold import fold
from amends.tasks.journal import TaskNotFoundError
from amends.tasks.maintenance import forget
from amends.tasks.wait import TaskWaiters
from tests.tasks.conftest import wait_until


async def test_closing_the_orchestrator_ends_all_waits(open_orchestrator):
    """Waiters get StoreClosedError, and waits that have ended leave nothing behind."""
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def ask(payload, ctx):
        return ctx.ask("?")

    @agent.capability(read_only=True)
    async def slow(payload):
        await asyncio.sleep(3600)

    orchestrator = await open_orchestrator(agent)
    asked = await orchestrator.submit("ask")
    both = await asyncio.gather(asked.wait(), asked.wait())
    assert both[0] == both[1]
    assert len(orchestrator._waiters) == 0
    waiting = asyncio.ensure_future((await orchestrator.submit("slow")).wait())
    await wait_until(lambda: len(orchestrator._waiters))
    await orchestrator.close()
    with pytest.raises(stores.StoreClosedError):
        await waiting


@pytest.mark.parametrize("count", [1, 2])
async def test_closing_the_orchestrator_while_the_log_is_read(open_orchestrator, monkeypatch, count):
    """The wait ends with StoreClosedError after the first or a later read."""
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def slow(payload):
        await asyncio.sleep(3600)

    orchestrator = await open_orchestrator(agent)
    waiters, reads = orchestrator._waiters, []
    read = wait_module.read_existing

    async def close_while_reading(store, space, id):
        found = await read(store, space, id)
        reads.append(1)
        if len(reads) == count:
            waiters.close()
        return found

    monkeypatch.setattr(wait_module, "read_existing", close_while_reading)
    await orchestrator.submit("slow", id="t")
    with pytest.raises(stores.StoreClosedError):
        await asyncio.wait_for(orchestrator.wait("t"), 100)
    assert len(reads) == count
    assert len(waiters) == 0


async def test_an_answer_while_other_steps_run(open_orchestrator):
    """The step that asked goes on at once, while another step still runs."""
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

    orchestrator = await open_orchestrator(agent)
    handle = await orchestrator.submit(fan_out(Step(name="a", type="ask"), Step(name="h", type="hold")))

    async def asking():
        return (await orchestrator.state(handle.id)).steps["a"].state == "asking"

    await wait_until(asking)
    await handle.answer("yes", step="a")
    assert (await asyncio.wait_for(handle.wait(), 100)).result == {"a": "yes", "h": "held"}


async def test_only_some_logs_are_followed_at_once(open_orchestrator):
    """The other waiters read the log at intervals. All of them are notified when this process ends the task."""
    agent, go = Agent("worker"), asyncio.Event()

    @agent.capability(read_only=True)
    async def work(number):
        await go.wait()
        return number

    orchestrator = await open_orchestrator(agent)
    waiting = [
        asyncio.ensure_future((await orchestrator.submit("work", number)).wait()) for number in range(20)
    ]
    await wait_until(lambda: orchestrator._waiters._following == 16)
    go.set()
    assert [(await each).result for each in waiting] == list(range(20))
    assert (orchestrator._waiters._following, len(orchestrator._waiters)) == (0, 0)


@pytest.mark.parametrize("worker", [True, False])
async def test_a_notification_ends_the_wait(manual, clock, worker):
    """Of a task of this process, and of one whose log is followed. The log is not followed any more."""
    await manual.submit("work", agent="unknown", id="t")
    waiters = TaskWaiters("tasks", worker=worker)
    waiting = asyncio.ensure_future(waiters.wait(manual.store, "t"))
    await wait_until(lambda: len(waiters) if worker else waiters._following)
    state = fold(await manual.state("t"), [Ended(at=clock.now, status="completed")])
    waiters.notify(state)
    assert await asyncio.wait_for(waiting, 20) is state
    assert (waiters._following, len(waiters)) == (0, 0)


async def test_a_notification_while_the_log_is_read_is_not_missed(manual, clock, monkeypatch):
    """The waiter subscribes before it reads."""
    monkeypatch.setattr(wait_module, "_LOCAL", (60.0, 60.0))
    await manual.submit("work", agent="unknown", id="t")
    waiters = TaskWaiters("tasks", worker=True)
    read = wait_module.read_existing

    async def notify_while_reading(store, space, id):
        found = await read(store, space, id)
        state = fold(await manual.state("t"), [Ended(at=clock.now, status="completed")])
        waiters.notify(state)
        return found

    monkeypatch.setattr(wait_module, "read_existing", notify_while_reading)
    assert (await asyncio.wait_for(waiters.wait(manual.store, "t"), 20)).over


async def test_waiting_after_an_answer(manual):
    """An answered question does not end the next wait; the end of the task does."""
    agent = Agent("worker")
    agent.capability("ask")(lambda payload, ctx: ctx.ask("?"))
    manual.register(agent)
    handle = await manual.submit("ask")
    await manual.drain()
    assert (await handle.wait()).status == "input_required"
    await handle.answer("yes")
    waiting = asyncio.ensure_future(handle.wait())
    await wait_until(lambda: manual._waiters._following or waiting.done())
    await manual.drain()
    assert (await asyncio.wait_for(waiting, 100)).result == "yes"


async def test_a_task_that_is_deleted_while_it_is_waited_for(open_orchestrator, store, monkeypatch):
    """The waiter may have missed the end of the task; it does not wait for ever."""
    monkeypatch.setattr(wait_module, "_READ_AGAIN", 0.05)
    client = await open_orchestrator(worker=False)
    await client.submit("work", agent="worker", id="t")
    waiting = asyncio.ensure_future(client.wait("t"))
    await wait_until(lambda: client._waiters._following)
    await forget(store, "tasks", "t")
    with pytest.raises(TaskNotFoundError):
        await asyncio.wait_for(waiting, 20)


async def test_the_log_of_a_new_task_is_read_only_if_no_worker_notifies(open_orchestrator, monkeypatch):
    """`run` waits for the worker of its process. A task that was there already is read at once, however often it is run."""
    agent = Agent("worker")
    finish = asyncio.Event()

    @agent.capability(read_only=True)
    async def quick(payload):
        return payload

    @agent.capability(read_only=True)
    async def slow(payload):
        await finish.wait()
        return payload

    orchestrator = await open_orchestrator(agent)
    reads = []
    read = wait_module.read_existing

    async def counting(store, space, id):
        reads.append(id)
        return await read(store, space, id)

    monkeypatch.setattr(wait_module, "read_existing", counting)
    monkeypatch.setattr(wait_module, "_LOCAL", (3600.0, 3600.0))
    assert (await orchestrator.run("quick", 1, id="a")).result == 1
    assert reads == []
    assert (await orchestrator.run("quick", 1, id="a")).result == 1
    assert reads == ["a"]
    monkeypatch.setattr(wait_module, "_LOCAL", (0.0, 0.0))
    running = asyncio.ensure_future(orchestrator.run("slow", 2, id="b"))
    await wait_until(lambda: "b" in reads)
    finish.set()
    assert (await running).result == 2


async def test_a_handle_knows_whether_its_task_is_new(open_orchestrator):
    """Another submission with the same id or key gives the task that is there."""
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def quick(payload):
        return payload

    orchestrator = await open_orchestrator(agent)
    for options in ({"id": "a"}, {"key": "k"}):
        assert (await orchestrator.submit("quick", 1, **options)).new
        assert not (await orchestrator.submit("quick", 1, **options)).new
    assert (await orchestrator.submit("quick", 1)).new
    assert not orchestrator.get("a").new


async def test_waiting_for_an_ended_task_whose_doubt_was_verified(open_orchestrator):
    """The task stays as it ended, so the wait ends at once; only `retry` makes it go on."""
    agent = Agent("worker")

    @agent.capability
    async def pay(payload, ctx):
        raise errors.TimeoutError

    orchestrator = await open_orchestrator(agent)
    handle = await orchestrator.submit("pay", id="t")
    assert (await handle.wait(timeout=20)).error.details["inDoubt"] == ["pay"]
    await orchestrator.verify("t", happened=True, result="paid")
    assert (await handle.wait(timeout=20)).status == "failed"
    await orchestrator.retry("t")
    assert (await handle.wait(timeout=20)).result == "paid"
