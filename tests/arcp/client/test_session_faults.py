"""The faults of a session: what the runtime reports, and what the connection does."""

import pytest

from amends.arcp.client import session_faults as faults
from amends.arcp.transports import ConnectionLost
from amends.core.enums import Executed, Recovery


def test_reported_faults():
    """Members of the end of a job are not part of the error; what cannot be read is INTERNAL_ERROR."""
    payload = {"code": "TIMEOUT", "message": "m", "retryable": True, "final_status": "timed_out", "run": 2}
    fault = faults.reported_fault("job.error", payload, "ab" * 16)
    assert (fault.code, fault.message, fault.trace_id) == ("TIMEOUT", "m", "ab" * 16)
    for payload in (None, {}, {"code": 5}):
        fault = faults.reported_fault("job.error", payload, None)
        assert (fault.code, fault.origin.gap) == ("INTERNAL_ERROR", "an error has a code")
    assert faults.reported_fault("job.result", {}, None).origin.gap == "a job ends in success or in job.error"


@pytest.mark.parametrize(
    "reason", ["silent", "no_answer", "disconnected", "in_doubt", "job_lost", "gap", "closed"]
)
def test_a_lost_connection(reason):
    fault = faults.connection_lost(reason, after=3)
    assert (fault.code, fault.executed) == ("HEARTBEAT_LOST", Executed.MAYBE)
    assert fault.details == {"reason": reason, "after": 3}
    assert faults.error_of(fault).retryable


def test_a_session_that_was_not_opened():
    """The URL and the cause; another attempt helps unless something has to be changed."""
    lost = ConnectionLost("refused", reason="refused", retry_after=3.0, details={"status": 503})
    fault = faults.not_opened(lost, "ws://host/arcp")
    assert fault.message == "Cannot connect to ws://host/arcp: refused"
    assert fault.details == {"reason": "refused", "url": "ws://host/arcp", "status": 503}
    assert (fault.recovery, fault.retry_after, fault.executed) == (Recovery.TRANSIENT, 3.0, Executed.NO)
    wrong = faults.not_opened(ConnectionLost("no such path", permanent=True), None)
    assert (wrong.message, wrong.recovery) == ("No such path", Recovery.CORRECTABLE)


def test_results_that_are_lost():
    """The work was done, so that a repetition would do it again."""
    for fault in (faults.result_unusable("gap", None), faults.result_gone("job_1")):
        assert (fault.executed, fault.recovery) == (Executed.YES, Recovery.TERMINAL)
    assert faults.resume_expired().details is None
    assert faults.as_transient(faults.result_gone("job_1")).recovery is Recovery.TRANSIENT
