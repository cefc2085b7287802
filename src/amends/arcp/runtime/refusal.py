"""An error of the runtime's own, as it is told: of a session, of a request, or of a job that is not there."""

from __future__ import annotations

from typing import Any

from amends.arcp.wire import now_text
from amends.arcp.wire.messages import Error
from amends.dialects import arcp as dialect
from amends.errors import FaultError

__all__ = ["refusal"]


def refusal(error: FaultError, request_id: str | None = None, *, of_job: bool = False) -> Error:
    """An error on the wire (R2). One that answers a request, or stands for the end of a job, has a final status."""
    told: dict[str, Any] = dialect.encode(error.fault)
    final = of_job or request_id is not None
    return Error(
        told["code"],
        told["message"],
        told["retryable"],
        told.get("details"),
        final_status="error" if final else None,
        completed_at=now_text() if final else None,
        request_id=request_id,
    )
