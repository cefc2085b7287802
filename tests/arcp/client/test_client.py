"""Runtimes that give no request id (the TypeScript SDK's): repeated keys, and jobs that are lost with a connection."""

import asyncio

import pytest

from amends.arcp.client import client as module
from amends.core.enums import Executed
from amends.errors.arcp import HeartbeatLostError, InternalError, JobNotFoundError, PermissionDeniedError
from tests.arcp.client.scripted_client import scripted_client


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "_FIRST_EVENT", 0.01)
    monkeypatch.setattr(module, "_LOOK_EVERY", 0.01)


async def test_a_repeated_key_has_the_end_that_the_first_handle_has():
    """The runtime accepts the submission again, and sends nothing more."""

    async def script(peer):
        await peer.welcome()
        await peer.accept(request_id=None)
        await peer.event(1, kind="status")
        await peer.result(2, "fine")
        await peer.accept(request_id=None)
        await peer.accept("job_2", request_id=None)
        await peer.event(3, kind="status", job_id="job_2")
        await peer.fail(4, "INTERNAL_ERROR", job_id="job_2")
        await peer.accept("job_2", request_id=None)
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        first = await client.submit("echo", idempotency_key="k")
        assert await first.done == "fine"
        again = await client.submit("echo", idempotency_key="k")
        assert (again.job_id, await again.done, again.finished) == ("job_1", "fine", True)
        handles = []
        for _ in range(2):
            handles.append(await client.submit("echo", idempotency_key="k2"))
            with pytest.raises(InternalError):
                await handles[-1].done


async def test_the_job_of_a_key_runs_in_another_session():
    """It sends no event of its own, so the client subscribes to it."""

    async def script(peer):
        await peer.welcome()
        await peer.accept(request_id=None)
        subscribe = await peer.take("job.subscribe")
        assert subscribe["payload"] == {"job_id": "job_1", "from_event_seq": 0, "history": True}
        await peer.event(1)
        await peer.send("job.subscribed", {"job_id": "job_1", "current_status": "running"}, job_id="job_1")
        await peer.result(2, "fine")
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        handle = await client.submit("echo", idempotency_key="k")
        assert await handle.done == "fine"


@pytest.mark.parametrize(
    ("code", "error"), [("JOB_NOT_FOUND", JobNotFoundError), ("PERMISSION_DENIED", PermissionDeniedError)]
)
async def test_the_job_of_a_key_is_gone(code, error):
    """`done` raises; the work was done."""

    async def script(peer):
        await peer.welcome()
        await peer.accept(request_id=None)
        await peer.take("job.subscribe")
        await peer.fail(1, code)
        await peer.accept("job_2")
        await peer.result(2, "fine", job_id="job_2")
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        handle = await client.submit("echo", idempotency_key="k")
        with pytest.raises(error) as caught:
            await handle.done
        if code == "JOB_NOT_FOUND":
            assert caught.value.fault.executed is Executed.YES
            assert caught.value.details == {"reason": "result_gone", "job_id": "job_1"}
        assert await (await client.submit("echo")).done == "fine"


async def test_a_runtime_that_names_requests_is_not_asked():
    """It sends the end of the job itself."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await asyncio.sleep(0.03)
        await peer.result(1, "fine")
        await peer.goodbye()
        assert {"job.subscribe", "session.list_jobs"}.isdisjoint(each["type"] for each in peer.received)

    async with scripted_client(script) as (client, _):
        assert await (await client.submit("echo", idempotency_key="k")).done == "fine"


async def test_a_job_that_was_lost_with_the_connection():
    """The runtime lists it no more, and reports no end: HEARTBEAT_LOST. A listed job is waited for."""

    async def first(peer):
        await peer.welcome()
        await peer.accept(request_id=None)
        await peer.accept("job_2", request_id=None)

    async def second(peer):
        await peer.welcome()
        for _ in range(2):
            listing = await peer.take("session.list_jobs")
            jobs = [{"job_id": "job_2", "agent": "echo", "status": "running"}]
            await peer.send("session.jobs", {"request_id": listing["id"], "jobs": jobs})
        await peer.result(1, "fine", job_id="job_2")
        await peer.goodbye()

    async with scripted_client(first, second) as (client, _):
        lost, kept = await client.submit("echo"), await client.submit("echo")
        with pytest.raises(HeartbeatLostError) as caught:
            await lost.done
        assert caught.value.details == {"reason": "job_lost"}
        assert caught.value.fault.executed is Executed.MAYBE
        assert await kept.done == "fine"


async def test_a_runtime_that_resumes_only_with_an_event_to_replay():
    """It rejects a client that has every event; the client asks for the last one again, once, and ignores it."""

    async def first(peer):
        await peer.welcome()
        await peer.accept()
        await peer.event(1)
        await peer.event(2)

    async def second(peer):
        hello = await peer.take("session.hello")
        assert hello["payload"]["resume"]["last_event_seq"] == 2
        await peer.send("session.error", {"code": "RESUME_WINDOW_EXPIRED", "message": "nothing to replay"})
        await peer.close()

    async def third(peer):
        hello = await peer.welcome()
        assert hello["resume"]["last_event_seq"] == 1
        await peer.event(2)
        await peer.result(3, "fine")
        await peer.goodbye()

    async with scripted_client(first, second, third) as (client, _):
        handle = await client.submit("echo")
        assert await handle.done == "fine"
        assert [event.seq async for event in handle.events()] == [1, 2]
