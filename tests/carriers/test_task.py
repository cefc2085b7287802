"""Task responses of the agent error contract (S3)."""

import pytest

from amends.carriers.task import STATUSES, read, read_error, write
from amends.core.fault import Fault
from amends.core.reading import FAILED, NOT_FAILED

ERROR = {"code": "TIMEOUT", "message": "late", "recoverable": True}


def test_a_failed_task():
    """T3: the error of a failed task is read."""
    reading = read({"id": "t", "status": "failed", "error": ERROR, "metadata": {"agent": "a"}})
    assert (reading.failed, reading.fatal, reading.path, reading.error) == (True, True, "task", ERROR)
    assert reading.fault.code == "TIMEOUT"


@pytest.mark.parametrize("status", [*sorted(STATUSES - {"failed"}), "FAILED", None, 5, ["failed"]])
def test_only_failed_is_a_failure(status):
    """M6: only the status failed is a failure."""
    assert read({"status": status, "error": ERROR}) == NOT_FAILED


@pytest.mark.parametrize("error", [None, "boom", [], {}, {"code": 5}, {"message": "x"}])
def test_a_failed_task_without_a_valid_error(error):
    """A failed task without a valid error is a failure without a fault."""
    assert read({"status": "failed", "error": error}) == FAILED
    assert read_error(error) == FAILED


@pytest.mark.parametrize("value", [None, 5, [], "failed"])
def test_values_that_are_no_response(value):
    """A value that is not an object is not a failure."""
    assert read(value) == NOT_FAILED


def test_a_written_response_is_read():
    """T3: a written response has id, status, error and metadata, and its error is read."""
    metadata = {"startedAt": "2025-01-05T10:30:00Z", "duration_ms": 1000, "agent": "a"}
    fault = Fault(code="TIMEOUT", vocabulary="task", message="late", details={"step": 2})
    written = write(fault, id="t", metadata=metadata)
    assert (written["id"], written["status"], written["metadata"]) == ("t", "failed", metadata)
    assert read(written).fault.details == {"step": 2}
    assert "metadata" not in write(fault, id="t")
