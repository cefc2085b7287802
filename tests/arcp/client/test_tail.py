"""Cancelling jobs, following jobs of other sessions, and listing jobs."""

import asyncio

import pytest

from amends.errors.arcp import (
    CancelledError,
    HeartbeatLostError,
    InternalError,
    JobNotFoundError,
    PermissionDeniedError,
)
from amends.errors.arcp import TimeoutError as JobTimeoutError
from tests.arcp.client.scripted_client import scripted_client


async def test_cancelling():
    """7.4: the runtime confirms with job.cancelled; `done` raises the job.error. A second call does nothing."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        cancel = await peer.take("job.cancel")
        assert cancel["job_id"] == "job_1"
        assert cancel["payload"] == {"reason": "enough"}
        await peer.send("job.cancelled", {"job_id": "job_1"}, job_id="job_1")
        await peer.fail(1, "CANCELLED", final_status="cancelled")
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        handle = await client.submit("echo")
        await handle.cancel("enough")
        with pytest.raises(CancelledError):
            await handle.done
        await handle.cancel()


async def test_the_end_of_a_job_answers_its_cancellation():
    """A published runtime does not confirm; and a job may end by itself before the runtime gets the request."""
    refused = asyncio.Event()

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.take("job.cancel")
        await peer.send("job.result", {"final_status": "cancelled"}, job_id="job_1", event_seq=1)
        await peer.accept("job_2")
        cancel = await peer.take("job.cancel")
        await peer.result(2, "fine", "job_2")
        await peer.send("job.error", {"code": "JOB_NOT_FOUND", "message": "m", "request_id": cancel["id"]})
        await peer.accept("job_3")
        cancel = await peer.take("job.cancel")
        refusal = {"code": "PERMISSION_DENIED", "message": "m", "request_id": cancel["id"]}
        await peer.send("job.error", refusal, job_id="job_3")
        await refused.wait()
        await peer.result(3, "not cancelled", "job_3")
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        one = await client.submit("echo")
        await one.cancel()
        with pytest.raises(CancelledError):
            await one.done
        two = await client.submit("echo")
        await two.cancel()
        assert await two.done == "fine"
        three = await client.submit("echo")
        with pytest.raises(PermissionDeniedError):
            await three.cancel()
        refused.set()
        assert await three.done == "not cancelled"


async def test_subscribing():
    """7.6: history first, then the end as for any job; a job that the client already follows is not requested again."""

    subscribed_twice = asyncio.Event()

    async def script(peer):
        await peer.welcome()
        asked = await peer.take("job.subscribe")
        assert asked["payload"] == {"job_id": "job_1", "from_event_seq": 0, "history": True}
        await peer.event(1)
        descriptor = {
            "job_id": "job_1",
            "request_id": asked["id"],
            "current_status": "running",
            "agent": "a@1",
        }
        await peer.send(
            "job.subscribed",
            {**descriptor, "lease": {"fs.read": ["/"]}, "trace_id": "ab" * 16, "replayed": 1},
        )
        await subscribed_twice.wait()
        await peer.event(2)
        await peer.fail(3, "TIMEOUT")
        asked = await peer.take("job.subscribe")
        await peer.send("job.error", {"code": "JOB_NOT_FOUND", "message": "m", "request_id": asked["id"]})
        asked = await peer.take("job.subscribe")
        await peer.send("job.subscribed", {"job_id": ["x"], "request_id": asked["id"]})
        asked = await peer.take("job.subscribe")
        assert asked["payload"] == {"job_id": "job_4", "from_event_seq": 7, "history": True}
        await peer.send("job.subscribed", {"job_id": "job_4"})
        unsubscribe = await peer.take("job.unsubscribe")
        assert unsubscribe["payload"] == {"job_id": "job_4"}
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        handle = await client.subscribe("job_1")
        again = await client.subscribe("job_1")
        subscribed_twice.set()
        assert (handle.agent, handle.lease, handle.trace_id) == ("a@1", {"fs.read": ["/"]}, "ab" * 16)
        for each in (handle, again):
            with pytest.raises(JobTimeoutError):
                await each.done
        assert [event.seq async for event in handle.events()] == [1, 2]
        with pytest.raises(JobNotFoundError):
            await client.subscribe("job_2")
        with pytest.raises(InternalError):
            await client.subscribe("job_3")
        followed = await client.subscribe("job_4", from_event_seq=7)
        await client.unsubscribe("job_4")
        with pytest.raises(HeartbeatLostError):
            await followed.done


async def test_a_failed_subscription_fails_for_all_who_share_it():
    """Two subscribers of the same job get the same error; a handle from a submission continues."""

    async def script(peer):
        await peer.welcome()
        asked = await peer.take("job.subscribe")
        await watching.wait()
        await peer.send("job.error", {"code": "JOB_NOT_FOUND", "message": "m", "request_id": asked["id"]})
        asked = await peer.take("job.subscribe")
        await peer.accept("job_2")
        await peer.send("job.error", {"code": "PERMISSION_DENIED", "message": "m", "request_id": asked["id"]})
        await peer.result(1, "fine", "job_2")
        await peer.goodbye()

    watching = asyncio.Event()
    async with scripted_client(script) as (client, _):
        first = asyncio.create_task(client.subscribe("job_1"))
        await asyncio.sleep(0)
        second = await client.subscribe("job_1")
        watching.set()
        with pytest.raises(JobNotFoundError):
            await first
        with pytest.raises(JobNotFoundError):
            await second.done
        refused, handle = await asyncio.gather(
            client.subscribe("job_2"), client.submit("echo"), return_exceptions=True
        )
        assert isinstance(refused, PermissionDeniedError)
        assert await handle.done == "fine"
        cancelled = asyncio.create_task(client.subscribe("job_3"))
        await asyncio.sleep(0)
        other = await client.subscribe("job_3")
        cancelled.cancel()
        with pytest.raises(HeartbeatLostError):
            await other.done


async def test_subscribing_to_a_job_that_has_ended():
    """Without history its end would never come, so the client requests the history."""

    async def script(peer):
        await peer.welcome()
        asked = await peer.take("job.subscribe")
        assert asked["payload"] == {"job_id": "job_1"}
        await peer.send(
            "job.subscribed", {"job_id": "job_1", "request_id": asked["id"], "current_status": "success"}
        )
        asked = await peer.take("job.subscribe")
        assert asked["payload"]["history"] is True
        await peer.result(1, "old")
        await peer.send(
            "job.subscribed", {"job_id": "job_1", "request_id": asked["id"], "current_status": "success"}
        )
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        assert await (await client.subscribe("job_1", history=False)).done == "old"


async def test_listing(monkeypatch):
    """6.6: page by page, at most `limit`; an empty page with a cursor does not end the listing, a thousand of them do."""

    async def script(peer):
        await peer.welcome()
        asked = await peer.take("session.list_jobs")
        assert asked["payload"] == {
            "filter": {"status": ["running"], "agent": "a", "created_after": "2026-05-13T23:42:00Z"},
            "limit": 3,
        }
        entries = [
            {"job_id": f"job_{number}", "agent": "a@1", "status": "running", "lease": None}
            for number in range(2)
        ]
        await peer.send("session.jobs", {"request_id": asked["id"], "jobs": entries, "next_cursor": "c"})
        asked = await peer.take("session.list_jobs")
        assert asked["payload"]["cursor"] == "c"
        assert asked["payload"]["limit"] == 1
        await peer.send("session.jobs", {"request_id": asked["id"], "jobs": entries, "next_cursor": "d"})
        asked = await peer.take("session.list_jobs")
        assert "filter" not in asked["payload"]
        await peer.send("session.jobs", {"jobs": entries, "next_cursor": None})
        asked = await peer.take("session.list_jobs")
        await peer.send("session.jobs", {"request_id": asked["id"], "jobs": [], "next_cursor": "e"})
        asked = await peer.take("session.list_jobs")
        assert asked["payload"]["cursor"] == "e"
        await peer.send("session.jobs", {"request_id": asked["id"], "jobs": entries, "next_cursor": None})
        for number in range(3):
            asked = await peer.take("session.list_jobs")
            page = {"request_id": asked["id"], "jobs": [], "next_cursor": f"{number}"}
            await peer.send("session.jobs", page)
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        found = await client.jobs(status=["running"], agent="a", created_after=1_778_715_720.0, limit=3)
        assert [entry.job_id for entry in found] == ["job_0", "job_1", "job_0"]
        assert len(await client.jobs()) == 2
        assert len(await client.jobs()) == 2
        monkeypatch.setattr("amends.arcp.client.client._EMPTY_PAGES", 2)
        assert await client.jobs() == []
