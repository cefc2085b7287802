"""Refusals in the forms that runtimes use, each answered at once: by request id, by job id, or in the order of requests."""

import asyncio

import pytest

from amends.arcp.client.inbox import PendingRequests
from amends.arcp.wire import envelope
from amends.errors.arcp import (
    AgentNotAvailableError,
    DuplicateKeyError,
    HeartbeatLostError,
    InvalidRequestError,
    JobNotFoundError,
    PermissionDeniedError,
)
from tests.arcp.client.scripted_client import scripted_client


async def refuse(peer, seq, code, job_id="job_new", **more):
    """Send a refusal as the TypeScript SDK's runtime does: a `job.error` with a number, without the request's id."""
    payload = {"final_status": "error", "code": code, "message": "no", "retryable": False, **more}
    await peer.send("job.error", payload, job_id=job_id, event_seq=seq, session_id="sess_1")


async def test_a_refused_submission_with_a_new_job_id():
    """The oldest submission is rejected, and the next one works."""

    async def script(peer):
        await peer.welcome()
        await peer.take("job.submit")
        await refuse(peer, 1, "AGENT_NOT_AVAILABLE")
        await peer.accept()
        await peer.result(2, "fine")
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        with pytest.raises(AgentNotAvailableError):
            await client.submit("unknown")
        assert await (await client.submit("echo")).done == "fine"


async def test_a_duplicate_key_with_the_id_of_the_running_job():
    """The submission is rejected; the job of the key continues."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.take("job.submit")
        await refuse(peer, 1, "DUPLICATE_KEY", "job_1", details={"existing_job_id": "job_1"})
        await peer.result(2, "fine")
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        first = await client.submit("echo", 1, idempotency_key="k")
        with pytest.raises(DuplicateKeyError) as caught:
            await client.submit("echo", 2, idempotency_key="k")
        assert caught.value.details == {"existing_job_id": "job_1"}
        assert await first.done == "fine"


async def test_a_refused_subscription():
    """With a number, without one, and as a session.error: `subscribe` raises, and a second attempt is possible."""

    async def script(peer):
        await peer.welcome()
        await peer.take("job.subscribe")
        await refuse(peer, 1, "JOB_NOT_FOUND", "job_9")
        await peer.take("job.subscribe")
        await peer.send("job.error", {"code": "JOB_NOT_FOUND", "message": "no"}, job_id="job_9")
        await peer.take("job.subscribe")
        await peer.send("session.error", {"code": "PERMISSION_DENIED", "message": "no"})
        await peer.take("job.subscribe")
        await peer.send("job.subscribed", {"job_id": "job_9", "current_status": "running"}, job_id="job_9")
        await peer.result(2, "fine", "job_9")
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        for kind in (JobNotFoundError, JobNotFoundError, PermissionDeniedError):
            with pytest.raises(kind):
                await client.subscribe("job_9")
        assert await (await client.subscribe("job_9")).done == "fine"


async def test_a_history_that_ends_in_a_failure_like_a_refusal():
    """Events come before the end of the followed job, so it is its end; the answer to the subscription may come last."""

    async def script(peer):
        await peer.welcome()
        await peer.take("job.subscribe")
        await peer.event(1, job_id="job_9")
        await refuse(peer, 2, "PERMISSION_DENIED", "job_9")
        await peer.send("job.subscribed", {"job_id": "job_9", "current_status": "error"}, job_id="job_9")
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        handle = await client.subscribe("job_9")
        with pytest.raises(PermissionDeniedError):
            await handle.done
        assert [event.seq async for event in handle.events()] == [1]


async def test_a_refused_cancellation():
    """Of a followed job, which continues, and of an unknown one."""

    async def script(peer):
        await peer.welcome()
        await peer.take("job.subscribe")
        await peer.send("job.subscribed", {"job_id": "job_9", "current_status": "running"}, job_id="job_9")
        await peer.take("job.cancel")
        await refuse(peer, 1, "PERMISSION_DENIED", "job_9")
        await peer.take("job.cancel")
        await refuse(peer, 2, "JOB_NOT_FOUND", "job_8")
        await peer.result(3, "fine", "job_9")
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        handle = await client.subscribe("job_9")
        with pytest.raises(PermissionDeniedError):
            await handle.cancel()
        with pytest.raises(JobNotFoundError):
            await client.cancel("job_8")
        assert await handle.done == "fine"


async def test_the_end_of_a_job_whose_acceptance_was_lost():
    """It rejects no submission: it has `completed_at`, or events of the job came before it."""

    async def script(peer):
        await peer.welcome()
        submit = await peer.take("job.submit")
        await peer.event(1, job_id="job_7")
        await refuse(peer, 2, "INVALID_REQUEST", "job_7")
        await refuse(peer, 3, "INVALID_REQUEST", "job_6", completed_at="2026-05-13T19:42:13Z")
        await peer.send("job.accepted", {"job_id": "job_1", "request_id": submit["id"]}, job_id="job_1")
        await peer.result(4, "fine")
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        assert await (await client.submit("echo")).done == "fine"


async def test_a_refusal_of_a_request_that_timed_out():
    """It is ignored, and rejects no other request."""

    async def script(peer):
        await peer.welcome()
        first = await peer.take("job.submit")
        second = await peer.take("job.submit")
        await refuse(peer, 1, "INVALID_REQUEST", request_id="m_gone")
        await peer.send("job.accepted", {"job_id": "job_1", "request_id": second["id"]}, job_id="job_1")
        await peer.result(2, "fine")
        await refuse(peer, 3, "INVALID_REQUEST", request_id=first["id"])
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        refused, fine = await asyncio.gather(
            client.submit("echo"), client.submit("echo"), return_exceptions=True
        )
        assert isinstance(refused, InvalidRequestError)
        assert await fine.done == "fine"


async def test_each_request_has_its_own_time():
    """One timer serves all requests: the oldest fails first, an answered one never, and a later one after its own time."""
    requests = PendingRequests(0.05)
    first, second = (requests.add(envelope(type), repeatable=True) for type in ("a", "b"))
    assert requests.answer("fine", "b")
    await asyncio.sleep(0.02)
    third = requests.add(envelope("c"), repeatable=True)
    with pytest.raises(HeartbeatLostError) as caught:
        await first
    assert caught.value.details == {"reason": "no_answer"}
    assert await second == "fine"
    assert not third.done()
    with pytest.raises(HeartbeatLostError):
        await third
    assert not requests
