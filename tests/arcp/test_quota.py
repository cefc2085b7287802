"""The limit of unfinished jobs per principal (14), running or queued on any node; outdated numbers do not reject."""

from __future__ import annotations

import asyncio

import pytest

from tests.arcp.raw import connected

LIMIT = {"limit": "jobs_per_principal", "value": 3}


async def refused(raw):
    answer = await raw.submit("waiting")
    assert answer["type"] == "job.error", answer
    assert (answer["payload"]["code"], answer["payload"]["retryable"]) == ("INTERNAL_ERROR", True)
    return answer["payload"]["details"]


async def accepted(raw, agent="waiting", **more):
    answer = await raw.submit(agent, **more)
    assert answer["type"] == "job.accepted", answer
    return answer["payload"]["job_id"]


async def stopped(raw, job_id):
    await raw.send("job.cancel", {}, job_id=job_id)
    await raw.end(job_id)


async def test_queued_jobs_count(store_url, begin):
    """Queued jobs count, a job taken from its queue counts once, and ended jobs make room."""
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
async def test_jobs_queued_during_a_scan_count(store_url, begin, monkeypatch):
    """A job that is queued while the store is read is counted, although the read may miss it."""
    runtime = await begin(store_url, limits={"jobs_per_principal": 3, "running": 1, "node_lease": 60.0})
    raw, node = await connected(runtime), runtime.node
    refresh, waits, go_on = node.membership.refresh_peers, asyncio.Event(), asyncio.Event()

    async def slowly():
        if not waits.is_set():
            waits.set()
            await go_on.wait()
        await refresh()

    monkeypatch.setattr(node.membership, "refresh_peers", slowly)
    recovering = asyncio.ensure_future(node.takeover.recover_orphans())
    await waits.wait()
    for _ in range(3):
        await accepted(raw)
    go_on.set()
    await recovering
    assert await refused(raw) == LIMIT
    await raw.close()


async def test_queued_jobs_count_on_an_exclusive_store(begin):
    """They still count after a round of maintenance on a store that no other node uses."""
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
async def test_jobs_of_all_nodes_count(store_url, begin):
    """Jobs that run on other nodes count once they are known; jobs that ended there do not."""
    first, second = [await begin(store_url, limits={"jobs_per_principal": 3}) for _ in range(2)]
    here, there, other = (
        await connected(first),
        await connected(second),
        await connected(second, "bob-token"),
    )
    jobs = [await accepted(here) for _ in range(3)]
    assert await refused(here) == LIMIT
    await first.node.membership.announce()
    await second.node.membership.refresh_peers()
    await second.node.takeover.recover_orphans()
    assert second.node.quota.elsewhere["alice"] >= 3
    assert await refused(there) == LIMIT
    await accepted(other)
    await stopped(here, jobs[0])
    async with asyncio.timeout(100):
        while (await there.submit("waiting"))["type"] != "job.accepted":
            await asyncio.sleep(0.01)
    await asyncio.gather(here.close(), there.close(), other.close())


async def test_outdated_numbers_do_not_reject(store_url, begin):
    """If the known numbers reach the limit, the jobs are counted in the store."""
    runtime = await begin(store_url, limits={"jobs_per_principal": 3})
    runtime.node.quota.elsewhere["alice"] = 7
    raw = await connected(runtime)
    for _ in range(3):
        await accepted(raw)
    assert await refused(raw) == LIMIT
    await raw.close()


async def test_many_rejections_share_a_count(begin, monkeypatch):
    """Repeated rejections of one principal do not read the table every time."""
    runtime = await begin(limits={"jobs_per_principal": 3})
    raw = await connected(runtime)
    scans, active = 0, runtime.node.ledger.active

    def counted(owner=None):
        nonlocal scans
        scans += 1
        return active(owner)

    for _ in range(3):
        await accepted(raw)
    monkeypatch.setattr(runtime.node.ledger, "active", counted)
    monkeypatch.setattr("amends.arcp.runtime.cluster.quota._FRESH", 1000.0)
    monkeypatch.setattr("amends.arcp.runtime.cluster.quota._REMEMBERED", 1)
    for _ in range(20):
        assert await refused(raw) == LIMIT
    assert scans == 1
    other = await connected(runtime, "bob-token")
    for _ in range(3):
        await accepted(other)
    assert await refused(other) == LIMIT
    assert scans == 2
    await asyncio.gather(raw.close(), other.close())


async def test_jobs_that_a_node_drops_do_not_count(store_url, begin):
    """A job that another node has taken over no longer counts as running here."""
    runtime = await begin(store_url, limits={"jobs_per_principal": 3})
    raw, node = await connected(runtime), runtime.node
    job_id = await accepted(raw)
    await raw.until("job.event")
    node.jobs[job_id].drop()
    assert not node.quota.here
    assert not node.capacity.running
    await raw.close()
