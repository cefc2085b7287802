"""Budget and expiry bind every job, whatever its lease names."""

import asyncio
import math
import time
from decimal import Decimal

import pytest

from amends.arcp import Runtime
from amends.arcp.wire import text_of
from amends.errors import FaultError
from tests.arcp.raw import connected

BUDGET = {"cost.budget": ["USD:1.00"]}


async def run(begin, agent, **more):
    runtime = await begin()
    runtime.register_agent("agent", agent)
    raw = await connected(runtime)
    end = await raw.run("agent", **more)
    await raw.close()
    return raw, end


async def test_tool_calls_are_bound_by_the_budget(begin):
    """9.6: a tool that the lease names may be called until the budget is used up."""
    codes = []

    async def agent(input, ctx):
        await ctx.tool_call("before")
        await ctx.metric("cost.model", 1, "USD")
        try:
            await ctx.tool_call("after")
        except FaultError as error:
            codes.append((error.code, error.details["currency"]))

    raw, end = await run(begin, agent, lease_request={**BUDGET, "tool.call": ["*"]})
    assert end["type"] == "job.result"
    assert codes == [("BUDGET_EXHAUSTED", "USD")]
    (refused,) = raw.events(end["job_id"], "tool_result")
    assert refused["payload"]["body"]["error"]["code"] == "BUDGET_EXHAUSTED"


async def test_a_lease_without_tools_denies_every_tool(begin):
    """Operations that a lease does not cover fail (9.3): the tool's result is PERMISSION_DENIED, and the job lives on (S5)."""

    async def agent(input, ctx):
        try:
            await ctx.tool_call("search")
        except FaultError as error:
            return [error.code, ctx.lease]

    raw, end = await run(begin, agent, lease_request={"fs.read": ["/a/**"]})
    assert end["payload"]["result"] == ["PERMISSION_DENIED", {"fs.read": ["/a/**"]}]
    (refused,) = raw.events(end["job_id"], "tool_result")
    assert refused["payload"]["body"]["error"]["code"] == "PERMISSION_DENIED"


@pytest.mark.parametrize("request_of_none", [{}, {"lease_request": {}}, {"lease_request": None}])
async def test_a_job_without_a_lease_gets_the_default_one(begin, request_of_none):
    """Every tool and nothing else; the accepted lease shows it. The Python SDK sends an empty object for no lease."""

    async def agent(input, ctx):
        await ctx.tool_call("any/tool")
        ctx.authorize("tool.call", "any/tool")
        try:
            ctx.authorize("fs.read", "/a")
        except FaultError as error:
            return error.code

    runtime = await begin()
    runtime.register_agent("agent", agent)
    raw = await connected(runtime)
    accepted = await raw.submit("agent", **request_of_none)
    assert accepted["payload"]["lease"] == {"tool.call": ["**"]}
    end = await raw.end(accepted["payload"]["job_id"])
    assert end["payload"]["result"] == "PERMISSION_DENIED"


async def test_a_runtime_chooses_the_default_lease(begin):
    """An empty one allows nothing, and a wrong one is refused where it is given."""

    async def agent(input, ctx):
        try:
            await ctx.tool_call("search")
        except FaultError as error:
            return error.code

    for default, result in (({}, "PERMISSION_DENIED"), ({"tool.call": ["search"]}, None)):
        runtime = await begin(default_lease=default)
        runtime.register_agent("agent", agent)
        raw = await connected(runtime)
        end = await raw.run("agent")
        assert end["payload"]["result"] == result
    with pytest.raises(ValueError, match="default_lease"):
        Runtime(tokens="t", default_lease={"no.such": ["*"]})


async def test_a_delegated_job_without_a_lease_gets_the_parents_part_of_the_default(begin):
    """It never has more than its parent; a parent without `agent.delegate` is told what to grant."""

    async def child(input, ctx):
        return ctx.lease

    async def parent(input, ctx):
        try:
            return await ctx.delegate("child")
        except FaultError as error:
            return str(error)

    runtime = await begin()
    runtime.register_agent("child", child)
    runtime.register_agent("parent", parent)
    raw = await connected(runtime)
    lease = {"agent.delegate": ["child"], "fs.read": ["/a/**"], "tool.call": ["search"]}
    assert (await raw.run("parent", lease_request=lease))["payload"]["result"] == {"tool.call": ["search"]}
    assert "--lease agent.delegate=child" in (await raw.run("parent"))["payload"]["result"]


async def test_tool_calls_are_bound_by_the_expiry(begin):
    """9.5: the same for `expires_at`, and then the job ends."""

    async def agent(input, ctx):
        while True:
            await ctx.tool_call("search")
            await asyncio.sleep(0.02)

    soon = text_of(time.time() + 0.2)
    _, end = await run(begin, agent, lease_constraints={"expires_at": soon})
    assert end["payload"]["code"] == "LEASE_EXPIRED"


async def test_a_sleeping_job_ends_when_its_lease_expires(store_url, begin):
    """It is cancelled, and ends with LEASE_EXPIRED also if it returns something."""
    runtime = await begin(store_url)

    async def sleeper(input, ctx):
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            return "late"

    runtime.register_agent("sleeper", sleeper)
    raw = await connected(runtime)
    soon = text_of(time.time() + 0.2)
    end = await raw.run("sleeper", lease_constraints={"expires_at": soon})
    assert (end["payload"]["code"], end["payload"]["retryable"]) == ("LEASE_EXPIRED", False)
    assert end["payload"]["details"]["expires_at"] == soon
    await raw.close()


async def test_a_sleeping_child_ends_with_its_parents_lease(begin):
    """A delegated job has the expiry of its parent's lease."""
    runtime = await begin()

    async def sleeper(input, ctx):
        await asyncio.sleep(600)

    async def parent(input, ctx):
        try:
            await ctx.delegate("sleeper", None, lease={})
        except FaultError as error:
            return error.code

    runtime.register_agent("sleeper", sleeper)
    runtime.register_agent("parent", parent)
    raw = await connected(runtime)
    soon = text_of(time.time() + 0.3)
    await raw.run("parent", lease_request={"agent.delegate": ["*"]}, lease_constraints={"expires_at": soon})
    ends = {m["payload"]["code"] for m in raw.seen if m["type"] == "job.error"}
    assert ends == {"LEASE_EXPIRED"}
    await raw.close()


@pytest.mark.parametrize("cost", [10**40, 1e300, Decimal("1e31"), "1e40"])
async def test_an_absurd_cost_exhausts_the_budget(store_url, begin, cost):
    """Also after a restart, when the budget is computed from the log."""
    runtime = await begin(store_url)
    left = []

    async def agent(input, ctx):
        left.append(ctx.budget)
        if ctx.run == 1:
            await ctx.metric("cost.model", cost, "USD")
            left.append(ctx.budget)
            raise RuntimeError

    runtime.register_agent("agent", agent)
    raw = await connected(runtime)
    for _ in range(2):
        await raw.run("agent", lease_request=BUDGET, idempotency_key="k")
    assert left[0] == {"USD": "1.00"}
    assert [Decimal(each["USD"]) <= 0 for each in left[1:]] == [True, True]
    await raw.close()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("Infinity")])
@pytest.mark.parametrize("name", ["cost.model", "rows"])
async def test_a_metric_that_is_not_a_number_is_refused(begin, value, name):
    """The error names the field; a cost that has no end exhausts the budget."""
    found = []

    async def agent(input, ctx):
        try:
            await ctx.metric(name, value, "USD")
        except FaultError as error:
            found.append((error.code, error.details["field"]))
        return ctx.budget["USD"]

    raw, end = await run(begin, agent, lease_request=BUDGET)
    assert found == [("INVALID_REQUEST", "value")]
    assert not raw.events(end["job_id"], "metric")
    unlimited = name == "cost.model" and value == math.inf
    assert (Decimal(end["payload"]["result"]) <= 0) == unlimited
