"""Taking jobs from queues, and taking them back: by several at once, on stores that fail, up to the last place."""

from __future__ import annotations

import asyncio

import pytest

from amends.arcp.runtime import cancel as cancelling
from amends.arcp.runtime import maintenance
from amends.stores import StoreUnavailableError
from tests.arcp.raw import connected
from tests.arcp.test_credentials import Gateway, gone

EVERYWHERE = pytest.mark.parametrize("store_url", ["memory", "sqlite", "nats"], indirect=True)


def away(*_given, **_more):
    raise StoreUnavailableError("away", executed="no")


class Crowd:
    """Agents that count themselves."""

    def __init__(self):
        self.now = self.most = 0
        self.release = asyncio.Event()

    async def agent(self, input, ctx):
        self.now += 1
        self.most = max(self.most, self.now)
        await ctx.status("begun")
        await self.release.wait()
        self.now -= 1
        return input


@EVERYWHERE
async def test_the_last_place_is_taken_once(store_url, begin, monkeypatch):
    """However many queues there are, and however slow the store: a node runs as many as it may, the rest waits."""
    crowd = Crowd()
    front = await begin(store_url, agents=False)
    back = await begin(store_url, agents=False, limits={"running": 2})
    for number in range(5):
        back.register_agent(f"agent{number}", crowd.agent)
    await back.node.announce()
    standing = back.node.ledger.standing

    async def slow(job_id):
        await asyncio.sleep(0.2)
        return await standing(job_id)

    monkeypatch.setattr(back.node.ledger, "standing", slow)
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
    """It is asked again; what waits there is done."""
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
    assert "nothing can be taken" in caplog.text
    async with asyncio.timeout(100):
        while able.node.running:
            await asyncio.sleep(0.01)
    await raw.close()


async def test_somebody_else_takes_it_first(store_url, begin, monkeypatch):
    """Two who found the same job: one begins it, the other gives its place back."""
    runtime = await begin(store_url, limits={"running": 1})
    raw = await connected(runtime)
    busy = (await raw.submit("waiting"))["payload"]["job_id"]
    job_id = (await raw.submit("echo", 5))["payload"]["job_id"]
    node, start = runtime.node, runtime.node.ledger.start
    other = await begin(store_url, agents=False)
    lost = asyncio.Event()

    async def beaten(order, tail):
        monkeypatch.setattr(node.ledger, "start", start)
        mark = await other.node.ledger.start(order, tail)
        await other.node.ledger.requeue(order, (tail[0] + 1, mark))
        lost.set()
        return await start(order, tail)

    monkeypatch.setattr(node.ledger, "start", beaten)
    await raw.send("job.cancel", {}, job_id=busy)
    await lost.wait()
    assert (await raw.end(job_id))["payload"]["result"] == 5
    async with asyncio.timeout(100):
        while node.running:
            await asyncio.sleep(0.01)
    await raw.close()


async def test_cancelled_at_the_moment_it_is_taken(store_url, begin, monkeypatch):
    """Whoever cancels a job that waits and comes too late tells whoever has it."""
    front = await begin(store_url, agents=False)
    back = await begin(store_url, limits={"running": 0})
    raw = await connected(front)
    await front.node.meet()
    job_id = (await raw.submit("waiting"))["payload"]["job_id"]
    end_waiting = cancelling.end_waiting
    too_late = []

    async def late(node, order, *given):
        able = await begin(store_url)
        async with asyncio.timeout(100):
            while job_id not in able.node.jobs:
                await asyncio.sleep(0.01)
        too_late.append(not await end_waiting(node, order, *given))
        return not too_late[-1]

    monkeypatch.setattr(cancelling, "end_waiting", late)
    request = await raw.send("job.cancel", {"reason": "enough"}, job_id=job_id)
    end = await raw.end(job_id)
    assert (end["payload"]["code"], end["payload"]["details"]) == ("CANCELLED", {"reason": "enough"})
    assert [m["type"] for m in raw.seen if m["payload"].get("request_id") == request] == ["job.cancelled"]
    assert too_late == [True]
    assert not back.node.jobs
    await raw.close()


async def test_cancelled_while_its_end_is_written(begin, monkeypatch):
    """It has ended, whoever knows it by now."""
    runtime = await begin()
    raw = await connected(runtime)
    ledger, writing, go_on = runtime.node.ledger, asyncio.Event(), asyncio.Event()
    end, go = ledger.end, asyncio.Event()

    async def slow(*given):
        writing.set()
        await go_on.wait()
        await end(*given)

    async def working(input, ctx):
        await ctx.status("begun")
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
    await cancelling.cancel_children(runtime.node, [job_id, "job_that_never_was"])
    await raw.close()


async def test_what_waits_has_its_credentials_revoked(store_url, begin):
    """Cancelled before it was begun."""
    gateway = Gateway()
    runtime = await begin(store_url, credentials=gateway, limits={"running": 0})
    raw = await connected(runtime)
    accepted = (await raw.submit("echo"))["payload"]
    assert accepted["credentials"]
    await raw.send("job.cancel", {}, job_id=accepted["job_id"])
    assert (await raw.end(accepted["job_id"]))["payload"]["code"] == "CANCELLED"
    await gone(gateway, runtime)
    await raw.close()


async def test_a_store_that_fails_the_keeper(store_url, begin, monkeypatch, caplog):
    """It says so and goes on: the node is heard of again, and its jobs are its own."""
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

    once("announce", node)
    once("expire", node.sessions)
    async with asyncio.timeout(100):
        while len(failed) < 2 or not [row async for row in node.store.table("arcp.nodes").scan()]:
            await asyncio.sleep(0.01)
    assert "the store does not answer" in caplog.text
    await raw.send("job.cancel", {}, job_id=job_id)
    assert (await raw.end(job_id))["payload"]["code"] == "CANCELLED"
    await raw.close()


async def test_words_between_nodes_are_not_kept_for_ever(store_url, begin, monkeypatch):
    """Cancellations from another node, more than are kept of them: all are heard, and the log stays short."""
    monkeypatch.setattr(maintenance, "_WORDS_KEPT", 2)
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


async def test_a_key_that_runs_again_is_not_forgotten(store_url, begin):
    """That its run before has ended long ago is no reason, while the next one is under way."""
    runtime = await begin(store_url, limits={"keyed": 0})
    go = asyncio.Event()

    async def twice(input, ctx):
        if ctx.run == 1:
            raise RuntimeError("again")
        await ctx.status("begun")
        await go.wait()
        return ctx.run

    runtime.register_agent("twice", twice)
    raw = await connected(runtime)
    await raw.run("twice", idempotency_key="k")
    job_id = (await raw.submit("twice", idempotency_key="k"))["payload"]["job_id"]
    await raw.until("job.event")
    await asyncio.gather(maintenance.evict(runtime.node), maintenance.evict(runtime.node))
    go.set()
    assert (await raw.end(job_id))["payload"]["result"] == 2
    await raw.close()
