"""Jobs of nodes that are dead, late or stopping."""

from __future__ import annotations

import asyncio

from amends.arcp import Limits, Runtime
from tests.arcp.raw import TOKENS, connected


async def test_a_node_that_wakes_up_late_finishes_nothing(store_url, begin):
    """Another node has ended the job: the suspended node cannot write its end, and its subscribers get the other one."""
    awake = await begin(store_url, limits={"node_lease": 0.4})
    woken = asyncio.Event()

    async def sleeper(input, ctx):
        await ctx.log("asleep")
        await woken.wait()
        await ctx.log("awake")
        return "late"

    # Its own lease is long: only the deletion below makes the other node consider it dead.
    sleeping = Runtime(store_url, tokens=TOKENS, limits=Limits(node_lease=30.0, cancel_grace=0.1, drain=0.0))
    sleeping.register_agent("sleeper", sleeper)
    async with sleeping:
        raw = await connected(sleeping)
        job_id = (await raw.submit("sleeper", idempotency_key="k"))["payload"]["job_id"]
        await raw.until("job.event")
        # As if the process had been suspended, the node does not renew its row.
        node = sleeping._node

        async def silent():
            pass

        node.membership.announce = silent
        await node.store.table("arcp.nodes").delete(node.id)
        watcher = await connected(awake)
        request = await watcher.send("job.subscribe", {"job_id": job_id})
        await watcher.answer(request)
        end = await watcher.end(job_id)
        assert end["payload"]["details"]["in_doubt"] is True
        woken.set()
        # The subscriber of the suspended node gets the same end.
        mine = await raw.end(job_id)
        assert mine["payload"] == end["payload"]
        assert job_id not in node.jobs
        entries = [entry async for _, entry in node.ledger.history(job_id)]
        assert [entry.kind for entry in entries].count("error") == 1
        assert not any(b"awake" in bytes(entry.payload) for entry in entries)
        assert entries[-1].kind == "error"
        await asyncio.gather(raw.close(), watcher.close())


async def test_a_suspended_node_drops_lost_jobs(store_url, begin):
    """After a pause longer than its lease, a node checks every job that it runs."""
    runtime = await begin(store_url)
    raw = await connected(runtime)
    mine = (await raw.submit("waiting"))["payload"]["job_id"]
    lost = (await raw.submit("waiting"))["payload"]["job_id"]
    node = runtime._node
    spec, tail = await node.ledger.spec(lost), await node.ledger.tail(lost)
    while tail[1].kind != "event":
        await asyncio.sleep(0.01)
        tail = await node.ledger.tail(lost)
    await node.ledger.requeue(spec, tail)
    await node.takeover.drop_lost_jobs()
    assert [job.spec.job_id for job in node.jobs] == [mine]
    await raw.close()


async def test_an_agent_stops_before_its_job_is_requeued(store_url, begin):
    """A run is requeued after its agent has stopped, so that it never runs twice at the same time."""
    at_work, most, cleaned = 0, 0, []

    async def tidy(input, ctx):
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        try:
            await ctx.status("started")
            if not cleaned:
                await asyncio.Event().wait()
            return "done"
        finally:
            # Cleaning up takes a while.
            for _ in range(20):
                await asyncio.sleep(0.01)
            cleaned.append(ctx.run)
            at_work -= 1

    second = await begin(store_url, limits={"running": 0})
    second.register_agent("tidy", tidy, repeatable=True)
    first = Runtime(store_url, tokens=TOKENS, limits=Limits(drain=0.0))
    first.register_agent("tidy", tidy, repeatable=True)
    third = await begin(store_url)
    async with first:
        raw = await connected(first)
        job_id = (await raw.submit("tidy"))["payload"]["job_id"]
        await raw.until("job.event")
        third.register_agent("tidy", tidy, repeatable=True)
    watcher = await connected(third)
    await watcher.send("job.subscribe", {"job_id": job_id, "history": True})
    assert (await watcher.end(job_id))["payload"]["result"] == "done"
    assert (most, cleaned) == (1, [1, 1])
    await watcher.close()
