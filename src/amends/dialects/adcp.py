"""
AdCP's error object (S4).

- `recovery` is one of transient, correctable, terminal; uncertain is written as transient.
- `retry_after` is in seconds; a producer writes whole ones from 1 to 3600, a reader keeps what came.
- `suggestion` is one sentence: the first suggestion; the others are lost.
- a `recovery` nobody knows reads as terminal and is written back when the error is passed on (A12).
- members we do not know (`issues`, `buyer_reason`, …) are kept.
- everything S4 has no member for is in LOSSES.
"""

from __future__ import annotations

from math import ceil
from typing import Any

import msgspec
from msgspec.structs import replace

from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.hints import finite
from amends.core.vocabularies.adcp import VOCABULARY
from amends.core.wire import compact, deep
from amends.dialects import members
from amends.dialects.outgoing import check_adcp_details, outgoing

__all__ = ["LOSSES", "MAX_ERROR_BYTES", "NAME", "SPEC", "decode", "encode", "valid"]

NAME = "adcp"
SPEC = "AdCP 3.2 error object, as the transport error mapping carries it over MCP and A2A"
LOSSES = frozenset(
    {
        *("vocabulary", "executed", "origin", "actor", "suggestions", "strategy", "max_retries", "errors"),
        *("trace_id", "doc_uri", "type", "title", "status", "instance", "intent", "user_message"),
        *("attempt", "max_attempts", "recovery"),
    }
)
"""What does not come back, or not always: of `recovery` only uncertain (written as transient)."""

MAX_ERROR_BYTES = 4096
"""Compact UTF-8 JSON; a larger error is none (A7)."""

# Written compactly, no JSON grows more than fivefold (1e15 becomes 1000000000000000.0).
_SURELY_SMALL = MAX_ERROR_BYTES // 5

# Ordinary whole numbers need no closer look.
_WHOLE = 2**53
_EVERY_ERROR = frozenset({"code", "message", "recovery", "retry_after"})
_MEMBERS = _EVERY_ERROR | {"field", "suggestion", "details"}
_RECOVERY = {
    "transient": Recovery.TRANSIENT,
    "correctable": Recovery.CORRECTABLE,
    "terminal": Recovery.TERMINAL,
}
_ROWS = VOCABULARY.rows
_UNKNOWN = VOCABULARY.unknown
_BARE = Origin("adcp")
_write = msgspec.json.Encoder().encode


def valid(error: Any, within: int | None = None) -> bool:
    """
    Whether a value is a structured error at all (A7): an object with a code, small, not nested without end.

    Args:
        error: the value.
        within: the bytes of the document it was read from, where that is known. What stands in a small document
            is small itself, and need not be measured.

    """
    if error.__class__ is not dict:
        return False
    code = error.get("code")
    if code.__class__ is not str or not 0 < len(code) <= 64:
        return False
    if within is not None and within <= _SURELY_SMALL:
        return True
    for value in error.values():
        # Before it is written: a value that holds itself twice on every level would be written without end.
        if value.__class__ is dict or value.__class__ is list:
            if deep(error):
                return False
            break
    try:
        return len(_write(error)) <= MAX_ERROR_BYTES
    except (UnicodeError, TypeError, ValueError, OverflowError, RecursionError):
        # What msgspec cannot write may still be JSON: a lone surrogate is.
        written = compact(error)
        return written is not None and len(written) <= MAX_ERROR_BYTES


def decode(data: Any) -> Fault | None:
    """The Fault in an error object, or None when it is not a valid one."""
    return fault_of(data, _BARE) if valid(data) else None


def fault_of(error: dict[str, Any], origin: Origin, executed: Executed | None = None) -> Fault:
    """The Fault in an error object already found valid. `executed` is what its carrier knows better."""
    get = error.get
    code: str = error["code"]
    row = _ROWS.get(code, _UNKNOWN)
    said = get("recovery")
    recovery = _RECOVERY.get(said) if said.__class__ is str else None
    odd = False
    if recovery is None:
        # A12: nothing said → the table; something nobody knows → terminal. JavaScript's falsy values say nothing.
        odd = (bool(said) and said == said) or said.__class__ is dict or said.__class__ is list  # noqa: PLR0124 - NaN
        recovery = Recovery.TERMINAL if odd else row.recovery
    message = get("message")
    wait = get("retry_after")
    found = Fault(
        code=code,
        message=message if message.__class__ is str else "",
        recovery=recovery,
        vocabulary="adcp",
        retry_after=wait
        if wait is None or (wait.__class__ is int and -_WHOLE < wait < _WHOLE)
        else finite(wait),
        actor=row.actor if recovery is row.recovery else row.actor_under(recovery),
        executed=executed or row.executed,
        origin=origin,
    )
    # Most errors say no more than these four, and where all four were read there is no room for others.
    all_read = message is not None and said is not None and wait is not None
    if not odd and len(error) <= 4 and (all_read or _EVERY_ERROR.issuperset(error)):
        return found
    return _with_the_rest(found, error, odd=odd)


def _with_the_rest(fault: Fault, error: dict[str, Any], *, odd: bool) -> Fault:
    """The same fault with the members only some errors have, and those we do not know."""
    suggestion = members.text(error.get("suggestion"))
    extensions = {name: value for name, value in error.items() if name not in _MEMBERS}
    if odd:
        extensions["recovery"] = error["recovery"]
    return replace(
        fault,
        field=members.text(error.get("field")),
        suggestions=() if suggestion is None else (suggestion,),
        details=members.mapping(error.get("details")),
        extensions=extensions,
    )


def encode(fault: Fault) -> dict[str, Any]:
    """
    The error object.

    What came as one is passed on as it came. Anything else we say ourselves: it is redacted and its wait made
    conformant.
    """
    own = fault.origin is None or fault.origin.dialect != NAME
    if own:
        fault = outgoing(fault, NAME)
        check_adcp_details(fault)
    error: dict[str, Any] = {"code": fault.code, "message": fault.message, "recovery": _written(fault)}
    if fault.retry_after is not None:
        error["retry_after"] = _seconds(fault.retry_after) if own else fault.retry_after
    if fault.field is not None:
        error["field"] = fault.field
    if fault.suggestions:
        error["suggestion"] = fault.suggestions[0]
    if fault.details is not None:
        error["details"] = fault.details
    for name, value in fault.extensions.items():
        if name not in _MEMBERS:
            error[name] = value
    return error


def _written(fault: Fault) -> Any:
    if fault.recovery is Recovery.UNCERTAIN:
        return "transient"
    if fault.recovery is Recovery.TERMINAL and fault.origin is not None and fault.origin.dialect == NAME:
        return fault.extensions.get("recovery", "terminal")
    return fault.recovery.value


def _seconds(retry_after: float) -> int:
    """A10: a producer sends whole seconds from 1 to 3600."""
    return min(3600, max(1, ceil(retry_after)))
