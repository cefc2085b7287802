"""Jobs and their ends: every failure is raised, and a rejection affects only its request."""

import asyncio

import pytest

from amends.arcp import Handle
from amends.core.enums import Executed
from amends.errors.arcp import (
    AgentNotAvailableError,
    ARCPError,
    CancelledError,
    DuplicateKeyError,
    HeartbeatLostError,
    InternalError,
    InvalidRequestError,
    PermissionDeniedError,
)
from amends.errors.arcp import TimeoutError as JobTimeoutError
from tests.arcp.client.scripted_client import scripted_client
from tests.arcp.scripted import SESSION


async def test_a_job():
    """All arguments are sent; everything granted is visible; `done` returns the result any number of times."""
    sent = {}

    async def script(peer):
        await peer.welcome()
        sent.update(
            await peer.accept(
                lease={"fs.read": ["/a/**"]}, budget={"USD": 5.0}, credentials=[{"value": "s3cr3t"}]
            )
        )
        await peer.result(1, {"a": [1, 2.5, None, "ü"]}, summary="fine")
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        handle = await client.submit(
            "echo@1",
            {"a": 1},
            idempotency_key="k",
            max_runtime_sec=30.0,
            lease={"fs.read": ("/a/**",)},
            expires_at=1_778_715_720.0,
            trace_id="ef" * 16,
            parent_job_id="job_0",
        )
        assert isinstance(handle, Handle)
        for _ in range(2):
            assert await handle.done == {"a": [1, 2.5, None, "ü"]}
        assert (handle.job_id, handle.agent, handle.lease) == ("job_1", "echo@1", {"fs.read": ["/a/**"]})
        assert (handle.summary, handle.trace_id, handle.run, handle.finished) == ("fine", "ab" * 16, 1, True)
        assert "s3cr3t" not in repr(handle) + repr(handle.accepted)
        assert [event async for event in handle.events()] == []
    assert sent["trace_id"] == "ef" * 16
    assert sent["session_id"] == SESSION
    assert sent["payload"] == {
        "agent": "echo@1",
        "input": {"a": 1},
        "idempotency_key": "k",
        "max_runtime_sec": 30,
        "lease_request": {"fs.read": ["/a/**"]},
        "lease_constraints": {"expires_at": "2026-05-13T23:42:00Z"},
        "parent_job_id": "job_0",
    }


async def test_omitted_arguments_are_not_sent():
    """No nulls are written."""

    async def script(peer):
        await peer.welcome()
        submit = await peer.accept()
        assert submit["payload"] == {"agent": "echo"}
        assert "trace_id" not in submit
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        handle = await client.submit("echo", expires_at=None)
        assert "running" in repr(handle)
        with pytest.raises(TypeError):
            await client.submit("echo", object())
    with pytest.raises(HeartbeatLostError) as caught:
        await handle.done
    assert caught.value.details == {"reason": "closed"}


async def test_an_input_that_is_not_json_affects_no_other_request():
    """It raises at once."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.result(1, 7)
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        with pytest.raises(TypeError):
            await client.submit("echo", {"a": object()})
        assert await (await client.submit("echo")).done == 7


FAILURES = [
    (
        {"code": "TIMEOUT", "message": "m", "retryable": True, "final_status": "timed_out"},
        JobTimeoutError,
        True,
    ),
    ({"code": "CANCELLED", "message": "m", "final_status": "cancelled"}, CancelledError, False),
    ({"code": "INTERNAL_ERROR", "message": "m", "details": None}, InternalError, True),
    ({"code": "INTERNAL_ERROR", "message": "m", "retryable": False}, InternalError, False),
    (
        {"code": "PERMISSION_DENIED", "message": "m", "details": {"a": {"b": [1]}}},
        PermissionDeniedError,
        False,
    ),
    ({"code": "OUT_OF_INK", "message": "m", "retryable": True}, ARCPError, True),
    ({}, InternalError, True),
]


@pytest.mark.parametrize(("payload", "kind", "retryable"), FAILURES)
async def test_every_job_error_is_raised(payload, kind, retryable):
    """R5, R2, R4: with the class of its code, its details as sent and its retryability, for every await."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.send("job.error", payload, job_id="job_1", event_seq=1)
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        handle = await client.submit("echo")
        with pytest.raises(kind) as caught:
            await handle.done
        first = caught.value
        assert first.retryable is retryable
        assert first.details == payload.get("details")
        assert first.fault.trace_id == "ab" * 16
        assert first.fault.extensions == {}
        # R10: context can be added, to this exception only.
        first.details = {**(first.details or {}), "job_id": handle.job_id}
        assert first.fault.details["job_id"] == "job_1"
        with pytest.raises(kind) as caught:
            await handle.done
        assert caught.value is not first
        assert caught.value.details == payload.get("details")


ENDS = [
    ({"final_status": "timed_out"}, TimeoutError),
    ({"final_status": "cancelled"}, CancelledError),
    ({"status": "cancelled"}, CancelledError),
    ({"final_status": "error"}, InternalError),
    (
        {"final_status": "failed", "error": {"code": "PERMISSION_DENIED", "message": "m"}},
        PermissionDeniedError,
    ),
    ({"error": {"code": "PERMISSION_DENIED", "message": "m"}}, PermissionDeniedError),
    ({"final_status": "exploded"}, InternalError),
]


@pytest.mark.parametrize(("payload", "kind"), ENDS)
async def test_every_failed_result_is_raised(payload, kind):
    """R5: a published runtime ends failed jobs with job.result; an unknown status is not a success."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.send("job.result", payload, job_id="job_1", event_seq=1)
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        with pytest.raises(kind) as caught:
            await (await client.submit("echo")).done
        assert caught.value.fault.origin.gap


@pytest.mark.parametrize(
    ("payload", "result"),
    [
        ({"final_status": "success", "result": 1, "summary": [], "completed_at": 5, "result_size": "x"}, 1),
        ({"result": 1, "summary": 5}, 1),
        ({"status": "completed", "result": 2}, 2),
        (None, None),
    ],
)
async def test_a_result_with_members_of_wrong_types_is_read(payload, result):
    """They must not make the result unreadable."""

    async def script(peer):
        await peer.welcome()
        await peer.accept(lease="none", budget=5)
        await peer.send("job.result", payload, job_id="job_1", event_seq=1)
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        assert await (await client.submit("echo")).done == result


REFUSALS = [
    ("job.error", {"code": "AGENT_NOT_AVAILABLE", "message": "m"}, True, AgentNotAvailableError),
    ("job.error", {"code": "DUPLICATE_KEY", "message": "m"}, False, DuplicateKeyError),
    ("job.error", {"code": "TIMEOUT", "message": "m"}, True, JobTimeoutError),
    ("session.error", {"code": "DUPLICATE_KEY", "message": "m"}, True, DuplicateKeyError),
    ("session.error", {"code": "INVALID_REQUEST", "message": "m"}, False, InvalidRequestError),
]


@pytest.mark.parametrize(("type", "payload", "named", "kind"), REFUSALS)
async def test_a_rejection_affects_only_its_request(type, payload, named, kind):
    """R9: with and without the request's id, in either message type."""

    async def script(peer):
        await peer.welcome()
        first = await peer.accept("job_1")
        second = await peer.take("job.submit")
        third = await peer.take("job.submit")
        assert first["payload"]["input"] == 1
        await peer.send(type, {**payload, **({"request_id": second["id"]} if named else {})})
        await peer.send("job.accepted", {"job_id": "job_3", "request_id": third["id"]})
        await peer.result(1, "one", "job_1")
        await peer.result(2, "three", "job_3")
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        one, two, three = await asyncio.gather(
            *(client.submit("echo", number) for number in (1, 2, 3)), return_exceptions=True
        )
        assert isinstance(two, kind)
        assert (await one.done, await three.done) == ("one", "three")


async def test_answers_without_a_request_id_are_matched_by_order():
    """Older runtimes answer without request_id; the acceptance of a delegated job answers no request."""

    async def script(peer):
        await peer.welcome()
        for _ in range(2):
            await peer.take("job.submit")
        await peer.send("job.accepted", {"job_id": "job_c", "parent_job_id": "job_0", "delegate_id": "del_1"})
        await peer.send("job.accepted", {"job_id": 5})
        await peer.send("job.accepted", {"job_id": "job_1"})
        await peer.send("job.accepted", {"job_id": "job_2", "lease": 5})
        await peer.result(1, "a", "job_1")
        await peer.result(2, "b", "job_2")
        await peer.result(3, "c", "job_c")
        await peer.send("job.accepted", {"job_id": "job_3"})
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        one, two = await asyncio.gather(client.submit("echo"), client.submit("echo"))
        assert (await one.done, await two.done) == ("a", "b")


async def test_a_session_error_that_ends_the_connection_ends_the_session():
    """R6: it is fatal. Everything that waits raises it; the caller must open a new session."""

    async def script(peer):
        await peer.welcome()
        await peer.accept()
        await peer.send("session.error", {"code": "INTERNAL_ERROR", "message": "m", "retryable": False})
        await peer.close()

    async with scripted_client(script, script) as (client, scripted):
        handle = await client.submit("echo")
        with pytest.raises(InternalError) as caught:
            await handle.done
        assert caught.value.fault.origin.path == "session.error"
        for again in (client.submit("echo"), client.resume(), client.unsubscribe("job_9")):
            with pytest.raises(InternalError):
                await again
        assert len(scripted.peers) == 1


async def test_a_session_error_on_an_open_connection_rejects_a_request():
    """A published runtime continues after it; a connection lost later is resumed as usual."""

    async def first(peer):
        await peer.welcome()
        await peer.accept()
        await peer.send("session.error", {"code": "JOB_NOT_FOUND", "message": "m"})
        await peer.send("session.ping", {"nonce": "n"})
        await peer.take("session.pong")

    async def second(peer):
        await peer.welcome()
        await peer.result(1, "fine")
        await peer.goodbye()

    async with scripted_client(first, second) as (client, _):
        assert await (await client.submit("echo")).done == "fine"


async def test_a_request_without_an_answer():
    """It times out with HEARTBEAT_LOST, and it is unknown whether the request was executed."""

    async def script(peer):
        await peer.welcome()
        await peer.goodbye()

    async with scripted_client(script, request_timeout=0.05) as (client, _):
        with pytest.raises(HeartbeatLostError) as caught:
            await client.submit("echo")
        assert caught.value.details == {"reason": "no_answer"}
        assert caught.value.fault.executed is Executed.MAYBE
        cancelled = asyncio.create_task(client.submit("echo"))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)


@pytest.mark.parametrize(
    ("bound", "field"),
    [
        ({"max_runtime_sec": float("nan")}, "max_runtime_sec"),
        ({"max_runtime_sec": float("inf")}, "max_runtime_sec"),
        ({"max_runtime_sec": 10**400}, "max_runtime_sec"),
        ({"expires_at": float("nan")}, "lease_constraints.expires_at"),
        ({"expires_at": 1e300}, "lease_constraints.expires_at"),
    ],
)
async def test_a_bound_that_is_no_number_is_refused(bound, field):
    """JSON has no NaN: it would be sent as null, and the job would have no bound."""

    async def script(peer):
        await peer.welcome()
        await peer.take("session.close")

    async with scripted_client(script) as (client, _):
        with pytest.raises(InvalidRequestError) as caught:
            await client.submit("echo", **bound)
        assert caught.value.details == {"field": field}


@pytest.mark.parametrize(
    "input", [float("nan"), {"price": float("inf")}, [1, [-float("inf"), None]], {"text": "\ud800"}, "\udc00"]
)
async def test_an_input_that_json_cannot_carry_is_not_sent(input):
    """NaN would arrive as null, and the job would run with another input; nothing is sent, with a key or without."""

    async def script(peer):
        await peer.welcome()
        submit = await peer.accept()
        assert submit["payload"]["input"] == {"price": None}
        await peer.result(1, "done")
        await peer.goodbye()

    async with scripted_client(script) as (client, _):
        for key in (None, "k"):
            with pytest.raises(InvalidRequestError) as caught:
                await client.submit("echo", input, idempotency_key=key)
            assert caught.value.details == {"field": "input"}
            assert caught.value.fault.executed is Executed.NO
        handle = await client.submit("echo", {"price": None})
        assert await handle.done == "done"
