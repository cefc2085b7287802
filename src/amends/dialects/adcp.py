"""
AdCP's error object (S4).

- `recovery` is one of transient, correctable, terminal; uncertain is written as transient.
- `retry_after` is in seconds. A producer writes whole seconds from 1 to 3600; a reader keeps the received value.
- `suggestion` is the first suggestion; the others are lost.
- An unknown `recovery` is read as terminal, and written unchanged when the error is passed on (A12).
- `recovery: transient` together with a `retry_after` is an explicit invitation to repeat: the call had no effect
  (`amends.core.invitation`).
- Unknown members (`issues`, `buyer_reason`, …) are kept.
- Fields without a member in AdCP are in LOSSES.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from msgspec.structs import replace

from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.hints import finite
from amends.core.invitation import excluded
from amends.core.vocabularies.adcp import VOCABULARY
from amends.core.wire import compact, plain
from amends.dialects import members
from amends.dialects.outgoing import check_adcp_details, outgoing

__all__ = ["LOSSES", "MAX_ERROR_BYTES", "NAME", "SPEC", "decode", "encode", "plain_error", "valid"]

NAME = "adcp"
SPEC = "AdCP 3.2 error object, as the transport error mapping carries it over MCP and A2A"
LOSSES = frozenset(
    {
        *("vocabulary", "executed", "origin", "actor", "suggestions", "strategy", "max_retries", "errors"),
        *("trace_id", "doc_uri", "type", "title", "status", "instance", "intent", "user_message"),
        *("attempt", "max_attempts", "recovery"),
    }
)
"""Fields that reading does not restore. Of `recovery` only uncertain is lost: it is written as transient."""

MAX_ERROR_BYTES = 4096
"""Size of the compact UTF-8 JSON. A larger object is not an error (A7)."""

# Compact JSON is at most five times as long as what it was parsed from (1e15 becomes 1000000000000000.0). Without this
# bound and without `within`, extraction from bytes takes 4.8 instead of 3.9 times msgspec's decode (the target is 4).
_SURELY_SMALL = MAX_ERROR_BYTES // 5

# Most errors have only these members. With the others read for every error, extraction takes 0.40 of adcp's time instead
# of 0.32 (bench/extraction.py; the target is 0.35).
_COMMON = frozenset({"code", "message", "recovery", "retry_after"})
_MEMBERS = _COMMON | {"field", "suggestion", "details"}
_RECOVERY = {
    "transient": Recovery.TRANSIENT,
    "correctable": Recovery.CORRECTABLE,
    "terminal": Recovery.TERMINAL,
}
BARE = Origin("adcp")


def valid(error: Any) -> bool:
    """Whether a value is a structured error (A7): an object with a code, at most 4096 bytes, not nested too deep."""
    return plain_error(error) is not None


def plain_error(error: Any, within: int | None = None) -> dict[str, Any] | None:
    """
    Return a structured error (A7) as plain values, or None if the value is not one.

    Args:
        error: the value.
        within: size in bytes of the document that the error was parsed from, if it was. Parsed values are plain,
            and an error in a small document is small.

    """
    if within is None:
        error = plain(error)
    if not isinstance(error, dict):
        return None
    code = error.get("code")
    if not isinstance(code, str) or not 0 < len(code) <= members.CODE_BYTES:
        return None
    if within is not None and within <= _SURELY_SMALL:
        return error
    written = compact(error)
    return error if written is not None and len(written) <= MAX_ERROR_BYTES else None


def decode(data: Any) -> Fault | None:
    """Return the Fault in an error object, or None if it is not a valid one."""
    error = plain_error(data)
    return None if error is None else fault_of(error, BARE)


def fault_of(error: dict[str, Any], origin: Origin, executed: Executed | None = None) -> Fault:
    """Return the Fault in what `plain_error` returned. `executed` is used instead of the code's own, if given."""
    code: str = error["code"]
    row = VOCABULARY.row(code)
    received = error.get("recovery")
    recovery = _RECOVERY.get(received) if isinstance(received, str) else None
    unknown_recovery = recovery is None and members.truthy(received)
    if recovery is None:
        # A12: without a recovery, the table's; an unknown one is terminal.
        recovery = Recovery.TERMINAL if unknown_recovery else row.recovery
    wait = finite(error.get("retry_after"))
    if executed is None and received == "transient" and wait is not None and not excluded(code):
        # M3: an explicit invitation to send the same request again. A recovery from our table is none.
        executed = Executed.NO
    message = error.get("message")
    fault = Fault(
        code=code,
        message=message if isinstance(message, str) else "",
        recovery=recovery,
        vocabulary=NAME,
        retry_after=wait,
        actor=row.actor if recovery is row.recovery else row.actor_under(recovery),
        executed=executed or row.executed,
        origin=origin,
    )
    if _COMMON.issuperset(error) and not unknown_recovery:
        return fault
    suggestion = members.text(error.get("suggestion"))
    extensions = members.unknown(error, _MEMBERS)
    if unknown_recovery:
        # Kept to be passed on.
        extensions["recovery"] = received
    return replace(
        fault,
        field=members.text(error.get("field")),
        suggestions=() if suggestion is None else (suggestion,),
        details=members.mapping(error.get("details")),
        extensions=extensions,
    )


def encode(fault: Fault) -> dict[str, Any]:
    """
    Return the error object.

    An error that was received as one is passed on unchanged. Any other fault is redacted, and its wait is made
    conformant.
    """
    own = fault.origin is None or fault.origin.dialect != NAME
    if own:
        fault = outgoing(fault, NAME)
        check_adcp_details(fault)
    error: dict[str, Any] = {
        "code": fault.code,
        "message": fault.message,
        "recovery": _recovery_member(fault),
    }
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


def _recovery_member(fault: Fault) -> Any:
    if fault.recovery is Recovery.UNCERTAIN:
        return "transient"
    if fault.recovery is Recovery.TERMINAL and fault.origin is not None and fault.origin.dialect == NAME:
        return fault.extensions.get("recovery", "terminal")
    return fault.recovery.value


def _seconds(retry_after: float) -> int:
    """Return whole seconds from 1 to 3600, as a producer has to send them (A10)."""
    return min(3600, max(1, ceil(retry_after)))
