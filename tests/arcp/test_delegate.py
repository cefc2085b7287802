"""Delegated jobs count against every limit, and an ended root admits no descendant."""

import asyncio

import pytest

from amends.arcp import Limits
from amends.errors import FaultError
from tests.arcp.raw import connected

LEASE = {"agent.delegate": ["*"]}


class Family:
    """Agents that delegate; counts what runs at the same time, and the deepest level."""

    def __init__(self, runtime):
        self.running = self.most = self.total = self.deepest = 0
        self.refusals = []
        self.go = asyncio.Event()
        for name, agent in {
            "fan": self.fan,
            "leaf": self.leaf,
            "chain": self.chain,
            "loop": self.loop,
        }.items():
            runtime.register_agent(name, agent)

    async def leaf(self, input, ctx):
        self.running += 1
        self.total += 1
        self.most = max(self.most, self.running)
        try:
            await self.go.wait()
        finally:
            self.running -= 1

    async def fan(self, input, ctx):
        """Delegates to many leaves at once."""
        ends = [asyncio.ensure_future(self.delegated(ctx, "leaf")) for _ in range(input)]
        while self.running + len(self.refusals) < input:
            await asyncio.sleep(0.01)
        self.go.set()
        await asyncio.gather(*ends)
        return len(self.refusals)

    async def delegated(self, ctx, agent, input=None):
        try:
            return await ctx.delegate(agent, input, lease=LEASE)
        except FaultError as error:
            self.refusals.append(error)
            return None

    async def chain(self, input, ctx):
        """Delegates to itself, as deep as it is allowed to."""
        self.deepest = max(self.deepest, input)
        return await self.delegated(ctx, "chain", input + 1)

    async def loop(self, input, ctx):
        """Delegates to itself, and goes on after its own cancellation."""
        self.total += 1
        while True:
            try:
                await ctx.delegate("loop", None, lease=LEASE)
            except FaultError as error:
                if error.code in {"PERMISSION_DENIED", "CANCELLED", "TIMEOUT"}:
                    raise
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                if self.total > 400:
                    raise


@pytest.mark.parametrize(
    ("limits", "code", "retryable"),
    [
        ({"jobs_per_principal": 8}, "INTERNAL_ERROR", True),
        ({"running": 8}, "INTERNAL_ERROR", True),
        ({"jobs_per_root": 8}, "PERMISSION_DENIED", False),
    ],
)
async def test_children_count_against_every_limit(store_url, begin, limits, code, retryable):
    """At most as many jobs run as the limit allows; each refusal is a `tool_result` error of the parent."""
    runtime = await begin(store_url, limits=limits)
    family = Family(runtime)
    raw = await connected(runtime)
    end = await raw.run("fan", 30, lease_request=LEASE)
    assert family.most <= 8
    refused = 30 - family.total
    assert end["payload"]["result"] == refused >= 22
    errors = [m["payload"]["body"].get("error") for m in raw.events(end["job_id"], "tool_result")]
    name = next(iter(limits))
    assert len(errors) == refused
    for error in errors:
        assert (error["code"], error["retryable"]) == (code, retryable)
        assert error["details"] == {"limit": name, "value": 8}
    assert not runtime.node.quota.here
    assert not runtime.node.capacity.running
    await raw.close()


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


def test_the_limits_have_defaults():
    """Both are bounded without a setting."""
    assert 1 < Limits().delegation_depth <= 100
    assert 1 < Limits().jobs_per_root <= 10_000
