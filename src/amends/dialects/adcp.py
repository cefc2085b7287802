"""
AdCP's error object (S4).

- `recovery` is one of transient, correctable, terminal; uncertain is written as transient.
- `retry_after` is in seconds. A producer writes whole seconds from 1 to 3600; a reader keeps the received value.
- `suggestion` is the first suggestion; the others are lost.
- An unknown `recovery` is read as terminal, and written unchanged when the error is passed on (A12).
- `recovery: transient` together with a `retry_after` is an explicit invitation to repeat: the call had no effect
  (`amends.core.hints`).
- Unknown members (`issues`, `buyer_reason`, …) are kept.
- The parts of a failure are the member `errors`, one level deep. In a response they are beside the error instead
  (`parts_beside`); `encode_alone` writes the error without them.
- An error that would be too large for readers is cut (`amends.dialects.adcp_size`).
- Fields without a member in AdCP are in LOSSES.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.dialects import members
from amends.dialects.adcp_document import document_error
from amends.dialects.adcp_object import BARE, KEY, MEMBERS, NAME, fault_of, parts_in, plain_error, valid
from amends.dialects.adcp_size import MAX_ERROR_BYTES, fit
from amends.dialects.outgoing import check_adcp_details, outgoing

__all__ = [
    "BARE",
    "KEY",
    "LOSSES",
    "MAX_ERROR_BYTES",
    "NAME",
    "SPEC",
    "decode",
    "encode",
    "encode_alone",
    "fault_of",
    "parts_beside",
    "plain_error",
    "valid",
]

SPEC = "AdCP 3.2 error object, as the transport error mapping carries it over MCP and A2A"
LOSSES = frozenset(
    {
        *("vocabulary", "executed", "origin", "actor", "suggestions", "strategy", "max_retries"),
        *("trace_id", "doc_uri", "type", "title", "status", "instance", "intent", "user_message"),
        *("attempt", "max_attempts", "recovery", "fatal"),
    }
)
"""Fields that reading does not restore. Of `recovery` only uncertain is lost: it is written as transient."""

_MEMBERS = MEMBERS


def decode(data: Any) -> Fault | None:
    """
    Return the Fault in an error object, or None if it is not a valid one.

    Also reads a document that contains one: a protocol envelope or a task's payload, with `adcp_error` or `errors`.
    """
    error = plain_error(data)
    if error is not None:
        return fault_of(error, BARE)
    document = members.plain_mapping(data)
    if document is None or isinstance(document.get("code"), str):
        return None
    return document_error(document).fault


def encode(fault: Fault) -> dict[str, Any]:
    """
    Return the error object, with the fault's parts as its member `errors`; at most 4096 bytes.

    An error that was received as one is passed on unchanged. Any other fault is redacted, and its wait is made
    conformant.
    """
    fault = _outgoing(fault)
    error = _object(fault)
    if fault.errors:
        error.setdefault("errors", [_object(part) for part in fault.errors])
    return fit(error)


def encode_alone(fault: Fault) -> dict[str, Any]:
    """Return the same without the parts, for a response that has them beside the error."""
    return fit(_object(_outgoing(fault)))


def parts_beside(fault: Fault) -> tuple[Fault, ...]:
    """
    Return the parts that a server writes as `errors[]` beside the `adcp_error` of a fault.

    Parts that were received inside the error object are written inside it again, and parts that are not AdCP errors are
    left out.
    """
    inside = 0
    if fault.origin is not None and fault.origin.dialect == NAME:
        inside = len(parts_in(fault.extensions.get("errors"), fault.origin))
    return tuple(part for part in fault.errors[inside:] if part.vocabulary == NAME)


def _outgoing(fault: Fault) -> Fault:
    if _is_received(fault):
        return fault
    fault = outgoing(fault, NAME)
    check_adcp_details(fault)
    return fault


def _is_received(fault: Fault) -> bool:
    return fault.origin is not None and fault.origin.dialect == NAME


def _object(fault: Fault) -> dict[str, Any]:
    error: dict[str, Any] = {
        "code": fault.code,
        "message": fault.message,
        "recovery": _recovery_member(fault),
    }
    if fault.retry_after is not None:
        error["retry_after"] = fault.retry_after if _is_received(fault) else _seconds(fault.retry_after)
    if fault.field is not None:
        error["field"] = fault.field
    if fault.suggestions:
        error["suggestion"] = fault.suggestions[0]
    if fault.details is not None:
        error["details"] = fault.details
    for name, value in fault.extensions.items():
        # A received list of errors is kept as it was if not all of it could be read.
        if name not in _MEMBERS or (name == "errors" and _is_received(fault)):
            error[name] = value
    return error


def _recovery_member(fault: Fault) -> Any:
    if fault.recovery is Recovery.UNCERTAIN:
        return "transient"
    if fault.recovery is Recovery.TERMINAL and _is_received(fault):
        return fault.extensions.get("recovery", "terminal")
    return fault.recovery.value


def _seconds(retry_after: float) -> int:
    """Return whole seconds from 1 to 3600, as a producer has to send them (A10)."""
    return min(3600, max(1, ceil(retry_after)))
