"""
The error of an agent task (S3): {code, message, details, recoverable}.

- `recoverable` is false for terminal and true for the rest. A reader takes the recovery class for true from the code's
  row.
- The tasks of this package write the wrong field into `details` too (`name`, `pointer`), and the record into
  `details.amends` (`encode_beside`, `amends.dialects.record`). A reader removes the record again.
- Producers write no other members; fields without a member are in LOSSES. Unknown members of a received error are kept
  and passed on.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from amends.core.enums import Recovery
from amends.core.fault import Fault, Origin
from amends.core.fields import last_step, to_pointer
from amends.core.vocabularies.task import VOCABULARY
from amends.dialects import members
from amends.dialects.outgoing import masked, outgoing
from amends.dialects.record import (
    IN_DOUBT,
    add_corrections,
    attach,
    join_details,
    record_of,
    says_more,
    split_details,
)

__all__ = ["LOSSES", "NAME", "SPEC", "decode", "encode", "encode_beside", "encode_with_field"]

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
        field=_pointer_in(details),
        trace_id=members.identifier(get("trace_id")),
        extensions=members.unknown(data, _MEMBERS),
        origin=origin,
    )
    return fault if received is None else add_corrections(attach(fault, received))


def _pointer_in(details: dict[str, Any] | None) -> str | None:
    pointer = None if details is None else members.text(details.get("pointer"))
    return pointer if pointer is not None and pointer.startswith("/") else None


def encode_beside(fault: Fault) -> dict[str, Any]:
    """
    Return the error object with the wrong field in `details`, and with the record in `details.amends`.

    >>> encode_beside(Fault(code="TIMEOUT", vocabulary="task", message="Too slow", attempt=3))["details"]["amends"]["tries"]
    3
    """
    error = encode_with_field(fault)
    if says_more(fault, decode(encode(replace(fault, origin=_BARE)))):
        return _with_details(error, join_details(error.get("details"), record_of(fault, NAME)))
    return error


def encode_with_field(fault: Fault) -> dict[str, Any]:
    """
    Return the error object with the wrong field in `details`, for implementations that know no record.

    >>> encode_with_field(Fault(code="INVALID_INPUT", vocabulary="task", field="/seats/0"))["details"]
    {'name': '0', 'pointer': '/seats/0'}
    """
    error = encode(fault)
    if not fault.field or (fault.origin is not None and fault.origin.dialect == NAME):
        return error
    # Made from the field itself: in `details` a pointer may look like the path of a file.
    pointer = to_pointer(outgoing(Fault(code=fault.code, field=fault.field), NAME).field or "")
    return _with_details(error, {"name": last_step(pointer), "pointer": pointer, **error.get("details", {})})


def _with_details(error: dict[str, Any], details: dict[str, Any] | None) -> dict[str, Any]:
    changed = {"code": error["code"], "message": error["message"], "details": details, **error}
    return {**changed, "details": details}


def encode(fault: Fault) -> dict[str, Any]:
    """Return the error object. One that was received is passed on, with credentials masked; any other fault is redacted."""
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
        return {name: masked(value) for name, value in error.items()}
    return error
