"""The wire form of the runtime's own errors: for a session, for a request, or for a job that no longer exists."""

from __future__ import annotations

from typing import Any

from amends.arcp.wire import now_text
from amends.arcp.wire.messages import Error
from amends.dialects import arcp as dialect
from amends.errors import FaultError

__all__ = ["refusal"]


def refusal(error: FaultError, request_id: str | None = None, *, of_job: bool = False) -> Error:
    """Encode an error (R2). An error that answers a request or ends a job has a final status."""
    encoded: dict[str, Any] = dialect.encode(error.fault)
    final = of_job or request_id is not None
    return Error(
        encoded["code"],
        encoded["message"],
        encoded["retryable"],
        encoded.get("details"),
        final_status="error" if final else None,
        completed_at=now_text() if final else None,
        request_id=request_id,
    )
