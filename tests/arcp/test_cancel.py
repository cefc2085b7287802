"""Cancelling jobs (7.4): running, queued, and by whom."""

from __future__ import annotations

import asyncio

import pytest

from tests.arcp.raw import connected


@pytest.mark.parametrize("agent", ["waiting", "swallowing", "stubborn"])
async def test_cancelling_a_running_job(agent, store_url, begin):
    """7.4: acknowledged, then job.error CANCELLED; whatever the agent does, no later message of the job is sent."""
    runtime = await begin(store_url, limits={"cancel_grace": 0.1})
    raw = await connected(runtime)
    job_id = (await raw.submit(agent, {"seconds": 0.5}))["payload"]["job_id"]
    await raw.until("job.event")
    request = await raw.send("job.cancel", {"reason": "because"}, job_id=job_id)
    again = await raw.send("job.cancel", {}, job_id=job_id)
    assert (await raw.answer(request))["type"] == "job.cancelled"
    end = await raw.end(job_id)
    assert end["payload"] | {"completed_at": ""} == {
        "code": "CANCELLED",
        "message": "The job was cancelled",
        "retryable": False,
        "details": {"reason": "because"},
        "final_status": "cancelled",
        "completed_at": "",
    }
    await raw.send("session.ping", {"nonce": "n"})
    await raw.until("session.pong")
    if agent == "stubborn":
        await asyncio.sleep(0.6)
        assert (await raw.run("echo", 1))["payload"]["result"] == 1
    assert not [m for m in raw.events(job_id) if "late" in str(m)]
    # Cancelling it again after its end is refused, and affects only that request.
    request = await raw.send("job.cancel", {}, job_id=job_id)
    assert (await raw.answer(request))["payload"]["code"] == "INVALID_REQUEST"
    assert again
    await raw.close()


async def test_cancelling_a_job_in_the_queue(store_url, begin):
    """It never runs, and ends like any other cancelled job; the jobs behind it run."""
    runtime = await begin(store_url, limits={"running": 1})
    raw = await connected(runtime)
    first = (await raw.submit("waiting"))["payload"]["job_id"]
    second = (await raw.submit("echo", 2))["payload"]["job_id"]
    third = (await raw.submit("echo", 3))["payload"]["job_id"]
    request = await raw.send("job.cancel", {}, job_id=second)
    end = await raw.end(second)
    assert end["payload"]["final_status"] == "cancelled"
    assert [m for m in raw.seen if m["payload"].get("request_id") == request] or await raw.answer(request)
    await raw.send("job.cancel", {}, job_id=first)
    ends = {
        (await raw.until(lambda m: "event_seq" in m and m["type"] != "job.event"))["job_id"] for _ in range(2)
    }
    assert ends == {first, third}
    await raw.close()


async def test_only_the_submitting_session_cancels(begin):
    """7.6: other sessions of the same principal may not cancel it; for other principals the job does not exist."""
    runtime = await begin()
    raw = await connected(runtime)
    job_id = (await raw.submit("waiting"))["payload"]["job_id"]
    same, other = await connected(runtime), await connected(runtime, "bob-token")
    for session, code in ((same, "PERMISSION_DENIED"), (other, "JOB_NOT_FOUND")):
        request = await session.send("job.cancel", {}, job_id=job_id)
        assert (await session.answer(request))["payload"]["code"] == code
    await same.send("job.subscribe", {"job_id": job_id})
    await same.until("job.subscribed")
    request = await same.send("job.cancel", {}, job_id=job_id)
    assert (await same.answer(request))["payload"]["code"] == "PERMISSION_DENIED"
    # Some clients send the job id in the payload.
    await raw.send("job.cancel", {"job_id": job_id})
    assert (await raw.end(job_id))["payload"]["code"] == "CANCELLED"
    await asyncio.gather(raw.close(), same.close(), other.close())


async def test_an_agent_that_cancels_itself_has_failed(begin):
    """A cancellation that was not requested is a failure of the agent, and does not affect the runtime."""
    runtime = await begin()

    async def own(input, ctx):
        task = asyncio.ensure_future(asyncio.sleep(10))
        task.cancel()
        await task

    runtime.register_agent("own", own)
    raw = await connected(runtime)
    assert (await raw.run("own"))["payload"]["code"] == "INTERNAL_ERROR"
    await raw.close()
