"""The list, the queue and the log are three things: what puts them right when one is behind."""

from amends.tasks import Step, entries
from amends.tasks.entries import Submitted
from amends.tasks.listing import Listing
from amends.tasks.reading import log_name
from amends.tasks.submitting import submit
from amends.tasks.sweeping import sweep
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
