"""How a run ends: the payloads of `job.result` and `job.error`, and the final status that follows from them."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from amends.arcp.runtime.entries import STREAMED, JobEntry, encode
from amends.arcp.runtime.limits import Limits
from amends.arcp.wire import now_text
from amends.arcp.wire.messages import Result
from amends.core.fault import Fault
from amends.core.vocabularies.arcp import VOCABULARY
from amends.dialects import arcp as dialect
from amends.dialects.beside import MEMBER, write_beside
from amends.dialects.translation import translate
from amends.errors import FaultError
from amends.errors.arcp import InternalError, InvalidRequestError

__all__ = ["Outcome", "encode_error", "error_outcome", "in_doubt", "result_outcome", "status_of"]

_log = logging.getLogger("amends.arcp")

_FINAL = {"CANCELLED": "cancelled", "TIMEOUT": "timed_out"}
"""Final statuses that are more specific than "error" (7.3)."""


class Outcome(msgspec.Struct, frozen=True):
    """The terminal entry of a run, before it is written."""

    kind: str
    payload: bytes
    status: str
    code: str = ""
    """The error's code; empty for a result."""
    label: str = ""


def in_doubt(why: str) -> InternalError:
    """Return the error for a run that may have had its effect."""
    return InternalError(why, retryable=False, details={"in_doubt": True, "executed": "maybe"})


def result_outcome(
    job_id: str, run: int, value: Any, streamed: tuple[str, int] | None, limits: Limits
) -> Outcome:
    """Return the outcome of an agent that returned; an error if the result is too large or not JSON."""
    this_run = run if run > 1 else None
    if streamed is not None:
        # 8.4: a streamed result has no other value. A string that the agent returns becomes its summary.
        summary = value if isinstance(value, str) else None
        result = Result(
            "success",
            result_id=streamed[0],
            result_size=streamed[1],
            summary=summary,
            completed_at=now_text(),
            run=this_run,
        )
        return Outcome("result", encode(result), "success", label=STREAMED)
    try:
        payload = encode(Result("success", value, completed_at=now_text(), run=this_run))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as raised:
        _log.error("job %s failed because its result cannot be encoded as JSON", job_id, exc_info=raised)
        return error_outcome(InternalError(), run, limits.event_bytes)
    if len(payload) > limits.result_bytes:
        error = InvalidRequestError(
            "The result is too large to be sent in one message",
            details={"limit": "result_bytes", "value": limits.result_bytes},
        )
        return error_outcome(error, run, limits.event_bytes)
    return Outcome("result", payload, "success")


def encode_error(fault: Fault) -> dict[str, Any]:
    """Return the error payload of a job or tool error, with what travels beside it in `details.amends` (M8)."""
    if fault.vocabulary != "arcp":
        fault, _ = translate(fault, to="arcp")
    error = dialect.encode(fault)
    details = error.get("details")
    assumed = dialect.decode(error)
    beside = {} if assumed is None else write_beside(fault, assumed, VOCABULARY.row(fault.code).actor)
    if beside and (details is None or MEMBER not in details):
        error["details"] = {**(details or {}), MEMBER: beside}
    return error


def error_outcome(error: FaultError, run: int, limit: int) -> Outcome:
    """Return the outcome of a run that failed (R2, R4); `limit` is the most bytes of the payload."""
    encoded = encode_error(error.fault)
    code = encoded["code"]
    status = _FINAL.get(code, "error")
    encoded |= {"final_status": status, "completed_at": now_text()}
    if run > 1:
        encoded["run"] = run
    try:
        payload = encode(encoded)
        if len(payload) <= limit:
            return Outcome("error", payload, status, code)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as raised:
        _log.warning(
            "the details of an error %s cannot be encoded as JSON and are omitted",
            code,
            exc_info=raised,
        )
    encoded.pop("details", None)
    encoded["message"] = encoded["message"][:1000]
    return Outcome("error", encode(encoded), status, code)


def status_of(entry: JobEntry) -> str:
    """Return the final status of a terminal entry."""
    status = msgspec.json.decode(entry.payload).get("final_status")
    return status if isinstance(status, str) else ("success" if entry.kind == "result" else "error")
