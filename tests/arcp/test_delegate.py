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


def test_the_limits_have_defaults():
    """Both are bounded without a setting."""
    assert 1 < Limits().delegation_depth <= 100
    assert 1 < Limits().jobs_per_root <= 10_000


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
async def test_a_maximum_runtime_that_is_no_time_is_refused(begin, seconds):
    """As for a submission; the refusal is a tool_result of the job that delegates."""
    runtime = await begin()

    @runtime.register_agent("hasty")
    async def hasty(input, ctx):
        await ctx.delegate("echo", lease={}, max_runtime_sec=seconds)

    raw = await connected(runtime)
    end = await raw.run("hasty", lease_request=LEASE)
    assert (end["payload"]["code"], end["payload"]["details"]) == (
        "INVALID_REQUEST",
        {"field": "max_runtime_sec"},
    )
    assert raw.events(end["job_id"], "tool_result")
    await raw.close()


@pytest.mark.parametrize("input", [float("nan"), {"price": [float("inf")]}, "\ud800"])
async def test_an_input_that_json_cannot_carry_is_not_delegated(begin, input):
    """As for a submission; the refusal is a tool_result of the job that delegates, and no child exists."""
    runtime = await begin()

    @runtime.register_agent("broken")
    async def broken(_, ctx):
        await ctx.delegate("echo", input, lease={})

    raw = await connected(runtime)
    end = await raw.run("broken", lease_request=LEASE)
    assert (end["payload"]["code"], end["payload"]["details"]) == ("INVALID_REQUEST", {"field": "input"})
    assert raw.events(end["job_id"], "tool_result")
    await raw.close()
