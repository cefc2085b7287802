"""Several writers of one log: only the one that has read the last entry can append."""

import pytest

from amends import stores
from amends.errors import task as errors
from amends.tasks import Agent, entries
from amends.tasks.entries import Doubted, Started
from amends.tasks.journal import Fenced, Journal, log_name, read_task
from amends.tasks.run import Run
from tests.tasks.crashes import recording_agent, records


async def test_two_writers_of_one_log(open_orchestrator, store):
    """A writer that has not read the last entry is fenced, independent of leases."""
    client = await open_orchestrator(worker=False)
    await client.submit("work", agent="worker", id="t")
    lease = await store.queue("tasks", lease=30).take()
    one, two = [Journal(store, "tasks", await read_task(store, "tasks", "t"), lease) for _ in range(2)]
    await one.write([Started(at=1.0, step="work", attempt=1)])
    with pytest.raises(Fenced):
        await two.write([Started(at=2.0, step="work", attempt=1)])
    await client.cancel("t")
    await one.write([entries.Finished(at=3.0, step="work", began=1.0)])
    assert one.state.cancelled
    assert [type(record).__name__ for record in await records(client, "t")] == [
        *("Submitted", "Started", "Cancelled", "Finished")
    ]
    if store.traits.transactions:
        late = Journal(store, "tasks", await read_task(store, "tasks", "t"), lease)
        await one.write([entries.Effect(at=4.0, step="work", name="a")])
        with pytest.raises(Fenced):
            await late.commit(lambda tx: tx.table("x").put("k", b"v"), lambda _: Doubted(at=5.0, step="work"))
        assert await store.table("x").get("k") is None


async def test_a_command_between_two_appends_is_applied(manual, clock):
    """The append is repeated after the command."""
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def work(payload, ctx):
        if payload:
            await manual.cancel(ctx.task)
        return "done"

    manual.register(agent)
    handle = await manual.submit("work", 1)
    await manual.drain()
    assert (await handle.response()).status in {"completed", "cancelled"}
    assert sum(isinstance(r, entries.Cancelled) for r in await records(manual, handle.id)) == 1


async def test_a_refused_write_is_not_counted_twice(manual):
    """After a refused commit, the state is that of the log."""
    await manual.submit("work", agent="worker", id="t")
    lease = await manual.store.queue("tasks", lease=30).take()
    journal = Journal(manual.store, "tasks", await read_task(manual.store, "tasks", "t"), lease)
    await manual.cancel("t")
    await journal.write([entries.Taken(at=1.0, worker="w", takeover=True)])
    assert (journal.state.takeovers, journal.state.cancelled) == (1, True)
    assert (await manual.state("t")).takeovers == 1


async def test_nothing_is_written_after_the_task_was_released(manual, clock):
    """`release` writes nothing then."""
    manual.register(recording_agent([], read_only=True))
    await manual.submit("work", id="t")
    lease = await manual.store.queue("tasks", lease=30).take()
    found = await read_task(manual.store, "tasks", "t")
    run = Run(manual._registry, Journal(manual.store, "tasks", found, lease))
    await run.execute(takeover=False)
    await run.release()
    await run.read_commands()
    written = await records(manual, "t")
    assert isinstance(written[-1], entries.Ended)
    assert len(written) == 4


async def test_unknown_records_are_an_error(manual):
    """The log of a newer version is not changed."""
    await manual.store.log(log_name("tasks", "t")).append(b'[{"what":"invented","at":1}]')
    with pytest.raises(stores.DamagedStoreError):
        await manual.state("t")


async def test_a_payload_that_is_not_json_is_refused(manual):
    """Nothing is stored."""
    manual.register(recording_agent([]))
    for task, payload in (("work", object()), ({"id": "x", "type": "work", "payload": {1, object()}}, None)):
        with pytest.raises(errors.InvalidInputError):
            await manual.submit(task, payload)
    assert [each async for each in manual.list()] == []


async def test_an_answer_that_comes_while_the_run_releases_the_task(manual, clock):
    """The run reads the answer and goes on instead of releasing the task."""
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def ask(payload, ctx):
        return ctx.ask("?")

    manual.register(agent)
    await manual.submit("ask", id="t")
    lease = await manual.store.queue("tasks", lease=30).take()
    found = await read_task(manual.store, "tasks", "t")
    journal = Journal(manual.store, "tasks", found, lease)
    run = Run(manual._registry, journal)
    write = journal.write

    async def answer_first(records, **options):
        if isinstance(records[-1], entries.Released):
            answer = entries.encode([entries.Answered(at=clock.now, step="ask", answer="now")])
            now = (await read_task(manual.store, "tasks", "t")).last
            if now == 3:
                await manual.store.log(log_name("tasks", "t")).append(answer, last=now)
        return await write(records, **options)

    journal.write = answer_first
    await run.execute(takeover=False)
    assert run.state.response().result == "now"
    assert not await run.read_commands()
