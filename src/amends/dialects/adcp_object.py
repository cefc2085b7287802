"""
Reading AdCP's error object (S4): an object that is valid (A7), and the Fault in it.

Whether an object is one does not depend on where it was found; `amends.carriers` finds it in responses.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.hints import NO_INVITATION, finite
from amends.core.vocabularies.adcp import VOCABULARY
from amends.core.wire import compact, plain
from amends.dialects import members
from amends.dialects.adcp_size import MAX_ERROR_BYTES
from amends.dialects.members import CODE_BYTES

__all__ = ["BARE", "KEY", "MAX_PARTS", "MEMBERS", "NAME", "fault_of", "parts_in", "plain_error", "valid"]

NAME = "adcp"
KEY = "adcp_error"
"""The member of a response that holds the error of a failed call."""
MAX_PARTS = 100
"""Nested errors that are read. Others are left out."""

# Compact JSON is at most five times as long as what it was parsed from (1e15 becomes 1000000000000000.0). Without this
# bound and without `within`, extraction from bytes takes 4.8 instead of 3.9 times msgspec's decode (the target is 4).
_SURELY_SMALL = MAX_ERROR_BYTES // 5

MEMBERS = frozenset(
    {"code", "message", "recovery", "retry_after", "field", "suggestion", "details", "errors"}
)
"""The members that AdCP defines, and `errors`."""
_RECOVERY = {
    "transient": Recovery.TRANSIENT,
    "correctable": Recovery.CORRECTABLE,
    "terminal": Recovery.TERMINAL,
}
BARE = Origin(NAME)
_TRANSIENT, _NO = Recovery.TRANSIENT, Executed.NO  # looking up a member of an enum takes 0.06 µs


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
    if not isinstance(code, str) or not 0 < len(code) <= CODE_BYTES:
        return None
    if within is not None and within <= _SURELY_SMALL:
        return error
    written = compact(error)
    return error if written is not None and len(written) <= MAX_ERROR_BYTES else None


def fault_of(
    error: dict[str, Any], origin: Origin, executed: Executed | None = None, *, fatal: bool = True
) -> Fault:
    """
    Return the Fault in what `plain_error` returned.

    Args:
        error: the error object.
        origin: where it was found.
        executed: used instead of the code's own, if given.
        fatal: whether the response that it was found in reports a failure.

    """
    code: str = error["code"]
    row = VOCABULARY.rows.get(code) or VOCABULARY.unknown
    received = error.get("recovery")
    recovery = _RECOVERY.get(received) if isinstance(received, str) else None
    unknown_recovery = recovery is None and members.truthy(received)
    wait = error.get("retry_after")
    if wait is not None:
        wait = finite(wait)
    message = error.get("message")
    # M3: an explicit invitation to send the same request again. A recovery from our table is none.
    invited = wait is not None and recovery is _TRANSIENT and code not in NO_INVITATION
    if recovery is None:
        # A12: without a recovery, the table's; an unknown one is terminal.
        recovery = Recovery.TERMINAL if unknown_recovery else row.recovery
    fault = Fault(
        code=code,
        message=message if isinstance(message, str) else "",
        recovery=recovery,
        vocabulary=NAME,
        retry_after=wait,
        actor=row.actor if recovery is row.recovery else row.actor_under(recovery),
        executed=executed or (_NO if invited else row.executed),
        fatal=fatal,
        origin=origin,
    )
    common = 1 + (message is not None) + (received is not None) + (wait is not None)
    if len(error) == common and not unknown_recovery:
        # Most errors have no other members. With all of them read for every error, extraction takes 1.8 instead of
        # 1.4 µs (bench/extraction.py; the target, 0.35 of adcp's time, is 1.7 there).
        return fault
    suggestion = members.text(error.get("suggestion"))
    extensions = members.unknown(error, MEMBERS)
    if unknown_recovery:
        # Kept to be passed on.
        extensions["recovery"] = received
    parts: tuple[Fault, ...] = ()
    if "errors" in error:
        parts = parts_in(error["errors"], origin, executed, fatal=fatal)
        if not isinstance(error["errors"], list) or len(parts) != len(error["errors"]):
            # Not all of them can be written again from the parts.
            extensions["errors"] = error["errors"]
    return replace(
        fault,
        field=members.text(error.get("field")),
        suggestions=() if suggestion is None else (suggestion,),
        details=members.mapping(error.get("details")),
        errors=parts,
        trace_id=members.identifier(extensions.get("trace_id")),
        extensions=extensions,
    )


def parts_in(
    errors: Any, origin: Origin, executed: Executed | None = None, *, fatal: bool = True
) -> tuple[Fault, ...]:
    """Return the valid errors of a list, without their own parts."""
    if not isinstance(errors, list):
        return ()
    found = (plain_error(item) for item in errors[:MAX_PARTS])
    return tuple(
        fault_of(
            {name: value for name, value in item.items() if name != "errors"}, origin, executed, fatal=fatal
        )
        for item in found
        if item is not None
    )
