"""
AdCP's error object (S4).

- `recovery` is one of transient, correctable, terminal; uncertain is written as transient, and as terminal if the effect has to be
  verified first.
- `retry_after` is in seconds. A producer writes whole seconds from 1 to 3600; a reader keeps the received value.
- `suggestion` is the first suggestion; the others are lost.
- An unknown `recovery` is read as terminal (A12).
- `field` is written as AdCP's path (`packages[0].budget`), also where it was raised as a JSON Pointer.
- An error that was received is passed on repaired, not replaced: an unknown `recovery` is written as terminal, a wait becomes whole
  seconds from 1 to 3600, and credentials in its strings are masked, which is the only change to a conformant error. Code and
  details stay, and `extract` keeps the values as they were received (A9).
- A code that AdCP does not allow a producer is replaced by a published one of the same recovery, and logged.
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

from msgspec.structs import replace

from amends.core.crosswalk import adcp_code
from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.fields import property_path
from amends.core.hints import finite
from amends.dialects import members
from amends.dialects.adcp_document import document_error
from amends.dialects.adcp_object import BARE, KEY, MEMBERS, NAME, fault_of, parts_in, plain_error, valid
from amends.dialects.adcp_size import MAX_ERROR_BYTES, fit
from amends.dialects.outgoing import check_adcp_details, masked, outgoing, outgoing_code
from amends.logs import logger

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
    "with_allowed_codes",
]

SPEC = "AdCP 3.2 error object, as the transport error mapping carries it over MCP and A2A"
LOSSES = frozenset(
    {
        *("vocabulary", "executed", "origin", "actor", "suggestions", "strategy", "max_retries"),
        *("trace_id", "doc_uri", "type", "title", "status", "instance", "intent", "user_message"),
        *("attempt", "max_attempts", "recovery", "retry_after", "field", "fatal"),
    }
)
"""
Fields that reading does not restore. Of `recovery` only uncertain is lost: it is written as transient; of `retry_after` what is
not whole seconds from 1 to 3600; of `field` the notation of a JSON Pointer.
"""

_MEMBERS = MEMBERS
_WRITTEN = {each: each.value for each in Recovery} | {Recovery.UNCERTAIN: Recovery.TRANSIENT.value}


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

    An error that was received as one is passed on, repaired where it is not conformant. Any other fault is redacted, and
    its wait is made conformant.
    """
    fault = _outgoing(fault)
    error = _object(fault)
    if fault.errors and "errors" not in error:
        error["errors"] = [_object(part) for part in fault.errors]
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
    fault = with_allowed_codes(outgoing(fault, NAME))
    check_adcp_details(fault)
    return fault


def with_allowed_codes(fault: Fault) -> Fault:
    """
    Return a fault made here whose code, and those of its parts, AdCP allows a producer (A15); others are replaced, and logged.

    >>> with_allowed_codes(Fault(code="SOLD_OUT", vocabulary="adcp", recovery="correctable")).code
    'INVALID_REQUEST'
    """
    if _is_received(fault):
        return fault
    code = adcp_code(fault) if fault.vocabulary == NAME else fault.code
    if code != fault.code:
        logger("amends").warning(
            "AdCP allows no code %s, so %s is sent: define a class with adcp_code=, or set code_prefix= on the guard",
            outgoing_code(fault, NAME),
            code,
        )
    parts = tuple(with_allowed_codes(part) for part in fault.errors)
    unchanged = all(part is other for part, other in zip(parts, fault.errors, strict=True))
    return fault if code == fault.code and unchanged else replace(fault, code=code, errors=parts)


def _recovery(fault: Fault) -> str:
    """Return the class as AdCP has it. A host would repeat what is transient, whatever its message says."""
    if fault.in_doubt and fault.recovery is Recovery.UNCERTAIN:
        return Recovery.TERMINAL.value
    return _WRITTEN[fault.recovery]


def _is_received(fault: Fault) -> bool:
    return fault.origin is not None and fault.origin.dialect == NAME


def _object(fault: Fault) -> dict[str, Any]:
    received = _is_received(fault)
    error: dict[str, Any] = {
        "code": fault.code,
        "message": fault.message,
        "recovery": _WRITTEN[fault.recovery] if received else _recovery(fault),
    }
    if fault.retry_after is not None:
        error["retry_after"] = _seconds(fault.retry_after)
    if fault.field is not None:
        error["field"] = fault.field if received else property_path(fault.field)
    if fault.suggestions:
        error["suggestion"] = fault.suggestions[0]
    if fault.details is not None:
        error["details"] = fault.details
    for name, value in fault.extensions.items():
        # A received list of errors is kept as it was if not all of it could be read.
        if name not in _MEMBERS:
            error[name] = value
        elif name == "errors" and received:
            error[name] = [_repaired(item) for item in value] if isinstance(value, list) else value
    return {name: masked(value) for name, value in error.items()} if received else error


def _seconds(retry_after: float) -> float:
    """Return whole seconds from 1 to 3600, as a producer has to send them (A10)."""
    if 1 <= retry_after <= 3600 and retry_after == int(retry_after):
        return retry_after if isinstance(retry_after, int) else int(retry_after)
    return min(3600, max(1, ceil(retry_after)))


def _repaired(error: Any) -> Any:
    """Return a part that is passed on as it was received, with a recovery and a wait that are conformant."""
    if not isinstance(error, dict):
        return error
    changes: dict[str, Any] = {}
    if members.truthy(error.get("recovery")) and error["recovery"] not in (
        "transient",
        "correctable",
        "terminal",
    ):
        changes["recovery"] = "terminal"
    wait = finite(error.get("retry_after"))
    if wait is not None:
        changes["retry_after"] = _seconds(wait)
    return {**error, **changes}
