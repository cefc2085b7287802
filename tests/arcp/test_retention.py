"""Jobs that are no longer stored: requests get JOB_NOT_FOUND, and no client waits for their end."""

from __future__ import annotations

import asyncio

import pytest

from amends.arcp import connect
from amends.arcp.errors import JobNotFoundError
from amends.arcp.runtime.server import session
from amends.stores import StoreUnavailableError
from amends.stores.nats import notifications
from tests.arcp.raw import connected

SOON = {"finished": 0, "node_lease": 0.1}


async def wait_until_deleted(runtime, job_id):
    async with asyncio.timeout(100):
        # The log is deleted first, the row last.
        while not await runtime.node.ledger.is_deleted(job_id) or job_id in await listed(runtime):
            await asyncio.sleep(0.01)


async def listed(runtime):
    return {row.job_id async for row in runtime.node.ledger.ended()}


@pytest.mark.parametrize("store_url", ["memory", "sqlite", "nats"], indirect=True)
async def test_requests_for_a_deleted_job(store_url, begin):
    """Subscribing and cancelling return JOB_NOT_FOUND, as for a job that never existed, and no listing shows it."""
    runtime = await begin(store_url, limits=SOON)
    raw = await connected(runtime)
    job_id = (await raw.run("echo", 1))["job_id"]
    await wait_until_deleted(runtime, job_id)
    answers = []
    for missing in (job_id, "job_that_never_was"):
        for payload in ({"job_id": missing}, {"job_id": missing, "history": True, "from_event_seq": 0}):
            answers.append(await raw.answer(await raw.send("job.subscribe", payload)))
        answers.append(await raw.answer(await raw.send("job.cancel", {}, job_id=missing)))
    assert {(answer["type"], answer["payload"]["code"]) for answer in answers} == {
        ("job.error", "JOB_NOT_FOUND")
    }
    assert len({str(answer["payload"].get("details")) for answer in answers}) == 1
    listed = await raw.answer(await raw.send("session.list_jobs", {}))
    assert listed["payload"]["jobs"] == []
    await raw.close()


async def test_a_client_waiting_for_a_deleted_job(begin):
    """`subscribe` raises, and a later `subscribe` to the same job can be made."""
    runtime = await begin(limits=SOON)
    async with runtime.listen("127.0.0.1", 0) as server, connect(server.url, token="alice-token") as client:
        handle = await client.submit("echo", 1)
        assert await handle.done == 1
        await wait_until_deleted(runtime, handle.job_id)
        for _ in range(2):
            with pytest.raises(JobNotFoundError):
                await client.subscribe(handle.job_id)


@pytest.mark.parametrize("store_url", ["memory", "sqlite", "nats"], indirect=True)
async def test_subscribers_get_an_error_when_the_job_is_deleted(store_url, begin, monkeypatch):
    """If a node cannot read a job's log until the job is deleted, its subscribers get an error as the job's end."""
    # A long lease: on a busy machine the second node could consider the first dead and end the job too early.
    first = await begin(store_url, limits={"finished": 0})
    second = await begin(store_url, limits={"finished": 0})
    raw, watcher = await connected(first), await connected(second)
    job_id = (await raw.submit("waiting"))["payload"]["job_id"]
    await raw.until("job.event")
    async with connect(second, token="alice-token") as client:
        reading = asyncio.Event()
        entries = second.node.ledger.entries

        async def blind(job_id, start):
            return await entries(job_id, start) if reading.is_set() else []

        monkeypatch.setattr(second.node.ledger, "entries", blind)
        # The node gets no notifications either, as when its connection to the server is down.
        monkeypatch.setattr(notifications._Subscription, "entries", lambda *_: [])
        await watcher.answer(await watcher.send("job.subscribe", {"job_id": job_id}))
        handle = await client.subscribe(job_id)
        await raw.send("job.cancel", {}, job_id=job_id)
        await raw.end(job_id)
        await first.node.ended.expire()
        await wait_until_deleted(first, job_id)
        reading.set()
        error = await watcher.until("job.error")
        assert (error["job_id"], error["payload"]["code"], error["payload"]["final_status"]) == (
            job_id,
            "JOB_NOT_FOUND",
            "error",
        )
        assert "event_seq" not in error
        with pytest.raises(JobNotFoundError):
            await handle.done
    await asyncio.gather(raw.close(), watcher.close())


@pytest.mark.parametrize("store_url", ["memory", "sqlite", "nats"], indirect=True)
async def test_subscriptions_survive_a_store_outage(store_url, begin, monkeypatch):
    """If a job of another node cannot be read for a while, its subscribers get its end afterwards."""
    monkeypatch.setattr(session, "_SLOWEST", session._FASTEST)
    monkeypatch.setattr(session, "_MISSED_SIGNAL", session._FASTEST)
    first, second = await begin(store_url), await begin(store_url)
    raw, watcher = await connected(first), await connected(second)
    job_id = (await raw.submit("waiting"))["payload"]["job_id"]
    await raw.until("job.event")
    asked = 0

    async def away(*_given):
        nonlocal asked
        asked += 1
        raise StoreUnavailableError("away", executed="no")

    with monkeypatch.context() as patch:
        for reading in ("entries", "is_deleted"):
            patch.setattr(second.node.ledger, reading, away)
        await watcher.answer(await watcher.send("job.subscribe", {"job_id": job_id}))
        async with asyncio.timeout(100):
            while asked < 4:
                await asyncio.sleep(0.01)
    await raw.send("job.cancel", {}, job_id=job_id)
    end = await raw.end(job_id)
    assert (await watcher.end(job_id))["payload"] == end["payload"]
    await asyncio.gather(raw.close(), watcher.close())


async def test_a_deletion_that_fails_is_repeated(begin, monkeypatch):
    """A job whose deletion failed is not forgotten: the next round deletes it."""
    runtime = await begin(limits={"finished": 0, "node_lease": 60})
    raw = await connected(runtime)
    job_id = (await raw.run("echo", 1))["job_id"]
    with monkeypatch.context() as patch:

        async def fails(*_):
            raise StoreUnavailableError("unavailable")

        patch.setattr(runtime.node.ledger, "delete", fails)
        with pytest.raises(StoreUnavailableError):
            await runtime.node.ended.expire()
    await runtime.node.ended.expire()
    assert await runtime.node.ledger.is_deleted(job_id)
    await raw.close()
