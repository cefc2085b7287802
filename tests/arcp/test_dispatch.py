"""Taking jobs from queues: several nodes at once, failing stores, the limit of running jobs, and cancellation."""

from __future__ import annotations

import asyncio

import pytest

from amends.arcp.runtime.jobs import cancel as control
from amends.arcp.runtime.jobs.cancel import Cancellation
from amends.stores import StoreUnavailableError
from tests.arcp.raw import connected
from tests.arcp.test_lifecycle import Gateway, wait_until_revoked

EVERYWHERE = pytest.mark.parametrize("store_url", ["memory", "sqlite", "nats"], indirect=True)


def away(*_given, **_more):
    raise StoreUnavailableError("away", executed="no")


class Crowd:
    """An agent that counts how many instances run at the same time."""

    def __init__(self):
        self.now = self.most = 0
        self.release = asyncio.Event()

    async def agent(self, input, ctx):
        self.now += 1
        self.most = max(self.most, self.now)
        await ctx.status("started")
        await self.release.wait()
        self.now -= 1
        return input


@EVERYWHERE
async def test_the_last_place_is_taken_once(store_url, begin, monkeypatch):
    """With many queues and a slow store, a node runs as many jobs as it may, and the rest waits."""
    crowd = Crowd()
    front = await begin(store_url, agents=False)
    back = await begin(store_url, agents=False, limits={"running": 2})
    for number in range(5):
        back.register_agent(f"agent{number}", crowd.agent)
    await back.node.membership.announce()
    spec_and_tail = back.node.ledger.spec_and_tail

    async def slow(job_id):
        await asyncio.sleep(0.2)
        return await spec_and_tail(job_id)

    monkeypatch.setattr(back.node.ledger, "spec_and_tail", slow)
    raw = await connected(front)
    for number in range(5):
        await raw.send("job.submit", {"agent": f"agent{number}", "input": number})
    for _ in range(5):
        await raw.until("job.accepted")
    async with asyncio.timeout(100):
        while crowd.now < 2:
            await asyncio.sleep(0.01)
    crowd.release.set()
    results = []
    while len(results) < 5:
        results.append((await raw.until("job.result"))["payload"]["result"])
    assert sorted(results) == list(range(5))
    assert crowd.most == 2
    await raw.close()


@EVERYWHERE
async def test_a_queue_that_cannot_be_read_for_a_while(store_url, begin, monkeypatch, caplog):
    """The queue is read again, and its jobs run."""
    runtime = await begin(store_url, limits={"running": 0})
    raw = await connected(runtime)
    job_id = (await raw.submit("echo", 5))["payload"]["job_id"]
    queue, tries = runtime.node.store.queue, 0

    def failing(name, **options):
        nonlocal tries
        found = queue(name, **options)
        take = found.take

        async def taken(**given):
            nonlocal tries
            tries += 1
            return away() if tries == 1 else await take(**given)

        found.take = taken
        return found

    monkeypatch.setattr(runtime.node.store, "queue", failing)
    able = await begin(runtime.node.store)
    assert (await raw.end(job_id))["payload"]["result"] == 5
    assert "can be taken from" in caplog.text
    async with asyncio.timeout(100):
        while able.node.capacity.running:
            await asyncio.sleep(0.01)
    await raw.close()


async def test_another_node_takes_the_job_first(store_url, begin, monkeypatch):
    """Of two nodes that read the same job, one starts it and the other frees its place."""
    runtime = await begin(store_url, limits={"running": 1})
    raw = await connected(runtime)
    busy = (await raw.submit("waiting"))["payload"]["job_id"]
    job_id = (await raw.submit("echo", 5))["payload"]["job_id"]
    node, start = runtime.node, runtime.node.ledger.start
    other = await begin(store_url, agents=False)
    lost = asyncio.Event()

    async def beaten(spec, tail):
        monkeypatch.setattr(node.ledger, "start", start)
        entry = await other.node.ledger.start(spec, tail)
        await other.node.ledger.requeue(spec, (tail[0] + 1, entry))
        lost.set()
        return await start(spec, tail)

    monkeypatch.setattr(node.ledger, "start", beaten)
    await raw.send("job.cancel", {}, job_id=busy)
    await lost.wait()
    assert (await raw.end(job_id))["payload"]["result"] == 5
    async with asyncio.timeout(100):
        while node.capacity.running:
            await asyncio.sleep(0.01)
    await raw.close()


async def test_a_node_takes_a_job_that_it_still_runs(store_url, begin):
    """Another node has requeued it: the earlier run is dropped, and the job occupies one place."""
    runtime = await begin(store_url)
    crowd, node = Crowd(), runtime.node
    runtime.register_agent("agent", crowd.agent, repeatable=True)
    raw = await connected(runtime)
    job_id = (await raw.submit("agent", 5))["payload"]["job_id"]
    await raw.until("job.event")
    other = await begin(store_url, agents=False)
    old, ledger = node.jobs[job_id], other.node.ledger
    await ledger.requeue(await ledger.spec(job_id), await ledger.tail(job_id))
    node.capacity.queue_wakeup.set()
    async with asyncio.timeout(100):
        while node.jobs.get(job_id) in {old, None}:
            await asyncio.sleep(0.01)
    assert (old.phase, node.capacity.running, node.quota.here) == ("ended", 1, {"alice": 1})
    crowd.release.set()
    assert (await raw.end(job_id))["payload"]["result"] == 5
    async with asyncio.timeout(100):
        while node.capacity.running:
            await asyncio.sleep(0.01)
    assert not node.quota.here
    await raw.close()


async def test_cancelled_while_it_is_taken(store_url, begin, monkeypatch):
    """If a node starts a queued job before its cancellation is written, that node gets the request."""
    front = await begin(store_url, agents=False)
    back = await begin(store_url, limits={"running": 0})
    raw = await connected(front)
    await front.node.membership.refresh_peers()
    job_id = (await raw.submit("waiting"))["payload"]["job_id"]
    end_queued = Cancellation.end_queued
    too_late = []

    async def late(self, spec, *given):
        able = await begin(store_url)
        async with asyncio.timeout(100):
            while job_id not in able.node.jobs:
                await asyncio.sleep(0.01)
        too_late.append(not await end_queued(self, spec, *given))
        return not too_late[-1]

    monkeypatch.setattr(Cancellation, "end_queued", late)
    request = await raw.send("job.cancel", {"reason": "enough"}, job_id=job_id)
    end = await raw.end(job_id)
    assert (end["payload"]["code"], end["payload"]["details"]) == ("CANCELLED", {"reason": "enough"})
    assert [m["type"] for m in raw.seen if m["payload"].get("request_id") == request] == ["job.cancelled"]
    assert too_late == [True]
    assert not back.node.jobs
    await raw.close()


async def test_cancelled_while_its_end_is_written(begin, monkeypatch):
    """The request is refused because the job has ended, also before the end is in the store."""
    runtime = await begin()
    raw = await connected(runtime)
    ledger, writing, go_on = runtime.node.ledger, asyncio.Event(), asyncio.Event()
    end, go = ledger.end, asyncio.Event()

    async def slow(*given):
        writing.set()
        await go_on.wait()
        await end(*given)

    async def working(input, ctx):
        await ctx.status("started")
        await go.wait()
        return "done"

    runtime.register_agent("working", working)
    job_id = (await raw.submit("working"))["payload"]["job_id"]
    monkeypatch.setattr(ledger, "end", slow)
    go.set()
    await writing.wait()
    answer = await raw.answer(await raw.send("job.cancel", {}, job_id=job_id))
    assert answer["payload"]["code"] == "INVALID_REQUEST"
    go_on.set()
    assert (await raw.end(job_id))["payload"]["result"] == "done"
    await runtime.node.cancellation.cancel_children([job_id, "job_that_never_was"])
    await raw.close()


async def test_credentials_of_a_cancelled_queued_job_are_revoked(store_url, begin):
    """The job is cancelled before it starts."""
    gateway = Gateway()
    runtime = await begin(store_url, credentials=gateway, limits={"running": 0})
    raw = await connected(runtime)
    accepted = (await raw.submit("echo"))["payload"]
    assert accepted["credentials"]
    await raw.send("job.cancel", {}, job_id=accepted["job_id"])
    assert (await raw.end(accepted["job_id"]))["payload"]["code"] == "CANCELLED"
    await wait_until_revoked(gateway, runtime)
    await raw.close()


async def test_maintenance_survives_a_failing_store(store_url, begin, monkeypatch, caplog):
    """It logs the failure and continues: the node's row is written again, and it keeps its jobs."""
    runtime = await begin(store_url, limits={"node_lease": 0.3})
    raw = await connected(runtime)
    job_id = (await raw.submit("waiting"))["payload"]["job_id"]
    await raw.until("job.event")
    node, failed = runtime.node, []

    def once(name, where):
        real = getattr(where, name)

        async def stand_in(*given):
            if name not in failed:
                failed.append(name)
                away()
            return await real(*given)

        monkeypatch.setattr(where, name, stand_in)

    once("announce", node.membership._workers)
    once("expire", node.sessions)
    async with asyncio.timeout(100):
        while len(failed) < 2 or not [row async for row in node.store.table("arcp.nodes").scan()]:
            await asyncio.sleep(0.01)
    assert "this worker could not renew its row" in caplog.text
    assert "a round of maintenance failed" in caplog.text
    await raw.send("job.cancel", {}, job_id=job_id)
    assert (await raw.end(job_id))["payload"]["code"] == "CANCELLED"
    await raw.close()


async def test_the_control_log_is_trimmed(store_url, begin, monkeypatch):
    """All cancellations from another node are read, though the log keeps only a few of them."""
    monkeypatch.setattr(control, "_CONTROL_KEPT", 2)
    back = await begin(store_url)
    front = await begin(store_url, agents=False)
    raw = await connected(front)
    for _ in range(7):
        job_id = (await raw.submit("waiting"))["payload"]["job_id"]
        await raw.until(lambda m: m["type"] == "job.event")
        await raw.send("job.cancel", {}, job_id=job_id)
        assert (await raw.end(job_id))["payload"]["code"] == "CANCELLED"
    log = back.node.store.log("arcp.nodes/control")
    async with asyncio.timeout(100):
        while (await log.bounds()).first < 4:
            await asyncio.sleep(0.01)
    await raw.close()


async def test_a_rerun_job_is_not_deleted(store_url, begin):
    """The end of its earlier run does not delete a job that is running again."""
    runtime = await begin(store_url, limits={"keyed": 0})
    go = asyncio.Event()

    async def twice(input, ctx):
        if ctx.run == 1:
            raise RuntimeError("again")
        await ctx.status("started")
        await go.wait()
        return ctx.run

    runtime.register_agent("twice", twice)
    raw = await connected(runtime)
    await raw.run("twice", idempotency_key="k")
    job_id = (await raw.submit("twice", idempotency_key="k"))["payload"]["job_id"]
    await raw.until("job.event")
    await asyncio.gather(runtime.node.ended.expire(), runtime.node.ended.expire())
    go.set()
    assert (await raw.end(job_id))["payload"]["result"] == 2
    await raw.close()
