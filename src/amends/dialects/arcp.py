"""
ARCP's error payload (S5): {code, message, retryable?, details?}.

- `retryable` is always written: true for transient, the code's default for uncertain, false for the rest, and for an effect that
  has to be verified first. A reader takes correctable or terminal for false from the code's row.
- `details` are written and read exactly as raised (R4). A reader takes the record from `details.amends` (`amends.dialects.record`)
  and removes it.
- Producers write no other members; fields without a member are in LOSSES. Unknown members of a received error are kept
  and passed on.
"""

from __future__ import annotations

from typing import Any

from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.vocabularies.arcp import VOCABULARY
from amends.dialects import members
from amends.dialects.outgoing import outgoing
from amends.dialects.record import add_corrections, attach, split_details
from amends.proof import Claim, Proof, rests_on

__all__ = ["LOSSES", "NAME", "SPEC", "decode", "encode"]

NAME = "arcp"
SPEC = "ARCP 1.1, section 12: the error payload of session.error, job.error and tool_result"
LOSSES = frozenset(
    {
        *("vocabulary", "executed", "origin", "recovery", "actor", "retry_after", "strategy", "max_retries"),
        *("field", "suggestions", "errors", "trace_id", "doc_uri", "type", "title", "status", "instance"),
        *("intent", "user_message", "attempt", "max_attempts", "extensions", "fatal"),
    }
)

_MEMBERS = frozenset({"code", "message", "retryable", "details"})
_BARE = Origin("arcp")


def decode(data: Any, *, origin: Origin = _BARE) -> Fault | None:
    """Return the Fault in an error payload, or None."""
    error = members.plain_mapping(data)
    return None if error is None else fault_of(error, origin)


@rests_on(Claim.NOT_HAPPENED, Proof.STATUS)
def fault_of(data: dict[str, Any], origin: Origin = _BARE) -> Fault | None:
    """Do the same for an object of plain values."""
    get = data.get
    code = members.code(get("code"))
    if code is None:
        return None
    row = VOCABULARY.row(code)
    retryable = get("retryable")
    recovery = row.recovery
    if retryable is True:
        recovery = Recovery.TRANSIENT
    elif retryable is False and recovery is Recovery.TRANSIENT:
        recovery = Recovery.TERMINAL
    details, received = split_details(members.mapping(get("details")))
    # RATE_LIMITED is not a code of ARCP, but always means that the call did not run (M3).
    executed = Executed.NO if code == "RATE_LIMITED" else row.executed
    fault = Fault(
        code=code,
        message=members.text(get("message")) or "",
        recovery=recovery,
        vocabulary="arcp",
        details=details,
        actor=row.actor_under(recovery),
        executed=executed,
        trace_id=members.identifier(get("trace_id")),
        extensions=members.unknown(data, _MEMBERS),
        origin=origin,
    )
    return fault if received is None else add_corrections(attach(fault, received))


def encode(fault: Fault) -> dict[str, Any]:
    """Return the error payload. Details are written as raised; a possible leak is logged as a warning."""
    fault = outgoing(fault, NAME)
    if fault.in_doubt and fault.recovery is Recovery.UNCERTAIN:
        retryable = False  # the effect has to be verified first
    elif fault.recovery is Recovery.UNCERTAIN:
        retryable = VOCABULARY.row(fault.code).recovery is Recovery.TRANSIENT
    else:
        retryable = fault.recovery is Recovery.TRANSIENT
    error: dict[str, Any] = {"code": fault.code, "message": fault.message, "retryable": retryable}
    if fault.details is not None:
        error["details"] = fault.details
    if fault.origin is not None and fault.origin.dialect == NAME:
        for name, value in fault.extensions.items():
            if name not in _MEMBERS:
                error[name] = value
    return error
