"""
ARCP envelopes (S5): session.error, job.error, a tool_result's error, and job.result with a failed status.

The last is not conformant, but a published SDK reports time-outs and cancellations that way, so it is read.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from amends.core.fault import Origin
from amends.core.reading import FAILED, NOT_FAILED, Reading
from amends.dialects import arcp
from amends.dialects.members import text

__all__ = ["TYPES", "read", "read_error"]

TYPES = frozenset({"session.error", "job.error", "job.event", "job.result"})
"""The envelopes that can carry an error."""

# A job.result's status → the code a conformant runtime would have sent.
_STATUS_CODES = {
    "timed_out": "TIMEOUT",
    "cancelled": "CANCELLED",
    "error": "INTERNAL_ERROR",
    "failed": "INTERNAL_ERROR",
}
_BARE = Origin("arcp")
_ERRORS = {
    # Session errors concern the connection, not a job.
    "session.error": Origin("arcp", "session.error", "transport"),
    "job.error": Origin("arcp", "job.error"),
}
_GAP = "a failed job ends in job.error"


def read(envelope: Any) -> Reading:
    """Read an envelope."""
    if not isinstance(envelope, dict):
        return NOT_FAILED
    kind, payload = envelope.get("type"), envelope.get("payload")
    if not isinstance(kind, str):
        return NOT_FAILED
    if kind in _ERRORS:
        return read_error(payload, _ERRORS[kind], envelope)
    if not isinstance(payload, dict):
        return NOT_FAILED
    if kind == "job.event":
        return _tool_result(payload, envelope)
    return _result(payload, envelope) if kind == "job.result" else NOT_FAILED


def read_error(error: Any, origin: Origin | None = None, envelope: dict[str, Any] | None = None) -> Reading:
    """Read an error payload, bare or from an envelope."""
    fault = arcp.fault_of(error, origin or _BARE) if isinstance(error, dict) else None
    if fault is None:
        return FAILED
    trace = envelope.get("trace_id") if envelope is not None else None
    if isinstance(trace, str):
        fault = replace(fault, trace_id=trace)
    return Reading(True, fault, origin.path if origin else None, error, True)


def _tool_result(payload: dict[str, Any], envelope: dict[str, Any]) -> Reading:
    body = payload.get("body")
    if text(payload.get("kind")) != "tool_result" or not isinstance(body, dict) or body.get("error") is None:
        return NOT_FAILED
    return read_error(body["error"], Origin("arcp", "tool_result"), envelope)


def _result(payload: dict[str, Any], envelope: dict[str, Any]) -> Reading:
    status = payload.get("final_status", payload.get("status"))
    code = _STATUS_CODES.get(status) if isinstance(status, str) else None
    if code is None:
        return NOT_FAILED
    origin = Origin("arcp", "job.result", gap=_GAP)
    reading = read_error(payload.get("error"), origin, envelope)
    if reading.fault is not None:
        return reading
    # The fault is made from the status, so there is no error object to report.
    return replace(read_error({"code": code}, origin, envelope), error=None)
