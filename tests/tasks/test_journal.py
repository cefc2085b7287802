"""One log, several writers: the log alone decides who goes on."""

import pytest

from amends import stores
from amends.errors import task as errors
from amends.tasks import Agent, entries
from amends.tasks.entries import Doubted, Started
from amends.tasks.journal import Fenced, Journal
from amends.tasks.run import Run
from amends.tasks.task_reader import log_name, read
from tests.tasks.crashes import lonely, records


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


async def test_a_lost_race_leaves_the_state_its_log_tells(still):
    """The fold runs ahead of the write: where that is refused, nothing of it is counted twice."""
    await still.submit("work", agent="worker", id="t")
    lease = await still.store.queue("tasks", lease=30).take()
    journal = Journal(still.store, "tasks", *await read(still.store, "tasks", "t"), lease)
    await still.cancel("t")
    await journal.write([entries.Taken(at=1.0, worker="w", takeover=True)])
    assert (journal.state.takeovers, journal.state.cancelled) == (1, True)
    assert (await still.state("t")).takeovers == 1


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


async def test_records_of_another_kind_are_not_guessed(still):
    """A newer version's log is left alone, with a word about it."""
    await still.store.log(log_name("tasks", "t")).append(b'[{"what":"invented","at":1}]')
    with pytest.raises(stores.DamagedStoreError):
        await still.state("t")


async def test_what_cannot_be_written_down_is_refused(still):
    """Before anything is stored."""
    still.register(lonely([]))
    for task, payload in (("work", object()), ({"id": "x", "type": "work", "payload": {1, object()}}, None)):
        with pytest.raises(errors.InvalidInputError):
            await still.submit(task, payload)
    assert [each async for each in still.list()] == []


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
