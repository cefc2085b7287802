"""
The error of an agent task (S3): {code, message, details, recoverable}.

- `recoverable` is false for terminal and true for the rest. A reader takes the recovery class for true from the code's
  row.
- `encode` writes details as raised. The tasks of this package write the record into `details.amends` (`encode_beside`,
  `amends.dialects.record`). A reader removes it again.
- Producers write no other members; fields without a member are in LOSSES. Unknown members of a received error are kept
  and passed on.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from amends.core.enums import Recovery
from amends.core.fault import Fault, Origin
from amends.core.vocabularies.task import VOCABULARY
from amends.dialects import members
from amends.dialects.outgoing import outgoing
from amends.dialects.record import IN_DOUBT, attach, join_details, says_more, split_details

__all__ = ["LOSSES", "NAME", "SPEC", "decode", "encode", "encode_beside"]

NAME = "task"
SPEC = "the agent error contract: the error of a failed task"
LOSSES = frozenset(
    {
        *(
            "vocabulary",
            "origin",
            "recovery",
            "strategy",
            "max_retries",
            "retry_after",
            "actor",
            "executed",
            "attempt",
        ),
        *("field", "suggestions", "errors", "trace_id", "doc_uri", "type", "title", "status", "instance"),
        *("intent", "user_message", "max_attempts", "extensions", "fatal"),
    }
)

_MEMBERS = frozenset({"code", "message", "details", "recoverable"})
_BARE = Origin("task", "task")


def decode(data: Any, *, origin: Origin = _BARE) -> Fault | None:
    """Return the Fault in a task's error, or None."""
    error = members.plain_mapping(data)
    return None if error is None else fault_of(error, origin)


def fault_of(data: dict[str, Any], origin: Origin = _BARE) -> Fault | None:
    """Do the same for an object of plain values."""
    get = data.get
    code = members.code(get("code"))
    if code is None:
        return None
    row = VOCABULARY.rows.get(code)
    recoverable = get("recoverable")
    if recoverable is False:
        recovery = Recovery.TERMINAL
    elif row is not None:
        recovery = row.recovery
    else:
        recovery = Recovery.UNCERTAIN if recoverable is True else Recovery.TERMINAL
    facts = row or VOCABULARY.unknown
    details, received = split_details(members.mapping(get("details")))
    fault = Fault(
        code=code,
        message=members.text(get("message")) or "",
        recovery=recovery,
        vocabulary="task",
        details=details,
        actor=facts.actor_under(recovery),
        executed=facts.executed,
        trace_id=members.identifier(get("trace_id")),
        extensions=members.unknown(data, _MEMBERS),
        origin=origin,
    )
    return fault if received is None else attach(fault, received)


def encode_beside(fault: Fault) -> dict[str, Any]:
    """
    Return the error object with the record in `details.amends` (`amends.dialects.record`).

    >>> encode_beside(Fault(code="TIMEOUT", vocabulary="task", message="Too slow", attempt=3))["details"]["amends"]["tries"]
    3
    """
    if not says_more(fault, decode(encode(replace(fault, origin=_BARE)))):
        return encode(fault)
    return encode(replace(fault, details=join_details(fault, fault.details, NAME)))


def encode(fault: Fault) -> dict[str, Any]:
    """Return the error object. Details are written as raised; a possible leak is logged as a warning."""
    fault = outgoing(fault, NAME)
    if fault.in_doubt and (fault.origin is None or fault.origin.dialect != NAME):
        # A host would repeat a TIMEOUT (M2, in doubt). The record says what it was.
        fault = replace(fault, code="INTERNAL_ERROR", message=IN_DOUBT, recovery=Recovery.TERMINAL)
    error: dict[str, Any] = {"code": fault.code, "message": fault.message}
    if fault.details is not None:
        error["details"] = fault.details
    error["recoverable"] = fault.recovery is not Recovery.TERMINAL
    if fault.origin is not None and fault.origin.dialect == NAME:
        for name, value in fault.extensions.items():
            if name not in _MEMBERS:
                error[name] = value
    return error
