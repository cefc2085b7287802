"""Errors in ARCP envelopes, and failed results of other SDKs."""

import pytest

from amends.carriers.arcp import TYPES, read, read_error
from amends.core.enums import Recovery
from amends.core.fault import Origin
from amends.core.reading import FAILED, NOT_FAILED

ERROR = {"code": "TIMEOUT", "message": "late", "retryable": True, "details": {"limit": 5}}


def tool_result(error, **more):
    """Return a job.event with a failed tool_result."""
    body = {"call_id": "fetch-1", "error": error, **more}
    return {"type": "job.event", "payload": {"kind": "tool_result", "body": body}}


@pytest.mark.parametrize(
    ("envelope", "path", "layer"),
    [
        ({"type": "session.error", "payload": ERROR}, "session.error", "transport"),
        ({"type": "job.error", "payload": ERROR}, "job.error", "application"),
        (tool_result(ERROR), "tool_result", "application"),
        (
            {"type": "job.result", "payload": {"final_status": "timed_out", "error": ERROR}},
            "job.result",
            "application",
        ),
    ],
)
def test_errors_are_read_from_every_envelope(envelope, path, layer):
    """R2: the error is read from session.error, job.error, tool_result.body.error and a failed job.result."""
    reading = read(envelope)
    assert (reading.failed, reading.fatal, reading.path, reading.error) == (True, True, path, ERROR)
    assert (reading.fault.code, reading.fault.details) == ("TIMEOUT", {"limit": 5})
    assert (reading.fault.origin.path, reading.fault.origin.layer) == (path, layer)
    assert bool(reading.fault.origin.gap) is (path == "job.result")


def test_the_envelopes_trace_is_the_faults():
    """P5: the fault has the trace id of the envelope."""
    assert read({"type": "job.error", "trace_id": "t", "payload": ERROR}).fault.trace_id == "t"
    assert read({"type": "job.error", "trace_id": 5, "payload": ERROR}).fault.trace_id is None


@pytest.mark.parametrize("kind", ["session.error", "job.error"])
@pytest.mark.parametrize("payload", [None, "x", [], {}, {"code": 5}, {"message": "x"}])
def test_an_error_without_a_code(kind, payload):
    """M6: an error envelope without a valid error is a failure without a fault."""
    assert read({"type": kind, "payload": payload}) == FAILED


@pytest.mark.parametrize("error", [{}, "boom", 5, False, []])
def test_a_tool_error_without_a_code(error):
    """R7: a tool_result with an invalid error is a failure without a fault."""
    assert read(tool_result(error)) == FAILED


@pytest.mark.parametrize(
    "envelope",
    [
        tool_result(None, result=5),
        {"type": "job.event", "payload": {"kind": "tool_call", "body": {"error": ERROR}}},
        {"type": "job.event", "payload": {"kind": "tool_result", "body": None}},
        {"type": "job.event", "payload": None},
        {"type": "job.result", "payload": {"final_status": "success"}},
        {"type": "job.result", "payload": {"final_status": 5}},
        {"type": "job.result", "payload": {}},
        {"type": "job.result", "payload": []},
        {"type": "job.accepted", "payload": ERROR},
        {"type": 5, "payload": ERROR},
        {"type": ["job.error"], "payload": ERROR},
        {"payload": ERROR},
        {},
        [],
        None,
        "job.error",
    ],
)
def test_envelopes_without_a_failure(envelope):
    """M6: these envelopes report no failure."""
    assert read(envelope) == NOT_FAILED


@pytest.mark.parametrize(
    ("status", "code", "recovery"),
    [
        ("timed_out", "TIMEOUT", "transient"),
        ("cancelled", "CANCELLED", "terminal"),
        ("error", "INTERNAL_ERROR", "transient"),
        ("failed", "INTERNAL_ERROR", "transient"),
    ],
)
@pytest.mark.parametrize("name", ["final_status", "status"])
@pytest.mark.parametrize("error", [None, {}, "x"])
def test_a_failed_result_without_an_error(status, code, recovery, name, error):
    """R5, design 9: a published SDK ends a failed job with job.result; the fault then follows from its status."""
    reading = read({"type": "job.result", "trace_id": "t", "payload": {name: status, "error": error}})
    assert (reading.failed, reading.path, reading.error) == (True, "job.result", None)
    assert (reading.fault.code, reading.fault.recovery, reading.fault.trace_id) == (code, recovery, "t")
    assert reading.fault.origin.gap


def test_a_bare_payload():
    """Design 9: a bare payload is read; an invalid one is a failure."""
    reading = read_error({"code": "LEASE_EXPIRED"})
    assert (reading.fault.recovery, reading.path) == (Recovery.CORRECTABLE, None)
    assert reading.fault.origin == Origin("arcp")
    assert read_error(None) == FAILED


def test_the_envelopes_that_can_carry_an_error():
    """R2: four types of envelope can carry an error."""
    assert {"session.error", "job.error", "job.event", "job.result"} == TYPES
