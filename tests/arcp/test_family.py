"""The descendants of a submitted job: bounded in depth and number, and none after its end."""

from __future__ import annotations

import asyncio

import pytest

from amends.errors import FaultError
from tests.arcp.raw import connected
from tests.arcp.test_delegate import LEASE, Family


async def test_the_depth_is_bounded(store_url, begin):
    """The refusal names the limit, and the job that was refused can go on."""
    runtime = await begin(store_url, limits={"delegation_depth": 5})
    family = Family(runtime)
    raw = await connected(runtime)
    assert (await raw.run("chain", 0, lease_request=LEASE))["type"] == "job.result"
    assert family.deepest == 5
    (refusal,) = family.refusals
    assert (refusal.code, refusal.retryable) == ("PERMISSION_DENIED", False)
    assert refusal.fault.details == {"limit": "delegation_depth", "value": 5}
    await raw.close()


@pytest.mark.parametrize("how", ["timeout", "cancel"])
async def test_an_ended_root_admits_no_descendant(store_url, begin, how):
    """A family that delegates without end stops soon after its root has ended."""
    runtime = await begin(
        store_url, limits={"delegation_depth": 10_000, "jobs_per_root": 10_000, "running": 50}
    )
    family = Family(runtime)
    raw = await connected(runtime)
    more = {"max_runtime_sec": 0.2} if how == "timeout" else {}
    job_id = (await raw.submit("loop", lease_request=LEASE, **more))["payload"]["job_id"]
    if how == "cancel":
        await raw.until(lambda m: m["type"] == "job.accepted" and m["job_id"] != job_id)
        await raw.send("job.cancel", {}, job_id=job_id)
    await raw.end(job_id)
    async with asyncio.timeout(60):
        while len(runtime.node.jobs):
            await asyncio.sleep(0.02)
    assert family.total < 200
    other = await connected(runtime, "bob-token")
    assert (await other.run("echo", 1))["payload"]["result"] == 1
    await asyncio.gather(raw.close(), other.close())


async def test_descendants_on_other_nodes_count(store_url, begin):
    """The jobs of one root are counted over all nodes."""
    limits = {"jobs_per_root": 3}
    front = await begin(store_url, limits=limits, agents=False)
    back = await begin(store_url, limits=limits, agents=False)
    refused = []

    async def here(input, ctx):
        for _ in range(3):
            try:
                await ctx.delegate("there", None, lease=LEASE)
            except FaultError as error:
                refused.append(error.code)

    async def there(input, ctx):
        try:
            await ctx.delegate("leaf", None, lease=LEASE)
        except FaultError as error:
            refused.append(error.code)

    async def leaf(input, ctx):
        return None

    front.register_agent("here", here)
    back.register_agent("there", there)
    back.register_agent("leaf", leaf)
    await back.node.membership.announce()
    raw = await connected(front)
    assert (await raw.run("here", lease_request=LEASE))["type"] == "job.result"
    assert refused == ["PERMISSION_DENIED"] * 2
    await raw.close()


async def test_children_of_a_job_that_is_stopped_are_refused(begin):
    """An agent that ignores its cancellation cannot delegate any more."""
    runtime = await begin(limits={"cancel_grace": 60.0})
    codes, waits = [], asyncio.Event()

    async def ignoring(input, ctx):
        try:
            waits.set()
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
        try:
            await ctx.delegate("echo", 1, lease=LEASE)
        except FaultError as error:
            codes.append(error.code)

    runtime.register_agent("ignoring", ignoring)
    raw = await connected(runtime)
    job_id = (await raw.submit("ignoring", lease_request=LEASE))["payload"]["job_id"]
    await waits.wait()
    await raw.send("job.cancel", {}, job_id=job_id)
    assert (await raw.end(job_id))["payload"]["code"] == "CANCELLED"
    assert codes == ["CANCELLED"]
    await raw.close()
