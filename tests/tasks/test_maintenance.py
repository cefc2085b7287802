"""The maintenance repairs rows and messages that are behind the logs, and forgets old tasks."""

from amends.tasks import Agent, Orchestrator, Step, entries
from amends.tasks.entries import Submitted
from amends.tasks.journal import TaskRow, log_name
from amends.tasks.maintenance import MAINTENANCE, maintain
from amends.tasks.submit import submit
from tests.tasks.conftest import wait_until
from tests.tasks.crashes import recording_agent


def _row(id, seq=1):
    import msgspec

    return msgspec.json.encode(TaskRow(id=id, status="pending", type="work", seq=seq, created=0, updated=0))


async def test_rows_and_messages_are_repaired(open_orchestrator, store):
    """A row that is behind its log, a row without a log, and a lost message."""
    ran = []
    worker = await open_orchestrator(recording_agent(ran, read_only=True), worker=False)
    registry = worker._registry
    await worker.submit("work", id="lost")
    lease = await store.queue("tasks").take(wait=10)
    await lease.done()
    await store.table("tasks").put("ghost", _row("ghost"))
    await store.table("tasks").put("junk", b"junk")
    await store.table("tasks").put("lost", _row("lost", seq=0))
    assert await maintain(store, registry, keep=None) == 0
    assert await store.table("tasks").get("ghost") is None
    assert sorted([each.id async for each in worker.list()]) == ["lost"]
    await worker.drain()
    assert (await worker.get("lost").response()).result == "work"
    registry.local_clock = lambda: 9e12
    assert await maintain(store, registry, keep=3600) == 1
    assert [each async for each in worker.list()] == []


async def test_a_lost_message_of_a_command(manual, clock):
    """The worker that held the task by it is lost as well. The message comes back, so that another one takes the task over."""
    ran = []
    manual.register(recording_agent(ran, read_only=True))
    await manual.submit("work", id="t")
    await (await manual.store.queue("tasks").take()).done()
    taken = entries.Taken(at=clock.now, worker="lost", message="t!2")
    await manual.store.log(log_name("tasks", "t")).append(entries.encode([taken]), last=1)
    clock.pass_(10_000)
    await maintain(manual.store, manual._registry, keep=None)
    await manual.drain()
    assert (await manual.get("t").response()).result == "work"


async def test_an_interrupted_submission_is_completed_by_the_next_one(open_orchestrator, store):
    """The task runs once."""
    if store.traits.transactions:
        return
    ran = []
    record = Submitted(at=1.0, id="t", type="work", steps=(Step(name="work", type="work"),))
    await store.table("tasks").create("t", _row("t"))
    await store.log(log_name("tasks", "t")).append(entries.encode([record]), last=0)
    worker = await open_orchestrator(recording_agent(ran, read_only=True), worker=False)
    assert await submit(store, "tasks", record) == ("t", False)
    await worker.drain()
    assert len(ran) == 1


async def test_old_tasks_are_forgotten(manual, clock):
    """After `keep` seconds, by the worker that takes the maintenance message."""
    manual.register(recording_agent([], read_only=True))
    manual._worker._keep, manual._worker._maintenance_interval = 100.0, 10.0
    await manual.submit("work", id="t")
    await manual.store.queue("tasks").put(b"", key=MAINTENANCE, delay=10)
    await manual.drain()
    clock.pass_(50)
    assert await manual.drain() == 1
    assert [each.id async for each in manual.list()] == ["t"]
    clock.pass_(60)
    await manual.drain()
    assert [each.id async for each in manual.list()] == []


async def test_a_forgotten_task_frees_its_key(manual, clock):
    """The same key then makes a new task."""
    ran = []
    manual.register(recording_agent(ran, read_only=True))
    for forgotten in (0, 1):
        first = await manual.submit("work", key="k")
        again = await manual.submit("work", key="k")
        assert first.id == again.id
        await manual.drain()
        assert len(ran) == forgotten + 1
        clock.pass_(101)
        assert await maintain(manual.store, manual._registry, keep=100) == 1
        assert [row async for row in manual.store.table("tasks.keys").scan()] == []


async def test_a_task_that_waits_for_an_answer_is_left_alone(manual, clock):
    """However long it waits."""
    agent = recording_agent([])
    agent.capability("ask")(lambda payload, ctx: ctx.ask("Which one?"))
    manual.register(agent)
    handle = await manual.submit("ask")
    await manual.drain()
    clock.pass_(10_000)
    assert await maintain(manual.store, manual._registry, keep=100) == 0
    assert await manual.drain() == 0
    assert (await handle.response()).status == "input_required"


async def test_an_unreadable_task_does_not_stop_the_maintenance(manual, clock, caplog):
    """The task is not changed, and the error is logged."""
    manual.register(recording_agent([], read_only=True))
    await manual.store.table("tasks").put("broken", _row("broken"))
    await manual.store.log(log_name("tasks", "broken")).append(b"junk")
    await manual.submit("work", id="t")
    await manual.drain()
    clock.pass_(10_000)
    assert await maintain(manual.store, manual._registry, keep=100) == 1
    assert [each.id async for each in manual.list()] == ["broken"]
    assert "cannot be read" in caplog.text


async def test_a_command_whose_message_is_lost(manual, clock):
    """The answer is in the log, but the process died before it put the message on the queue."""
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def ask(payload, ctx):
        return ctx.ask("?")

    manual.register(agent)
    await manual.submit("ask", id="t")
    await manual.drain()
    answer = entries.Answered(at=clock.now, step="ask", answer="yes")
    await manual.store.log(log_name("tasks", "t")).append(entries.encode([answer]))
    clock.pass_(10_000)
    await maintain(manual.store, manual._registry, keep=None)
    await manual.drain()
    assert (await manual.get("t").response()).result == "yes"


async def test_lost_messages_are_repaired_also_if_no_task_is_forgotten(store):
    """With `keep=None`, the maintenance runs as well."""

    async def scheduled():
        return MAINTENANCE in [message.key async for message in store.queue("tasks").messages()]

    async with Orchestrator(store=store, keep=None):
        await wait_until(scheduled)
