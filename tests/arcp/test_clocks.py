"""Leases and resume windows do not change when the machine's clock is set."""

import asyncio
import time

from amends.arcp.wire import text_of
from tests.arcp.raw import connected
from tests.arcp.test_sessions import resumed

READ = {"fs.read": ["/w/**"]}
real = time.time


def set_clock(monkeypatch, seconds):
    monkeypatch.setattr(time, "time", lambda: real() + seconds)


async def test_a_clock_that_is_set_forward_ends_no_lease(begin, monkeypatch):
    """The rest of the lease is measured by a clock that is never set."""
    runtime = await begin()

    async def agent(input, ctx):
        set_clock(monkeypatch, 3600)
        await asyncio.sleep(0.05)
        ctx.authorize("fs.read", "/w/a")
        await ctx.tool_call("search")
        return "done"

    runtime.register_agent("agent", agent)
    raw = await connected(runtime)
    constraints = {"expires_at": text_of(real() + 60)}
    end = await raw.run(
        "agent", lease_request={**READ, "tool.call": ["search"]}, lease_constraints=constraints
    )
    assert end["payload"].get("result") == "done"
    await raw.close()


async def test_a_clock_that_is_set_back_extends_no_lease(begin, monkeypatch):
    """A sleeping job still ends in time."""
    runtime = await begin()

    async def agent(input, ctx):
        set_clock(monkeypatch, -3600)
        await asyncio.sleep(600)

    runtime.register_agent("agent", agent)
    raw = await connected(runtime)
    end = await raw.run("agent", lease_constraints={"expires_at": text_of(real() + 0.2)})
    assert end["payload"]["code"] == "LEASE_EXPIRED"
    await raw.close()


async def test_the_rest_of_a_lease_after_a_restart(store_url, begin, monkeypatch):
    """It is the smaller of the rest by the log and by the clock of the machine that goes on."""
    first = await begin(store_url, agents=False)
    seen = []

    async def agent(input, ctx):
        seen.append(ctx._job.lease.expires_at - ctx._job.now())
        await ctx.log("started")
        if ctx.run == 1:
            raise RuntimeError
        return "done"

    first.register_agent("agent", agent)
    raw = await connected(first)
    given = {"lease_constraints": {"expires_at": text_of(real() + 1000)}, "idempotency_key": "k"}
    await raw.run("agent", **given)
    await raw.close()
    await first.stop()
    set_clock(monkeypatch, -600)
    second = await begin(store_url, agents=False)
    second.register_agent("agent", agent)
    raw = await connected(second)
    assert (await raw.run("agent", **given))["payload"]["result"] == "done"
    await raw.close()
    assert 900 < seen[1] <= seen[0] <= 1001


async def test_a_resume_window_does_not_end_when_the_clock_is_set(store_url, begin, monkeypatch):
    """A session can be resumed although the machine's clock says that its window is over."""
    runtime = await begin(store_url)
    raw = await connected(runtime)
    await raw.run("echo", 1)
    await raw.close()
    set_clock(monkeypatch, 7200)
    await runtime.node.sessions.expire()
    again, _ = await resumed(runtime, raw)
    assert (await again.run("echo", 2))["payload"]["result"] == 2
    await again.close()
