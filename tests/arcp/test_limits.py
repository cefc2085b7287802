"""The codes of refusals and failures that a limit caused."""

import pytest

from tests.arcp.raw import connected


async def large(input, ctx):
    return "x" * 5000


async def large_stream(input, ctx):
    async with ctx.result_chunks() as result:
        await result.write("x" * 5000)


async def large_event(input, ctx):
    await ctx.log("x" * 5000)


async def many_events(input, ctx):
    for _ in range(20):
        await ctx.log("x")


@pytest.mark.parametrize(
    ("limit", "agent"),
    [
        ("result_bytes", large),
        ("streamed_bytes", large_stream),
        ("event_bytes", large_event),
        ("events_per_job", many_events),
    ],
)
async def test_size_limits_of_one_job(begin, limit, agent):
    """The same job would exceed them again: INVALID_REQUEST with the limit."""
    value = 10 if limit == "events_per_job" else 1000
    runtime = await begin(limits={limit: value})
    runtime.register_agent("agent", agent)
    raw = await connected(runtime)
    payload = (await raw.run("agent"))["payload"]
    assert (payload["code"], payload["retryable"]) == ("INVALID_REQUEST", False)
    assert payload["details"] == {"limit": limit, "value": value}
    await raw.close()


async def test_limits_that_clear_by_themselves(begin):
    """Too many jobs or sessions of a principal: INTERNAL_ERROR, retryable, with the limit."""
    runtime = await begin(limits={"jobs_per_principal": 1, "sessions_per_principal": 1})
    raw = await connected(runtime)
    await raw.submit("waiting")
    jobs = (await raw.submit("waiting"))["payload"]
    from tests.arcp.raw import dial

    second = dial(runtime)
    sessions = (await second.hello())["payload"]
    for payload, limit in ((jobs, "jobs_per_principal"), (sessions, "sessions_per_principal")):
        assert (payload["code"], payload["retryable"]) == ("INTERNAL_ERROR", True)
        assert payload["details"] == {"limit": limit, "value": 1}
    await raw.close()


async def test_in_doubt_is_not_retryable(store_url, begin):
    """A job whose node died may have had its effect: INTERNAL_ERROR with `retryable: false`."""
    first = await begin(store_url, limits={"node_lease": 0.3})
    raw = await connected(first)
    job_id = (await raw.submit("waiting", idempotency_key="k"))["payload"]["job_id"]
    await raw.until("job.event")
    await first.abandon()
    second = await begin(store_url, limits={"node_lease": 0.3})
    watcher = await connected(second)
    await watcher.send("job.subscribe", {"job_id": job_id, "history": True})
    payload = (await watcher.end(job_id))["payload"]
    assert (payload["code"], payload["retryable"]) == ("INTERNAL_ERROR", False)
    assert payload["details"]["in_doubt"] is True
    await watcher.close()
