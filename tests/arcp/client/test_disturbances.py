"""Requests while the connection is lost or full, malformed frames, runtimes that do not confirm a close."""

import asyncio

import pytest

from amends.core.enums import Executed
from amends.errors.arcp import (
    HeartbeatLostError,
)
from tests.arcp.client.scripted_client import drops, scripted_client
from tests.arcp.scripted import SESSION


async def test_requests_pending_when_the_connection_is_lost():
    """Requests with a key, and requests that only read, are sent again; for others it is unknown whether they arrived."""

    async def first(peer):
        await peer.welcome()
        for _ in range(3):
            await peer.take()

    async def second(peer):
        await peer.welcome()
        again = [await peer.take(), await peer.take()]
        assert [message["type"] for message in again] == ["job.submit", "session.list_jobs"]
        assert again[0]["payload"]["idempotency_key"] == "k"
        await peer.send("job.accepted", {"job_id": "job_1", "request_id": again[0]["id"]})
        await peer.send("session.jobs", {"request_id": again[1]["id"], "jobs": []})
        await peer.result(1, "fine")
        await peer.goodbye()

    async with scripted_client(first, second) as (client, scripted):
        keyed, plain, listed = await asyncio.gather(
            client.submit("echo", idempotency_key="k"),
            client.submit("echo"),
            client.jobs(),
            return_exceptions=True,
        )
        assert isinstance(plain, HeartbeatLostError)
        assert plain.details == {"reason": "in_doubt"}
        assert plain.fault.executed is Executed.MAYBE
        assert listed == []
        assert await keyed.done == "fine"
        ids = [message["id"] for message in scripted.peers[0].received[1:]]
        assert scripted.peers[1].received[1]["id"] == ids[0]


async def test_a_request_while_the_connection_is_lost():
    """A request waits until the session is resumed, up to its timeout."""

    async def second(peer):
        await peer.welcome()
        await peer.result(1, "one")
        await peer.accept("job_2")
        await peer.result(2, "two", "job_2")
        await peer.goodbye()

    async with scripted_client(drops, second, auto_resume=False, request_timeout=0.2) as (client, scripted):
        one = await client.submit("echo")
        await scripted.finished()
        while client._session._open.is_set():
            await asyncio.sleep(0)
        with pytest.raises(HeartbeatLostError):
            await client.submit("echo")
        waiting = asyncio.create_task(client.submit("echo"))
        await asyncio.sleep(0)
        await client.resume()
        assert (await one.done, await (await waiting).done) == ("one", "two")


async def test_malformed_frames_between_messages_are_ignored():
    """A few malformed frames are ignored; a series of them breaks the connection."""

    async def first(peer):
        await peer.welcome()
        await peer.accept()
        for frame in (
            b"\xff",
            "[1]",
            "{}",
            '{"arcp":"2","id":"x","type":"job.result","payload":{}}',
            "[" * 5000,
        ):
            await peer.raw(frame)
        await peer.send("job.nonsense", {"a": 1}, job_id="job_1")
        await peer.send("job.result", {"final_status": "success"})
        await peer.send("job.event", {"kind": "log"}, job_id="job_1")
        await peer.event(1)
        for _ in range(20):
            await peer.raw("nonsense")
        await peer.take("nothing")

    async def second(peer):
        hello = await peer.welcome()
        assert hello["resume"]["last_event_seq"] == 1
        await peer.result(2, "fine")
        await peer.goodbye()

    async with scripted_client(first, second) as (client, _):
        handle = await client.submit("echo")
        assert await handle.done == "fine"
        assert [event.seq async for event in handle.events()] == [None, 1]


async def test_an_internal_error_leaves_no_caller_waiting(monkeypatch, caplog):
    """Whatever breaks the reading task, everything that waits fails."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.event(1)
        await peer.take("nothing")

    async with scripted_client(script) as (client, _):
        monkeypatch.setattr("amends.arcp.client.job.Job.add_event", lambda *_: 1 / 0)
        handle = await client.submit("echo")
        with pytest.raises(HeartbeatLostError):
            await handle.done
    assert "ZeroDivisionError" in caplog.text


async def test_a_full_connection_makes_requests_wait():
    """Requests that do not fit are sent later, in order."""

    async def script(peer):
        await peer.welcome()
        for number in range(1, 21):
            await peer.accept(f"job_{number}")
        for number in range(1, 21):
            await peer.result(number, number, f"job_{number}")
        await peer.goodbye()
        submits = [message for message in peer.received if message["type"] == "job.submit"]
        assert [message["payload"]["input"] for message in submits] == list(range(1, 21))

    async with scripted_client(script, frames=2) as (client, _):
        handles = await asyncio.gather(*(client.submit("echo", number) for number in range(1, 21)))
        assert [await handle.done for handle in handles] == list(range(1, 21))


async def test_a_full_connection_that_is_lost():
    """No request stays stuck behind it."""

    async def first(peer):
        await peer.welcome()
        await asyncio.sleep(0.01)

    async def second(peer):
        await peer.welcome()
        for number in range(10):
            await peer.accept(f"job_{number}")
            await peer.result(number + 1, number, f"job_{number}")
        await peer.goodbye()

    async with scripted_client(first, second, frames=2) as (client, _):
        handles = await asyncio.gather(
            *(client.submit("echo", idempotency_key=str(number)) for number in range(10))
        )
        assert len([await handle.done for handle in handles]) == 10


async def test_a_runtime_that_does_not_confirm_the_close():
    """Closing takes limited time, and a connection that breaks meanwhile is not an error."""

    async def script(peer):
        await peer.welcome()
        await peer.take("session.close")
        await peer.send("session.error", {"code": "INVALID_REQUEST", "message": "what is session.close?"})
        await peer.take("nothing")

    async with scripted_client(script):
        pass

    async def gone(peer):
        await peer.welcome()
        await peer.take("session.close")

    async with scripted_client(gone):
        pass


async def test_closing_with_a_silent_runtime(monkeypatch):
    """It takes limited time."""
    monkeypatch.setattr("amends.arcp.client.session._CLOSE_TIMEOUT", 0.05)

    async def script(peer):
        await peer.welcome()
        await peer.take("nothing")

    async with scripted_client(script):
        pass


async def test_closing_a_full_connection(monkeypatch):
    """Pending messages are discarded."""
    monkeypatch.setattr("amends.arcp.client.session._CLOSE_TIMEOUT", 0.05)
    closed = asyncio.Event()

    async def script(peer):
        await peer.welcome()
        await closed.wait()

    async with scripted_client(script, frames=2) as (client, _):
        requests = [asyncio.create_task(client.submit("echo", number)) for number in range(10)]
        await asyncio.sleep(0.01)
        await client.close()
        answers = await asyncio.gather(*requests, return_exceptions=True)
        assert {type(answer) for answer in answers} == {HeartbeatLostError}
        closed.set()


async def test_a_gap_in_events_replayed_before_the_welcome():
    """In v1.0's order; the missing event is requested as usual."""

    async def second(peer):
        await peer.take("session.hello")
        await peer.event(2)
        await peer.send("session.welcome", {"session_id": SESSION, "resume_token": "rt_2"})
        await peer.take("nothing")

    async def third(peer):
        hello = await peer.welcome()
        assert hello["resume"]["last_event_seq"] == 0
        await peer.event(1)
        await peer.event(2)
        await peer.result(3, "fine")
        await peer.goodbye()

    async with scripted_client(drops, second, third) as (client, _):
        handle = await client.submit("echo")
        assert await handle.done == "fine"
        assert [event.seq async for event in handle.events()] == [1, 2]


async def test_closing_while_the_connection_is_lost():
    """There is no connection to send `session.close` over."""
    async with scripted_client(drops, auto_resume=False) as (client, scripted):
        handle = await client.submit("echo")
        await scripted.finished()
        while client._session._open.is_set():
            await asyncio.sleep(0)
    with pytest.raises(HeartbeatLostError):
        await handle.done
