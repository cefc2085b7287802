"""Failures as faults: what a peer said, and what only we can know about the connection."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from amends.carriers import arcp as carrier
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.errors.base import FaultError

__all__ = ["error_of", "lost", "received", "spoilt", "transient", "window_over"]

# What a job's end says beside the error itself.
_BESIDE = frozenset({"final_status", "completed_at", "request_id", "run"})
_CONNECTION = Origin("arcp", "connection", "transport")


def error_of(fault: Fault) -> FaultError:
    """A fresh exception, so that every `await` has its own traceback and its own `details` to add to."""
    return FaultError.from_fault(fault)


def received(type: str, payload: dict[str, Any] | None, trace_id: str | None) -> Fault:
    """What a `session.error`, `job.error` or failed `job.result` says. One that cannot be read is one all the same."""
    said = payload or {}
    if type != "job.result":
        said = {name: value for name, value in said.items() if name not in _BESIDE}
    fault = carrier.read({"type": type, "payload": said, "trace_id": trace_id}).fault
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


def lost(reason: str, *, executed: Executed = Executed.MAYBE, **details: Any) -> Fault:
    """The other side is gone, or silent: HEARTBEAT_LOST, retryable by S5's table."""
    return Fault(
        code="HEARTBEAT_LOST",
        vocabulary="arcp",
        message=_WORDS[reason],
        executed=executed,
        details={"reason": reason, **details},
        origin=_CONNECTION,
    )


_WORDS = {
    "unreachable": "The runtime cannot be reached",
    "silent": "The runtime has not said anything for two heartbeats",
    "no_answer": "The runtime did not answer in time",
    "no_protocol": "What answers does not speak ARCP",
    "disconnected": "The connection was lost, and the session cannot be resumed",
    "in_doubt": "The connection was lost before the answer came; whether the request arrived is unknown",
    "gap": "Events are missing, and the session cannot be resumed",
    "closed": "The client was closed; the job goes on without it",
}


def window_over(**details: Any) -> Fault:
    """The session cannot be continued: its window has passed, or the runtime has forgotten it."""
    return Fault(
        code="RESUME_WINDOW_EXPIRED",
        vocabulary="arcp",
        message="The session could not be resumed in time",
        details=details or None,
        origin=_CONNECTION,
    )


def spoilt(reason: str, trace_id: str | None, **details: Any) -> Fault:
    """The job succeeded, and its result cannot be had (section 14). Submitting it again would do the work again."""
    return Fault(
        code="INTERNAL_ERROR",
        vocabulary="arcp",
        message="The job's result cannot be put together",
        recovery=Recovery.TERMINAL,
        executed=Executed.YES,
        details={"reason": reason, **details},
        trace_id=trace_id,
        origin=Origin("arcp", "result_chunk", gap="chunks come in order and are complete"),
    )


def transient(fault: Fault) -> Fault:
    """The same fault, worth another try: with a key, what a new session can mend is no reason to stop."""
    return replace(fault, recovery=Recovery.TRANSIENT)
