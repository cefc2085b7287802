"""A job and its outcome: every way a runtime may report the end, read once."""

import asyncio

import pytest

from amends.arcp.client import Settings
from amends.arcp.client.job import Job, Outcome
from amends.arcp.client.session_faults import connection_lost
from amends.arcp.wire import Malformed, read, write
from amends.arcp.wire import envelope as make
from amends.errors.arcp import HeartbeatLostError
from amends.errors.base import FaultError


def received(type, payload, seq=None):
    message = make(type, payload, session_id="sess_1", job_id="job_1")
    message.event_seq = seq
    found = read(write(message))
    assert not isinstance(found, Malformed)
    return found


async def ended(type, payload):
    job = Job("job_1", None, Settings())
    job.finish(received(type, payload))
    try:
        return await job.outcome
    except FaultError as error:
        return error.code


@pytest.mark.parametrize("status", [{"final_status": "success"}, {"status": "completed"}, {}])
async def test_successes(status):
    assert await ended("job.result", {**status, "result": [1]}) == [1]


@pytest.mark.parametrize(
    ("type", "payload", "code"),
    [
        ("job.error", {"code": "TIMEOUT", "message": "m"}, "TIMEOUT"),
        ("job.result", {"final_status": "timed_out"}, "TIMEOUT"),
        ("job.result", {"final_status": "cancelled"}, "CANCELLED"),
        (
            "job.result",
            {"final_status": "error", "error": {"code": "JOB_NOT_FOUND", "message": "m"}},
            "JOB_NOT_FOUND",
        ),
        ("job.result", {"final_status": "success", "result_id": "r1"}, "INTERNAL_ERROR"),
        ("job.error", {}, "INTERNAL_ERROR"),
    ],
)
async def test_failures(type, payload, code):
    assert await ended(type, payload) == code


async def test_a_member_of_a_wrong_type_does_not_hide_the_result():
    assert await ended("job.result", {"final_status": "success", "result": 1, "summary": 5}) == 1


def test_repeated_messages_are_not_new():
    job = Job("job_1", None, Settings())
    assert [job.is_new(received("job.event", {}, seq)) for seq in (1, 2, 2, 1, 3)] == [
        True,
        True,
        False,
        False,
        True,
    ]


async def test_events_are_there_for_a_late_reader():
    job = Job("job_1", None, Settings())
    job.add_event(
        received(
            "job.event",
            {"kind": "status", "body": {"phase": "credential_rotated", "id": "c", "value": "new"}},
            1,
        ),
        10,
    )
    job.add_event(received("job.event", {"kind": "log", "body": {"a": 1}, "run": 2}, 2), 10)
    job.fail(connection_lost("closed"))
    assert [(event.kind, event.run) async for event in job.events.read()] == [("status", 1), ("log", 2)]
    assert (job.rotated, job.run) == ({"c": "new"}, 2)


async def test_an_outcome_for_many_waiters():
    """A cancelled waiter does not affect the others; every waiter gets an exception of its own."""
    outcome = Outcome()

    async def wait():
        return await outcome

    tasks = [asyncio.create_task(wait()) for _ in range(3)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    outcome.fail(connection_lost("closed"))
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert all(isinstance(error, HeartbeatLostError) for error in results[1:])
    assert results[1] is not results[2]
