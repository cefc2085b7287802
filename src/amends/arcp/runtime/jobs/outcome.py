"""How a run ends: the payloads of `job.result` and `job.error`, the final status that follows from them, and the runtime's own refusals."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from amends.arcp.runtime.entries import STREAMED, JobEntry, encode
from amends.arcp.runtime.limits import Limits
from amends.arcp.wire import now_text
from amends.arcp.wire.messages import Error, Result
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.vocabularies.arcp import VOCABULARY
from amends.dialects import arcp as dialect
from amends.dialects.record import join_details, says_more
from amends.dialects.translation import translate
from amends.errors import FaultError
from amends.errors.arcp import InternalError, InvalidRequestError
from amends.errors.base import is_about_a_call
from amends.foreign.bugs import bug_fault, is_bug
from amends.foreign.groups import join, parts_of, single
from amends.foreign.in_doubt import in_doubt as told_in_doubt
from amends.foreign.in_doubt import lost_call
from amends.foreign.local import is_client_error
from amends.foreign.own_service import as_own_service, is_from_own_service
from amends.foreign.registry import registered_fault
from amends.foreign.trust import record_for
from amends.foreign.upstream import from_upstream, refusal_of_stranger
from amends.logs import logger
from amends.serving.server_errors import came_from_a_call

__all__ = [
    "Outcome",
    "encode_error",
    "error_of",
    "error_outcome",
    "fault_of_run",
    "in_doubt",
    "is_typed",
    "refusal",
    "result_outcome",
    "status_of",
    "without_secrets",
]

_log = logger("amends.arcp")

_NOT_JSON = (TypeError, ValueError, OverflowError, RecursionError, BufferError, msgspec.MsgspecError)
"""What encoding a value of an agent may raise."""
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
    job_id: str, run: int, value: object, streamed: tuple[str, int] | None, limits: Limits
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
    except _NOT_JSON as raised:
        _log.error("job %s failed because its result cannot be encoded as JSON", job_id, exc_info=raised)
        return error_outcome(InternalError(), run, limits.event_bytes)
    if len(payload) > limits.result_bytes:
        error = InvalidRequestError(
            "The result is too large to be sent in one message",
            details={"limit": "result_bytes", "value": limits.result_bytes},
        )
        return error_outcome(error, run, limits.event_bytes)
    return Outcome("result", payload, "success")


def encode_error(fault: Fault, call: str | None = None) -> dict[str, Any]:
    """Return the error payload of a job or tool error, with the record in `details.amends`, for the call of the submitter."""
    if fault.vocabulary != "arcp":
        fault, _ = translate(fault, to="arcp")
    error = dialect.encode(fault)
    if says_more(fault, dialect.decode(error)):
        error["details"] = join_details(error.get("details"), record_for(fault, dialect.NAME, call))
    return error


_MASK = "[redacted]"
_SHORTEST_SECRET = 4
"""A shorter value would be found in words that have nothing to do with it."""


def without_secrets(value: Any, secrets: Collection[str]) -> Any:
    """
    Return an error payload without the credentials that the runtime issued to the job; all else stays as it was raised (R4).

    Those who only follow the job do not get its credentials.

    >>> without_secrets({"message": "sk-17 was refused", "details": {"target": "s3://other/"}}, {"sk-17"})
    {'message': '[redacted] was refused', 'details': {'target': 's3://other/'}}
    """
    if not secrets:
        return value
    if isinstance(value, str):
        for secret in sorted(secrets, key=len, reverse=True):
            if len(secret) >= _SHORTEST_SECRET:
                value = value.replace(secret, _MASK)
        return value
    if isinstance(value, dict):
        return {
            without_secrets(name, secrets): without_secrets(item, secrets) for name, item in value.items()
        }
    return [without_secrets(item, secrets) for item in value] if isinstance(value, list) else value


def is_typed(exc: BaseException) -> bool:
    """Return whether an exception, or every one of a group, is an error that the agent raised with a code."""
    return all(isinstance(part, FaultError) for part in parts_of(exc))


def error_of(exc: BaseException, *, repeatable: bool = False) -> FaultError:
    """
    Return the error that a job ends with for what its agent raised; the exceptions of a group are joined.

    Args:
        exc: what the agent raised.
        repeatable: the agent may be started again, so a call that it lost leaves nothing in doubt.

    """
    found = single(exc)
    if isinstance(found, FaultError) and not is_about_a_call(found):
        return found
    registered = registered_fault(type(found))
    if registered is not None:
        return FaultError.from_fault(registered)
    error = FaultError.from_fault(join(found, partial(_fault_of, repeatable=repeatable)))
    error.__cause__ = found
    # What came out of a call says nothing about what the agent did before (M3).
    error.relayed = True
    if error.fault.retryable and came_from_a_call(found):
        error.fault = replace(error.fault, executed=Executed.MAYBE)
    return error


def _fault_of(exc: BaseException, *, repeatable: bool) -> Fault:
    """Return the fault that the submitter gets for one exception."""
    lost = None if repeatable else lost_call(exc)
    if lost is not None:
        return told_in_doubt(lost, VOCABULARY.name)
    if isinstance(exc, FaultError):
        if not is_about_a_call(exc):
            return exc.fault
        return as_own_service(exc.fault) if is_from_own_service(exc) else from_upstream(exc)
    refused = registered_fault(type(exc)) or refusal_of_stranger(exc)
    if refused is not None:
        return refused
    if is_client_error(exc):
        return from_upstream(exc)
    fault = InternalError().fault
    # The payload is that of any other failure of an agent (S5); the record says that it is a bug (M7).
    return replace(fault, raised=bug_fault()) if is_bug(exc) else fault


def fault_of_run(error: FaultError, *, repeatable: bool = False) -> Fault:
    """Return the fault of a run that failed with an error. `repeatable` is as in `error_of`."""
    error = error_of(error, repeatable=repeatable)
    fault = error.fault
    if fault.retryable and came_from_a_call(error):
        # The agent may have done something before the call that failed (M3).
        fault = replace(fault, executed=Executed.MAYBE)
    return fault


def error_outcome(
    error: FaultError,
    run: int,
    limit: int,
    call: str | None = None,
    secrets: Collection[str] = (),
    *,
    repeatable: bool = False,
) -> Outcome:
    """
    Return the outcome of a run that failed (R2, R4).

    Args:
        error: why it failed.
        run: its number.
        limit: the most bytes of the payload.
        call: the id that the submitter sent.
        secrets: the values of the credentials that the runtime issued to the job.
        repeatable: as in `error_of`.

    """
    encoded = without_secrets(encode_error(fault_of_run(error, repeatable=repeatable), call), secrets)
    code = encoded["code"]
    status = _FINAL.get(code, "error")
    encoded |= {"final_status": status, "completed_at": now_text()}
    if run > 1:
        encoded["run"] = run
    try:
        payload = encode(encoded)
        if len(payload) <= limit:
            return Outcome("error", payload, status, code)
    except _NOT_JSON as raised:
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
