"""Lost connections: resumed without losing or repeating events, within limits, or given up."""

import asyncio

import pytest

from amends import Policy
from amends.arcp import connect
from amends.arcp.transports import ConnectionLost
from amends.core.backoff import Backoff
from amends.errors.arcp import (
    ARCPError,
    HeartbeatLostError,
    InvalidRequestError,
    ResumeWindowExpiredError,
)
from tests.arcp.client.scripted_client import QUICK, drops, hangs_up, scripted_client
from tests.arcp.scripted import SESSION, TOKEN, Scripted


async def test_a_lost_connection_is_resumed_without_losing_or_repeating_events():
    """6.3: from the last event received, with the token of the last welcome; events replayed twice are delivered once."""

    async def first(peer):
        await peer.welcome(token="rt_1")
        await peer.accept()
        await peer.event(1)
        await peer.event(2)

    async def second(peer):
        hello = await peer.welcome(token="rt_2")
        assert hello["resume"] == {"session_id": SESSION, "resume_token": "rt_1", "last_event_seq": 2}
        for seq in (1, 2, 3):
            await peer.event(seq)

    async def third(peer):
        # v1.0's order: replay first, then the welcome.
        hello = await peer.take("session.hello")
        assert hello["payload"]["resume"] == {
            "session_id": SESSION,
            "resume_token": "rt_2",
            "last_event_seq": 3,
        }
        await peer.event(4)
        await peer.send("session.welcome", {"session_id": SESSION, "resume_token": "rt_3"})
        await peer.event(4)
        await peer.result(5, "fine")
        await peer.result(5, "twice")
        await peer.goodbye()

    async with scripted_client(first, second, third) as (client, _):
        handle = await client.submit("echo")
        assert [event.seq async for event in handle.events()] == [1, 2, 3, 4]
        assert await handle.done == "fine"
        assert client.session_id == SESSION


async def test_a_gap_is_filled_by_resuming():
    """8.3: a gap means that the session is broken; the client resumes it to get the missing events."""

    async def first(peer):
        await peer.welcome()
        await peer.accept()
        await peer.event(1)
        await peer.event(3)
        await peer.take("nothing")

    async def second(peer):
        hello = await peer.welcome()
        assert hello["resume"]["last_event_seq"] == 1
        await peer.event(2)
        await peer.event(3)
        await peer.result(4, 1)
        await peer.goodbye()

    async with scripted_client(first, second) as (client, _):
        handle = await client.submit("echo")
        assert [event.seq async for event in handle.events()] == [1, 2, 3]
        assert await handle.done == 1


async def test_a_gap_that_stays_ends_the_session():
    """The runtime does not have the events any more."""

    async def first(peer):
        await peer.welcome()
        await peer.accept()
        await peer.event(5)
        await peer.take("nothing")

    async def second(peer):
        await peer.welcome()
        await peer.event(5)
        await peer.take("nothing")

    async with scripted_client(first, second, first) as (client, scripted):
        handle = await client.submit("echo")
        with pytest.raises(ResumeWindowExpiredError) as caught:
            await handle.done
        assert caught.value.details == {"reason": "gap", "after": 0}
        assert [event async for event in handle.events()] == []
        assert len(scripted.peers) == 2


async def test_a_session_that_cannot_be_resumed():
    """Rejected, forgotten, unreachable, without a token: each ends the session, and none hangs."""

    async def refuses(peer):
        await peer.take()
        await peer.send("session.error", {"code": "RESUME_WINDOW_EXPIRED", "message": "m"})

    async def forgets(peer):
        await peer.welcome(session="sess_2")
        await peer.take("nothing")

    async def no_token(peer):
        await peer.welcome(token=None)
        await peer.accept()

    for scripts, kind, reason in (
        ((drops, refuses), ResumeWindowExpiredError, None),
        ((drops, forgets), ResumeWindowExpiredError, "forgotten"),
        ((drops,), HeartbeatLostError, "unreachable"),
        ((drops, hangs_up, hangs_up, hangs_up), HeartbeatLostError, "no_protocol"),
        ((no_token,), HeartbeatLostError, "disconnected"),
    ):
        async with scripted_client(*scripts) as (client, _):
            handle = await client.submit("echo")
            with pytest.raises(kind) as caught:
                await handle.done
            if reason is not None:
                assert caught.value.details["reason"] == reason
            with pytest.raises(kind):
                await client.submit("echo")


async def test_the_window_limits_the_attempts():
    """The client does not try longer than the runtime keeps the session; whether the runtime still has it is unknown."""

    async def script(peer):
        await peer.welcome(window=0.05)
        await peer.accept()

    endless = Policy(attempts=None, max_wait=None, backoff=Backoff(first=0.01, cap=0.01))
    async with scripted_client(script, resuming=endless) as (client, _):
        with pytest.raises(HeartbeatLostError) as caught:
            await (await client.submit("echo")).done
        assert caught.value.retryable


async def test_the_policy_limits_the_attempts():
    """A policy shorter than the window: HEARTBEAT_LOST, because the session may still be there."""
    short = Policy(attempts=None, max_wait=0.05, backoff=Backoff(first=0.01, cap=0.01))
    async with scripted_client(drops, resuming=short) as (client, _):
        with pytest.raises(HeartbeatLostError):
            await (await client.submit("echo")).done


async def welcomes_and_leaves(peer):
    await peer.welcome()


async def test_a_runtime_that_disconnects_after_its_welcome():
    """A resumption without any message counts as a failed attempt, so the client stops trying."""
    async with scripted_client(drops, *[welcomes_and_leaves] * 50) as (client, scripted):
        with pytest.raises(HeartbeatLostError):
            await (await client.submit("echo")).done
        assert len(scripted.peers) == 4
    short = Policy(attempts=None, max_wait=0.1, backoff=Backoff(first=0.01, cap=0.01))
    async with scripted_client(drops, *[welcomes_and_leaves] * 500, resuming=short) as (client, scripted):
        with pytest.raises(HeartbeatLostError):
            await (await client.submit("echo")).done
        assert len(scripted.peers) < 100


async def test_a_result_that_is_too_large_to_read():
    """The transport rejects the frame each time, until the client stops trying."""

    async def replays(peer):
        await peer.welcome()
        await peer.result(1, "x" * 5_000_000)
        await peer.take("nothing")

    async with scripted_client(drops, *[replays] * 50) as (client, scripted):
        with pytest.raises(HeartbeatLostError):
            await (await client.submit("echo")).done
        assert len(scripted.peers) == 4


async def test_a_connection_that_lasted_resets_the_attempts(monkeypatch):
    """Also if nothing was received over it."""
    monkeypatch.setattr("amends.arcp.client.reconnect._STABLE_AFTER", -1.0)
    lost_often = [welcomes_and_leaves] * 10

    async def last(peer):
        await peer.welcome()
        await peer.result(1, "fine")
        await peer.goodbye()

    async with scripted_client(drops, *lost_often, last) as (client, _):
        assert await (await client.submit("echo")).done == "fine"


async def test_an_input_that_is_too_large_to_send():
    """It raises before it is sent: sending it would end the connection and fail all other requests."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.result(1, "small")
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        with pytest.raises(InvalidRequestError) as caught:
            await client.submit("echo", "x" * 5_000_000, idempotency_key="k")
        assert caught.value.details["limit"] < caught.value.details["bytes"]
        assert await (await client.submit("echo", "x")).done == "small"


async def test_resuming_on_request():
    """The client leaves an open connection for a new one; the session and its jobs continue."""

    async def first(peer):
        await peer.welcome()
        await peer.accept()
        await peer.event(1)
        await peer.take("nothing")

    async def second(peer):
        hello = await peer.welcome(token="rt_2")
        assert hello["resume"]["resume_token"] == TOKEN
        await peer.event(2)
        await peer.result(3, "fine")
        await peer.goodbye()

    async with scripted_client(first, second) as (client, _):
        handle = await client.submit("echo")
        events = handle.events()
        assert (await anext(events)).seq == 1
        await client.resume()
        assert [event.seq async for event in events] == [2]
        assert await handle.done == "fine"


async def test_resuming_only_on_request():
    """Without auto_resume a lost session waits for `resume()`, as long as its window."""

    async def second(peer):
        await peer.welcome(window=0.05)
        await peer.result(1, "fine")
        await peer.accept("job_2")

    async with scripted_client(drops, second, auto_resume=False) as (client, scripted):
        handle = await client.submit("echo")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(handle.done, 0.02)
        assert len(scripted.peers) == 1
        await client.resume()
        assert await handle.done == "fine"
        second_handle = await client.submit("echo")
        with pytest.raises(ResumeWindowExpiredError):
            await second_handle.done
        assert len(scripted.peers) == 2


async def test_whatever_ends_a_session_its_jobs_may_have_had_their_effect():
    """Also if the last attempt to resume it failed before anything was sent. A later call was not sent at all."""

    async def unauthenticated(peer):
        await peer.take()
        await peer.send("session.error", {"code": "UNAUTHENTICATED", "message": "m"})

    for scripts, code in (((drops,), "HEARTBEAT_LOST"), ((drops, unauthenticated), "UNAUTHENTICATED")):
        async with scripted_client(*scripts) as (client, _):
            handle = await client.submit("echo")
            with pytest.raises(ARCPError) as caught:
                await handle.done
            assert (caught.value.code, caught.value.fault.executed) == (code, "maybe")
            with pytest.raises(ARCPError) as caught:
                await client.submit("echo")
            assert (caught.value.code, caught.value.fault.executed) == (code, "no")


async def test_a_runtime_that_is_gone_is_retryable():
    """Also if its address answers with something else now, which a new connection would report as permanent."""
    scripted = Scripted(drops)

    async def dial():
        if not scripted.peers:
            return await scripted()
        raise ConnectionLost("the server has no WebSocket here", reason="wrong_path", permanent=True)

    async with asyncio.timeout(30), connect(dial, token="secret", resuming=QUICK) as client:
        with pytest.raises(HeartbeatLostError) as caught:
            await (await client.submit("echo")).done
    assert caught.value.retryable
    assert caught.value.details["reason"] == "wrong_path"


async def test_a_closed_client_is_not_tried_again():
    """Only a new client can help, and nothing was sent."""

    async def script(peer):
        await peer.welcome()

    async with scripted_client(script) as (client, _):
        await client.close()
        for call in (client.submit, client.submit_with_recovery, client.subscribe):
            with pytest.raises(HeartbeatLostError) as caught:
                await call("echo")
            assert not caught.value.retryable
            assert (caught.value.details["reason"], caught.value.fault.executed) == ("closed", "no")
