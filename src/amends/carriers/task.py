"""Task responses of the agent error contract (S3): {id, status, error, metadata}."""

from __future__ import annotations

from typing import Any

from amends.core.fault import Fault
from amends.core.reading import FAILED, NOT_FAILED, Reading
from amends.dialects import task
from amends.dialects.adcp_document import webhook_error
from amends.dialects.members import text

__all__ = ["STATUSES", "read", "read_error", "write"]

STATUSES = frozenset({"pending", "in_progress", "completed", "failed", "cancelled", "input_required"})


def read(response: Any) -> Reading:
    """Read a task response. Only one with the status "failed" reports a failure."""
    if not isinstance(response, dict) or text(response.get("status")) != "failed":
        return NOT_FAILED
    if "error" not in response:
        # A webhook of AdCP has a status of the same name.
        return webhook_error(response) or FAILED
    return read_error(response.get("error"))


def read_error(error: Any) -> Reading:
    """Read a bare task error."""
    fault = task.fault_of(error) if isinstance(error, dict) else None
    if fault is None:
        return FAILED
    return Reading(True, fault, "task", error, True)


def write(fault: Fault, *, id: str, metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the response of a failed task (T3). `metadata` is {startedAt, completedAt, duration_ms, agent}."""
    response: dict[str, Any] = {"id": id, "status": "failed", "error": task.encode(fault)}
    if metadata is not None:
        response["metadata"] = metadata
    return response
