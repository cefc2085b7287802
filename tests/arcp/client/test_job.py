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


@pytest.mark.parametrize(
    ("payload", "result"),
    [
        ({"output": {"a": 1}}, {"a": 1}),
        ({"output": None}, None),
        ({"result": None}, None),
        ({"rows": 3, "cost": 0.5}, {"rows": 3, "cost": 0.5}),
        ({"result": 1, "output": 2}, 1),
    ],
)
async def test_the_specification_names_no_member_for_a_result(payload, result, caplog):
    """ "Inline in the payload" (8.4): the Go SDK writes `output`. A result that is null is one."""
    done = {"final_status": "success", "completed_at": "2026-01-01T00:00:00Z", "summary": "s"}
    assert await ended("job.result", {**done, **payload}) == result
    assert not caplog.records


async def test_a_success_without_a_result_is_none_and_a_warning(caplog):
    """A TypeScript agent that returns nothing sends exactly that."""
    assert await ended("job.result", {"final_status": "success"}) is None
    assert [record.getMessage() for record in caplog.records] == [
        "job job_1 succeeded, and its job.result has no result: it is None"
    ]


@pytest.mark.parametrize("reference", [5, ["r1"], {"id": 1}])
async def test_a_reference_that_cannot_be_read_raises(reference):
    """The job succeeded, so its effect happened."""
    job = Job("job_1", None, Settings())
    job.finish(received("job.result", {"final_status": "success", "result_id": reference}))
    with pytest.raises(FaultError) as caught:
        await job.outcome
    assert caught.value.fault.executed == "yes"
    assert not caught.value.retryable


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
