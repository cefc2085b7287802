"""Lost connections: resumed without loss or doubling, within bounds, or given up on."""

import asyncio

import pytest

from amends import Policy
from amends.core.backoff import Backoff
from amends.errors.arcp import (
    HeartbeatLostError,
    InvalidRequestError,
    ResumeWindowExpiredError,
)
from tests.arcp.client.talking import drops, hangs_up, talking
from tests.arcp.scripted import SESSION, TOKEN


async def test_a_lost_connection_is_resumed_without_loss_or_doubling():
    """6.3: from the last event seen, with the token of the last welcome; what is replayed twice comes once."""

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

    async with talking(first, second, third) as (client, _):
        handle = await client.submit("echo")
        assert [event.seq async for event in handle.events()] == [1, 2, 3, 4]
        assert await handle.done == "fine"
        assert client.session_id == SESSION


async def test_a_gap_is_filled_by_resuming():
    """8.3: an unexpected gap means that the session is broken; what is missing is asked for."""

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

    async with talking(first, second) as (client, _):
        handle = await client.submit("echo")
        assert [event.seq async for event in handle.events()] == [1, 2, 3]
        assert await handle.done == 1


async def test_a_gap_that_stays_ends_the_session():
    """The runtime does not have the events any more, whatever it says."""

    async def first(peer):
        await peer.welcome()
        await peer.accept()
        await peer.event(5)
        await peer.take("nothing")

    async def second(peer):
        await peer.welcome()
        await peer.event(5)
        await peer.take("nothing")

    async with talking(first, second, first) as (client, scripted):
        handle = await client.submit("echo")
        with pytest.raises(ResumeWindowExpiredError) as caught:
            await handle.done
        assert caught.value.details == {"reason": "gap", "after": 0}
        assert [event async for event in handle.events()] == []
        assert len(scripted.peers) == 2


async def test_a_session_that_cannot_be_resumed():
    """Every way it can end: refused, forgotten, nobody there, no token. Never a hang."""

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
        async with talking(*scripts) as (client, _):
            handle = await client.submit("echo")
            with pytest.raises(kind) as caught:
                await handle.done
            if reason is not None:
                assert caught.value.details["reason"] == reason
            with pytest.raises(kind):
                await client.submit("echo")


async def test_the_window_bounds_the_tries():
    """Nobody tries longer than the runtime keeps the session."""

    async def script(peer):
        await peer.welcome(window=0.05)
        await peer.accept()

    endless = Policy(attempts=None, max_wait=None, backoff=Backoff(first=0.01, cap=0.01))
    async with talking(script, resuming=endless) as (client, _):
        with pytest.raises(ResumeWindowExpiredError) as caught:
            await (await client.submit("echo")).done
        assert caught.value.details == {"reason": "disconnected"}


async def test_patience_bounds_the_tries_too():
    """A policy shorter than the window: HEARTBEAT_LOST, because the session may still be there."""
    short = Policy(attempts=None, max_wait=0.05, backoff=Backoff(first=0.01, cap=0.01))
    async with talking(drops, resuming=short) as (client, _):
        with pytest.raises(HeartbeatLostError):
            await (await client.submit("echo")).done


async def welcomes_and_leaves(peer):
    await peer.welcome()


async def test_a_runtime_that_welcomes_and_hangs_up():
    """A resumption that brings nothing counts as a failed try: nobody goes round in circles for ever."""
    async with talking(drops, *[welcomes_and_leaves] * 50) as (client, scripted):
        with pytest.raises(HeartbeatLostError):
            await (await client.submit("echo")).done
        assert len(scripted.peers) == 4
    short = Policy(attempts=None, max_wait=0.1, backoff=Backoff(first=0.01, cap=0.01))
    async with talking(drops, *[welcomes_and_leaves] * 500, resuming=short) as (client, scripted):
        with pytest.raises(HeartbeatLostError):
            await (await client.submit("echo")).done
        assert len(scripted.peers) < 100


async def test_a_result_too_large_to_be_read():
    """The transport refuses the frame, again and again: that ends too."""

    async def replays(peer):
        await peer.welcome()
        await peer.result(1, "x" * 5_000_000)
        await peer.take("nothing")

    async with talking(drops, *[replays] * 50) as (client, scripted):
        with pytest.raises(HeartbeatLostError):
            await (await client.submit("echo")).done
        assert len(scripted.peers) == 4


async def test_a_connection_that_lasted_is_no_failed_try(monkeypatch):
    """However quiet it was: tries are counted anew."""
    monkeypatch.setattr("amends.arcp.client.reconnect._LASTED", -1.0)
    lost_often = [welcomes_and_leaves] * 10

    async def last(peer):
        await peer.welcome()
        await peer.result(1, "fine")
        await peer.goodbye()

    async with talking(drops, *lost_often, last) as (client, _):
        assert await (await client.submit("echo")).done == "fine"


async def test_an_input_too_large_to_be_sent():
    """Said here: sending it would cost the connection, and with it everybody's."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.result(1, "small")
        await peer.goodbye()

    async with talking(script) as (client, _):
        with pytest.raises(InvalidRequestError) as caught:
            await client.submit("echo", "x" * 5_000_000, idempotency_key="k")
        assert caught.value.details["limit"] < caught.value.details["bytes"]
        assert await (await client.submit("echo", "x")).done == "small"


async def test_resuming_on_request():
    """A connection that is open is left for a new one; the session and its jobs go on."""

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

    async with talking(first, second) as (client, _):
        handle = await client.submit("echo")
        events = handle.events()
        assert (await anext(events)).seq == 1
        await client.resume()
        assert [event.seq async for event in events] == [2]
        assert await handle.done == "fine"


async def test_resuming_only_on_request():
    """Without auto_resume a lost session waits for the call, as long as its window."""

    async def second(peer):
        await peer.welcome(window=0.05)
        await peer.result(1, "fine")
        await peer.accept("job_2")

    async with talking(drops, second, auto_resume=False) as (client, scripted):
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
