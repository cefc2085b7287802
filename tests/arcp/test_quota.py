"""One principal has so many jobs (14), wherever they run or wait, and is not refused for what was."""

from __future__ import annotations

import asyncio

import pytest

from amends.arcp.runtime import maintenance
from tests.arcp.raw import connected

LIMIT = {"limit": "jobs_per_principal", "value": 3}


async def refused(raw):
    answer = await raw.submit("waiting")
    assert answer["type"] == "job.error", answer
    assert (answer["payload"]["code"], answer["payload"]["retryable"]) == ("INTERNAL_ERROR", False)
    return answer["payload"]["details"]


async def accepted(raw, agent="waiting", **more):
    answer = await raw.submit(agent, **more)
    assert answer["type"] == "job.accepted", answer
    return answer["payload"]["job_id"]


async def stopped(raw, job_id):
    await raw.send("job.cancel", {}, job_id=job_id)
    await raw.end(job_id)


async def test_what_waits_counts(store_url, begin):
    """A queue is not a way around it; what is taken from it is counted once, and room comes back."""
    runtime = await begin(store_url, limits={"jobs_per_principal": 3, "running": 1})
    raw, other = await connected(runtime), await connected(runtime, "bob-token")
    first, second, third = [await accepted(raw) for _ in range(3)]
    assert await refused(raw) == LIMIT
    await accepted(other)
    await stopped(raw, first)
    await raw.until(lambda m: m["type"] == "job.event" and m["job_id"] == second)
    fourth = await accepted(raw)
    assert await refused(raw) == LIMIT
    for job_id in (second, third, fourth):
        await stopped(raw, job_id)
    for _ in range(3):
        await accepted(raw)
    await asyncio.gather(raw.close(), other.close())


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_what_is_queued_while_the_keeper_looks_counts(store_url, begin, monkeypatch):
    """What it has read by then does not say so, and must not be taken for all there is."""
    runtime = await begin(store_url, limits={"jobs_per_principal": 3, "running": 1, "node_lease": 60.0})
    raw, node = await connected(runtime), runtime.node
    meet, waits, go_on = node.meet, asyncio.Event(), asyncio.Event()

    async def slowly():
        if not waits.is_set():
            waits.set()
            await go_on.wait()
        await meet()

    monkeypatch.setattr(node, "meet", slowly)
    looking = asyncio.ensure_future(maintenance.recover_orphans(node))
    await waits.wait()
    for _ in range(3):
        await accepted(raw)
    go_on.set()
    await looking
    assert await refused(raw) == LIMIT
    await raw.close()


async def test_what_waits_alone_counts_too(begin):
    """In a store that nobody shares, after the keeper has looked, as before."""
    runtime = await begin(limits={"jobs_per_principal": 3, "running": 1, "node_lease": 0.03})
    raw = await connected(runtime)
    for _ in range(3):
        await accepted(raw)
    runtime.node.quota.elsewhere["alice"] = 0
    async with asyncio.timeout(100):
        while runtime.node.quota.elsewhere != {"alice": 2}:
            await asyncio.sleep(0.01)
    assert await refused(raw) == LIMIT
    await raw.close()


@pytest.mark.parametrize("store_url", ["memory", "sqlite", "nats"], indirect=True)
async def test_on_all_nodes_together(store_url, begin):
    """What other nodes run counts as soon as it was heard of; what ended there does not keep anybody out."""
    limits = {"jobs_per_principal": 3, "node_lease": 0.6}
    first, second = [await begin(store_url, limits=limits) for _ in range(2)]
    here, there, other = (
        await connected(first),
        await connected(second),
        await connected(second, "bob-token"),
    )
    jobs = [await accepted(here) for _ in range(3)]
    assert await refused(here) == LIMIT
    async with asyncio.timeout(100):
        while second.node.quota.elsewhere["alice"] < 3:
            await asyncio.sleep(0.01)
    assert await refused(there) == LIMIT
    await accepted(other)
    await stopped(here, jobs[0])
    async with asyncio.timeout(100):
        while (await there.submit("waiting"))["type"] != "job.accepted":
            await asyncio.sleep(0.01)
    await asyncio.gather(here.close(), there.close(), other.close())


async def test_nobody_is_refused_for_what_was(store_url, begin):
    """What was heard may be old: who seems to have too many is counted in the store."""
    runtime = await begin(store_url, limits={"jobs_per_principal": 3})
    runtime.node.quota.elsewhere["alice"] = 7
    raw = await connected(runtime)
    for _ in range(3):
        await accepted(raw)
    assert await refused(raw) == LIMIT
    await raw.close()


async def test_a_storm_of_refusals_counts_seldom(begin, monkeypatch):
    """Who is refused again and again does not make the runtime read its table every time."""
    runtime = await begin(limits={"jobs_per_principal": 3})
    raw = await connected(runtime)
    looks, active = 0, runtime.node.ledger.active

    def counted(owner=None):
        nonlocal looks
        looks += 1
        return active(owner)

    for _ in range(3):
        await accepted(raw)
    monkeypatch.setattr(runtime.node.ledger, "active", counted)
    monkeypatch.setattr("amends.arcp.runtime.quota._FRESH", 1000.0)
    monkeypatch.setattr("amends.arcp.runtime.quota._REMEMBERED", 1)
    for _ in range(20):
        assert await refused(raw) == LIMIT
    assert looks == 1
    other = await connected(runtime, "bob-token")
    for _ in range(3):
        await accepted(other)
    assert await refused(other) == LIMIT
    assert looks == 2
    await asyncio.gather(raw.close(), other.close())
