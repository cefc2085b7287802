"""Runs of jobs: their limits, and their end when the runtime stops."""

from __future__ import annotations

import asyncio
import time

import pytest

from amends.arcp import Runtime, errors
from amends.arcp.wire import text_of
from tests.arcp.raw import connected, dial


@pytest.mark.parametrize("limits", [{"result_bytes": 100}, {"events_per_job": 5}, {"event_bytes": 300}])
async def test_jobs_that_exceed_limits_fail(limits, begin):
    """v1.0 14: a job that exceeds a size limit fails with INVALID_REQUEST; nothing is truncated silently."""
    runtime = await begin(limits=limits)

    async def large(input, ctx):
        return "x" * 200

    async def long_error(input, ctx):
        raise errors.InvalidRequestError("m", details={"x": "y" * 2000})

    runtime.register_agent("large", large)
    runtime.register_agent("long-error", long_error)
    raw = await connected(runtime)
    agent, input = ("large", None) if "result_bytes" in limits else ("counting", {"count": 10, "size": 400})
    payload = (await raw.run(agent, input))["payload"]
    assert (payload["code"], payload["retryable"]) == ("INVALID_REQUEST", False)
    assert payload["details"] == {"limit": next(iter(limits)), "value": next(iter(limits.values()))}
    if "event_bytes" in limits:
        payload = (await raw.run("long-error"))["payload"]
        assert payload["code"] == "INVALID_REQUEST"
        assert "details" not in payload
    await raw.close()


async def test_max_runtime_stops_a_job(store_url, begin):
    """max_runtime_sec: job.error TIMEOUT, timed_out; also if the agent ignores it, and for the runtime's own limit."""
    runtime = await begin(store_url, limits={"max_runtime": 0.2, "cancel_grace": 0.1})
    raw = await connected(runtime)
    for agent, input, more in (
        ("waiting", None, {"max_runtime_sec": 0.05}),
        ("stubborn", {"seconds": 0.6}, {"max_runtime_sec": 0.05}),
        ("waiting", None, {}),
    ):
        end = await raw.run(agent, input, **more)
        assert (end["payload"]["code"], end["payload"]["final_status"]) == ("TIMEOUT", "timed_out")
        assert end["payload"]["retryable"] is True
    await raw.close()


async def test_an_expired_lease_ends_the_job_whatever_the_agent_returns(begin):
    """9.5: reported as a `tool_result`, then as `job.error`; a lease that ends in the past is refused."""
    raw = await connected(await begin())
    soon = text_of(time.time() + 0.1)
    end = await raw.run(
        "expiring", lease_request={"fs.read": ["/w/**"]}, lease_constraints={"expires_at": soon}
    )
    assert (end["payload"]["code"], end["payload"]["final_status"]) == ("LEASE_EXPIRED", "error")
    (event,) = raw.events(end["job_id"], "tool_result")
    assert event["payload"]["body"]["error"]["code"] == "LEASE_EXPIRED"
    accepted = next(m for m in raw.seen if m["type"] == "job.accepted")
    assert accepted["payload"]["lease_constraints"] == {"expires_at": soon}
    for key in (None, "k"):
        more = {} if key is None else {"idempotency_key": key}
        answer = await raw.submit("echo", 1, lease_constraints={"expires_at": soon}, **more)
        assert answer["payload"]["code"] == "INVALID_REQUEST"
    await raw.close()


async def test_stop_drains_jobs_then_ends_them(begin, sqlite_url):
    """Jobs that end within the drain time finish; the others end in doubt and do not run again."""
    from amends.arcp import Limits
    from tests.arcp.agents import register
    from tests.arcp.raw import TOKENS

    for agent, input, limits in (
        ("counting", {"count": 5, "pause": 0.02}, {"drain": 10.0}),
        ("waiting", None, {"drain": 0.0, "cancel_grace": 0.1}),
    ):
        runtime = register(Runtime(sqlite_url, tokens=TOKENS, limits=Limits(**limits)))
        async with runtime:
            raw = await connected(runtime)
            job_id = (await raw.submit(agent, input, idempotency_key=agent))["payload"]["job_id"]
            await raw.until("job.event")
        end = await raw.end(job_id)
        if agent == "counting":
            assert end["payload"]["result"] == 5
        else:
            assert end["payload"]["details"] == {"in_doubt": True, "executed": "maybe"}
        assert (await raw.until("session.bye"))["payload"]
        assert await raw.receive() is None


async def test_the_drain_window(begin):
    """While running jobs may finish, connections are turned away, and neither a job nor a delegated one begins here."""
    runtime, children = await begin(), []
    begun, go = asyncio.Event(), asyncio.Event()

    async def parent(input, ctx):
        begun.set()
        await go.wait()
        try:
            await ctx.delegate("echo", 1)
        except Exception as error:
            children.append(type(error).__name__)
        return "ended"

    runtime.register_agent("parent", parent)
    raw = await connected(runtime)
    job_id = (await raw.submit("parent", None, lease_request={"agent.delegate": ["*"]}))["payload"]["job_id"]
    await begun.wait()
    stopping = asyncio.ensure_future(runtime.stop(drain=60.0))
    while not runtime._node.capacity.draining:
        await asyncio.sleep(0)
    late = dial(runtime)
    assert await late.receive() is None
    go.set()
    assert (await raw.end(job_id))["payload"]["result"] == "ended"
    assert children == ["InternalError"]
    await stopping
