"""The list, the queue and the log are three things: what puts them right when one is behind."""

from amends.tasks import Step, entries
from amends.tasks.entries import Submitted
from amends.tasks.maintenance import sweep
from amends.tasks.submit import submit
from amends.tasks.task_index import Listing
from amends.tasks.task_reader import log_name
from tests.tasks.crashes import lonely


def _row(id, seq=1):
    import msgspec

    return msgspec.json.encode(Listing(id=id, status="pending", type="work", seq=seq, created=0, updated=0))


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


async def test_a_task_that_is_forgotten_takes_its_key_along(still, clock):
    """The same key is another task then, and nothing of the first is kept."""
    ran = []
    still.register(lonely(ran, read_only=True))
    for forgotten in (0, 1):
        first = await still.submit("work", key="k")
        again = await still.submit("work", key="k")
        assert first.id == again.id
        await still.drain()
        assert len(ran) == forgotten + 1
        clock.pass_(101)
        assert await sweep(still.store, still._house, keep=100) == 1
        assert [row async for row in still.store.table("tasks.keys").scan()] == []


async def test_what_waits_for_an_answer_is_let_wait(still, clock):
    """However long that takes: nobody has anything to do for it."""
    agent = lonely([])
    agent.capability("ask")(lambda payload, ctx: ctx.ask("Which one?"))
    still.register(agent)
    handle = await still.submit("ask")
    await still.drain()
    clock.pass_(10_000)
    assert await sweep(still.store, still._house, keep=100) == 0
    assert await still.drain() == 0
    assert (await handle.response()).status == "input_required"


async def test_one_that_cannot_be_read_keeps_nobody_else(still, clock, caplog):
    """It is left as it is, and said."""
    still.register(lonely([], read_only=True))
    await still.store.table("tasks").put("broken", _row("broken"))
    await still.store.log(log_name("tasks", "broken")).append(b"junk")
    await still.submit("work", id="t")
    await still.drain()
    clock.pass_(10_000)
    assert await sweep(still.store, still._house, keep=100) == 1
    assert [each.id async for each in still.list()] == ["broken"]
    assert "cannot be read" in caplog.text
