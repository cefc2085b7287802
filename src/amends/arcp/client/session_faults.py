"""The faults of a session: those that the runtime reports, and those of the connection."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from amends.arcp.transports.connection import ConnectionLost
from amends.carriers import arcp as carrier
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.errors.base import FaultError

__all__ = [
    "as_transient",
    "client_closed",
    "connection_lost",
    "error_of",
    "none_opened",
    "not_opened",
    "reported_fault",
    "result_gone",
    "result_unusable",
    "resume_expired",
]

# The members of a job's end that are not part of the error.
_NOT_OF_ERROR = frozenset({"final_status", "completed_at", "request_id", "run"})
_CONNECTION = Origin("arcp", "connection", "transport")


def error_of(fault: Fault) -> FaultError:
    """A new exception for a fault, so that every `await` raises one with its own traceback and its own `details`."""
    return FaultError.from_fault(fault)


def reported_fault(type: str, payload: dict[str, object] | None, trace_id: str | None) -> Fault:
    """The fault in a `session.error`, `job.error` or failed `job.result`; INTERNAL_ERROR if it cannot be read."""
    error = payload or {}
    if type != "job.result":
        error = {name: value for name, value in error.items() if name not in _NOT_OF_ERROR}
    fault = carrier.read({"type": type, "payload": error, "trace_id": trace_id}).fault
    if fault is not None:
        return fault
    gap = "an error has a code" if type != "job.result" else "a job ends in success or in job.error"
    return Fault(
        code="INTERNAL_ERROR",
        vocabulary="arcp",
        message="The runtime reported a failure that cannot be read",
        trace_id=trace_id,
        origin=Origin("arcp", type, gap=gap),
    )


def connection_lost(reason: str, *, executed: Executed = Executed.MAYBE, **details: object) -> Fault:
    """The runtime is gone or silent: HEARTBEAT_LOST, which is retryable."""
    return Fault(
        code="HEARTBEAT_LOST",
        vocabulary="arcp",
        message=_MESSAGES[reason],
        executed=executed,
        details={"reason": reason, **details},
        origin=_CONNECTION,
    )


def client_closed() -> Fault:
    """A call on a client that was closed: HEARTBEAT_LOST, and only a new client can help."""
    return Fault(
        code="HEARTBEAT_LOST",
        vocabulary="arcp",
        message="The client was closed: open a new one",
        recovery=Recovery.CORRECTABLE,
        executed=Executed.NO,
        details={"reason": "closed"},
        origin=_CONNECTION,
    )


def not_opened(error: ConnectionLost, url: str | None) -> Fault:
    """
    No session was opened: HEARTBEAT_LOST with the URL and the cause.

    It is retryable, unless another attempt cannot succeed before the caller changes something: the URL, the certificate.
    """
    cause = str(error)
    where = f"Cannot connect to {url}: {cause}" if url else cause[:1].upper() + cause[1:]
    return Fault(
        code="HEARTBEAT_LOST",
        vocabulary="arcp",
        message=where,
        recovery=Recovery.CORRECTABLE if error.permanent else Recovery.TRANSIENT,
        retry_after=error.retry_after,
        executed=Executed.NO,
        details={"reason": error.reason, **({"url": url} if url else {}), **error.details},
        origin=_CONNECTION,
    )


def none_opened(failures: Mapping[str, Fault]) -> Fault:
    """No address of a runtime opened a session: the failure that allows the soonest attempt, with the message of each."""
    faults = list(failures.values())
    soonest = min(
        (fault for fault in faults if fault.recovery is Recovery.TRANSIENT),
        key=lambda fault: fault.retry_after or 0.0,
        default=faults[-1],
    )
    addresses = {name: fault.message for name, fault in failures.items()}
    message = f"None of {len(failures)} addresses opened a session: {soonest.message}"
    return replace(soonest, message=message, details={**(soonest.details or {}), "addresses": addresses})


_MESSAGES = {
    "silent": "The runtime has sent nothing for two heartbeat intervals",
    "no_answer": "The runtime did not answer in time",
    "disconnected": "The connection was lost, and the session cannot be resumed",
    "in_doubt": "The connection was lost before the answer; it is unknown whether the request arrived",
    "job_lost": "The connection was lost, and the runtime does not have the job any more",
    "gap": "Events are missing, and the session cannot be resumed",
    "closed": "The client was closed; the job continues without it",
}


def resume_expired(**details: object) -> Fault:
    """The session cannot be continued: its window has passed, or the runtime does not have it any more."""
    return Fault(
        code="RESUME_WINDOW_EXPIRED",
        vocabulary="arcp",
        message="The session could not be resumed in time",
        details=details or None,
        origin=_CONNECTION,
    )


def result_unusable(reason: str, trace_id: str | None, **details: object) -> Fault:
    """The job succeeded, but its result cannot be assembled (section 14). Submitting again would repeat the work."""
    return Fault(
        code="INTERNAL_ERROR",
        vocabulary="arcp",
        message="The job succeeded, and its result cannot be read",
        recovery=Recovery.TERMINAL,
        executed=Executed.YES,
        details={"reason": reason, **details},
        trace_id=trace_id,
        origin=Origin("arcp", "result_chunk", gap="chunks come in order and are complete"),
    )


def result_gone(job_id: str) -> Fault:
    """The key belongs to a job that has ended, and the runtime does not have its end any more."""
    return Fault(
        code="JOB_NOT_FOUND",
        vocabulary="arcp",
        message="The job of this idempotency key has ended, and the runtime has no result of it any more",
        recovery=Recovery.TERMINAL,
        executed=Executed.YES,
        details={"reason": "result_gone", "job_id": job_id},
        origin=Origin("arcp", "job.accepted", gap="a repeated key gives the same job and its result"),
    )


def as_transient(fault: Fault) -> Fault:
    """The same fault as transient: with a key, a new session can continue the job."""
    return replace(fault, recovery=Recovery.TRANSIENT)
