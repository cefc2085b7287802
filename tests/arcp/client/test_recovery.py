"""`submit_with_recovery`, replaced sessions, and tickets."""

import asyncio

import pytest

from amends.arcp import Ticket, connect
from amends.errors.arcp import (
    InternalError,
    PermissionDeniedError,
    ResumeWindowExpiredError,
    UnauthenticatedError,
)
from tests.arcp.client.scripted_client import NOW, drops, scripted_client
from tests.arcp.scripted import Scripted


async def test_submit_with_recovery_repeats_with_the_same_key():
    """Every attempt has the same key; retryable errors are tried again, within the policy."""

    async def script(peer):
        await peer.welcome()
        first = await peer.accept()
        await peer.fail(1, "INTERNAL_ERROR", retryable=True)
        second = await peer.accept()
        await peer.fail(2, "TIMEOUT", run=2)
        third = await peer.accept()
        await peer.result(3, "fine", run=3)
        keys = {message["payload"]["idempotency_key"] for message in (first, second, third)}
        assert len(keys) == 1
        assert keys.pop()
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        attempts = []
        result = await client.submit_with_recovery("echo", {"a": 1}, policy=NOW, history=attempts)
        assert result == "fine"
        assert len(attempts) == 3


async def test_an_error_that_is_not_retryable_is_raised_at_once():
    """With the decision and the history of the recovery."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.fail(1, "PERMISSION_DENIED", details={"capability": "net.fetch"})
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        with pytest.raises(PermissionDeniedError) as caught:
            await client.submit_with_recovery("echo", policy=NOW, idempotency_key="mine", max_runtime_sec=5)
        assert caught.value.details == {"capability": "net.fetch"}
        assert len(caught.value.history) == 1


async def test_the_policy_limits_the_attempts():
    """Three attempts, then the failure."""

    async def script(peer):
        await peer.welcome()
        for seq in range(1, 4):
            await peer.accept()
            await peer.fail(seq, "INTERNAL_ERROR")
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        with pytest.raises(InternalError) as caught:
            await client.submit_with_recovery("echo", policy=NOW)
        assert len(caught.value.history) == 3


async def test_a_session_that_is_over_is_replaced():
    """v1.0, 6.3: after RESUME_WINDOW_EXPIRED the same key on a new session is the same job."""

    async def refuses(peer):
        await peer.take()
        await peer.send("session.error", {"code": "RESUME_WINDOW_EXPIRED", "message": "m"})

    async def new_session(peer):
        hello = await peer.welcome(session="sess_2")
        assert "resume" not in hello
        submit = await peer.accept()
        assert submit["session_id"] == "sess_2"
        assert submit["payload"]["idempotency_key"] == "mine"
        await peer.result(1, "fine")
        await peer.goodbye()

    async with scripted_client(drops, refuses, new_session) as (client, _):
        assert await client.submit_with_recovery("echo", policy=NOW, idempotency_key="mine") == "fine"
        assert client.session_id == "sess_2"


async def test_a_rejected_new_session_raises():
    """The error is final."""

    async def refuses(peer):
        await peer.take()
        await peer.send("session.error", {"code": "UNAUTHENTICATED", "message": "m"})

    async with scripted_client(drops, refuses, refuses) as (client, _):
        handle = await client.submit("echo")
        with pytest.raises(UnauthenticatedError):
            await handle.done
        with pytest.raises(UnauthenticatedError):
            await client.submit_with_recovery("echo", policy=NOW)


async def test_a_ticket_of_a_session_that_the_runtime_forgot():
    """The runtime opened another session instead."""

    async def script(peer):
        hello = await peer.welcome(session="sess_2")
        assert hello["resume"] == {"session_id": "sess_1", "resume_token": "x", "last_event_seq": 7}
        await peer.take("nothing")

    with pytest.raises(ResumeWindowExpiredError) as caught:
        await connect(Scripted(script), ticket=Ticket("sess_1", "x", 7))
    assert caught.value.details == {"reason": "forgotten"}


async def test_a_runtime_without_tokens_gives_no_ticket():
    """The session cannot be resumed."""

    async def script(peer):
        await peer.welcome(token=None)
        await peer.take("nothing")

    client = await connect(Scripted(script))
    assert await client.detach() is None


async def test_events_of_a_job_whose_acceptance_was_lost():
    """They come before the repeated answer and belong to its handle; the result comes after that answer."""

    async def first(peer):
        await peer.welcome()
        await peer.take("job.submit")

    async def second(peer):
        await peer.welcome()
        submit = await peer.take("job.submit")
        await peer.event(1, {"message": "a"})
        await peer.event(2, {"message": "other"}, job_id="job_2")
        await peer.fail(3, "TIMEOUT")
        await peer.send("job.accepted", {"job_id": "job_1", "request_id": submit["id"]})
        await peer.event(4, {"message": "b"})
        await peer.result(5, "fine")
        await peer.event(6, job_id="job_3")
        await peer.goodbye()

    async with scripted_client(first, second) as (client, _):
        handle = await client.submit("echo", idempotency_key="k")
        assert await handle.done == "fine"
        assert [event.seq async for event in handle.events()] == [1, 4]
        await asyncio.sleep(0)
        assert client._inbox._unclaimed == {}
