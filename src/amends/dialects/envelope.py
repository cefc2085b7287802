"""
A command line's envelope (S2): {ok, error, meta}.

- `retryable` is true, false or "maybe" (uncertain); `fix_required` says what has to change where a retry unchanged
  cannot help: the first suggestion, or the code's own.
- `retry_after` is `retry_after_ms`, rounded up; a rate limit always has one (C3).
- `attempt`, `max_attempts` and `trace_id` stand in `meta`; in nested errors, which have none, among their members.
- `executed` is believed as read. Without it, `retryable: true` with `retry_after_ms` means that the command had no effect
  (`amends.core.invitation`).
- our extra members `recovery`, `suggestions`, `field`, `details`, `errors`, `actor`, `executed`, `user_message` and the
  problem members carry the rest, so nothing else is lost. The exit code is the process's (`amends.core.exits`).
"""

from __future__ import annotations

from typing import Any

from amends.core.crosswalk import source_row
from amends.core.enums import (
    CORRECTABLE,
    MAYBE_EXECUTED,
    NOT_EXECUTED,
    TERMINAL,
    TRANSIENT,
    UNCERTAIN,
    Actor,
    Executed,
    Recovery,
)
from amends.core.exits import Exit
from amends.core.fault import Fault, Origin
from amends.core.hints import finite
from amends.core.invitation import excluded
from amends.core.vocabularies.cli import VOCABULARY
from amends.core.vocabulary import Row
from amends.dialects import members
from amends.dialects.outgoing import outgoing
from amends.dialects.problem import EFFECT_UNKNOWN, MAX_LEVELS, MAX_PARTS, milliseconds

__all__ = ["LOSSES", "NAME", "SPEC", "decode", "encode", "encode_error", "error_of"]

NAME = "envelope"
SPEC = "S2, challenge 19: retry hints in the JSON envelope of a command line"
LOSSES = frozenset({"vocabulary", "origin"})

_MEMBERS: members.Readers = {
    "code": None,
    "message": ("message", str),
    "retryable": None,
    "retry_after_ms": None,
    "retry_strategy": ("strategy", str),
    "max_retries": ("max_retries", members.whole),
    "fix_required": None,
    "recovery": None,
    "suggestions": None,
    "suggestion": None,
    "field": ("field", str),
    "details": ("details", dict),
    "errors": None,
    "doc_uri": ("doc_uri", str),
    "type": ("type", str),
    "title": ("title", str),
    "status": ("status", lambda value: members.whole(value, 100)),
    "instance": ("instance", str),
    "intent": ("intent", dict),
    "user_message": ("user_message", str),
    "actor": None,
    "executed": None,
    # These three stand in `meta`; in a nested error, which has none, beside the others.
    "trace_id": ("trace_id", str),
    "attempt": ("attempt", members.positive),
    "max_attempts": ("max_attempts", members.positive),
}
_META = {name: _MEMBERS[name] for name in ("trace_id", "attempt", "max_attempts")}
_RECOVERY = {item.value: item for item in Recovery}
_ACTORS = {item.value: item for item in Actor}
_EXECUTED = {item.value: item for item in Executed}
_BARE = Origin("envelope", "envelope")


def error_of(data: Any) -> dict[str, Any] | None:
    """The error object an envelope holds, or a bare one; None when there is none that says anything."""
    if data.__class__ is not dict:
        return None
    error = data.get("error", data if "ok" not in data else None)
    return error if error.__class__ is dict and _says(error) else None


def _says(error: dict[str, Any]) -> bool:
    """Whether an object says enough to be an error: a code, or whether to try again."""
    return members.code(error.get("code")) is not None or _verdict(error.get("retryable")) is not None


def decode(data: Any, *, exit: Exit | None = None, origin: Origin = _BARE) -> Fault | None:
    """
    The Fault in an envelope or its bare error, or None.

    Args:
        data: the envelope.
        exit: what the exit code says in the tool's profile; it decides where the envelope does not.
        origin: where it was found.

    """
    if not members.shallow(data) or (data.get("ok") is True and data.get("error") is None):
        return None
    error = error_of(data)
    return None if error is None else fault_of(error, data.get("meta"), exit, origin)


def fault_of(error: dict[str, Any], meta: Any, exit: Exit | None = None, origin: Origin = _BARE) -> Fault:
    """The Fault in an error object already known to be one and to be bounded, with the envelope's `meta`."""
    said = meta if meta.__class__ is dict else {}
    usual = None if said else _usual(error, exit, origin)
    return usual or _fault(error, said, exit, origin, [MAX_PARTS], 0)


def _usual(error: dict[str, Any], exit: Exit | None, origin: Origin) -> Fault | None:
    """What `_fault` would give for an error of the five members most have, and at a third of its price; else None."""
    get = error.get
    code, message, retryable = get("code"), get("message"), get("retryable")
    fix, milliseconds = get("fix_required"), get("retry_after_ms")
    seen = (code is not None) + (message is not None) + (retryable is not None)
    if len(error) != seen + (fix is not None) + (milliseconds is not None):
        return None
    code, known, row = _facts(code, exit)
    if fix.__class__ is not str:
        fix = None
    recovery = _recovery(retryable, known, row, fix)
    return Fault(
        code=code,
        message=message if message.__class__ is str else "",
        recovery=recovery,
        vocabulary="cli",
        retry_after=None if milliseconds is None else _seconds(milliseconds),
        suggestions=() if fix is None else (fix,),
        actor=row.actor if recovery is row.recovery else row.actor_under(recovery),
        executed=_executed(error, recovery, known, exit),
        origin=origin,
    )


def _facts(said: Any, exit: Exit | None) -> tuple[str, Row | None, Row]:
    """The code, its row where it is S2's own, and the row that speaks where it is not: the exit code's."""
    code = members.code(said) or (exit.code if exit else "INTERNAL_ERROR")
    known = VOCABULARY.rows.get(code)
    return code, known, known or (VOCABULARY.row(exit.code) if exit else VOCABULARY.unknown)


def _seconds(milliseconds: Any) -> float | None:
    wait = finite(milliseconds)
    return wait / 1000 if wait is not None and wait >= 0 else None


def _fault(
    error: dict[str, Any],
    meta: dict[str, Any],
    exit: Exit | None,
    origin: Origin,
    room: list[int],
    level: int,
) -> Fault:
    get = error.get
    code, known, row = _facts(get("code"), exit)
    fix = members.text(get("fix_required"))
    said, actor = get("recovery"), get("actor")
    recovery = (_RECOVERY.get(said) if said.__class__ is str else None) or _recovery(
        get("retryable"), known, row, fix
    )
    fields, extensions = members.sort(error, _MEMBERS)
    if meta:
        fields.update(members.sort(meta, _META)[0])
    nested = get("errors")
    return Fault(
        code=code,
        recovery=recovery,
        vocabulary="cli",
        retry_after=_seconds(get("retry_after_ms")),
        suggestions=_suggestions(error, fix),
        errors=_children(nested, origin, room, level) if nested else (),
        actor=(_ACTORS.get(actor) if actor.__class__ is str else None) or row.actor_under(recovery),
        executed=_executed(error, recovery, known, exit),
        extensions=extensions,
        origin=origin,
        **fields,
    )


def _children(value: Any, origin: Origin, room: list[int], level: int) -> tuple[Fault, ...]:
    """The nested errors of an error, under the bounds nested problems have."""
    if value.__class__ is not list or level >= MAX_LEVELS:
        return ()
    found = []
    for item in value:
        if room[0] > 0 and item.__class__ is dict and _says(item):
            room[0] -= 1
            found.append(_fault(item, {}, None, origin, room, level + 1))
    return tuple(found)


def _verdict(retryable: Any) -> Any:
    """`retryable` when it is one of S2's three values, else None."""
    return retryable if retryable.__class__ is bool or retryable == "maybe" else None


def _recovery(retryable: Any, known: Row | None, row: Row, fix: str | None) -> Recovery:
    """M1's rules for a command line, first one that applies. `row` is the exit code's where the code is unknown."""
    if retryable is False:
        correctable = fix is not None or (known is not None and known.recovery is CORRECTABLE)
        return CORRECTABLE if correctable else TERMINAL
    if retryable is True:
        return TRANSIENT
    return UNCERTAIN if _verdict(retryable) is not None else row.recovery


def _suggestions(error: dict[str, Any], fix: str | None) -> tuple[str, ...]:
    if error.get("suggestions").__class__ is list:
        return members.texts(error["suggestions"])
    return tuple(item for item in (fix, members.text(error.get("suggestion"))) if item is not None)


def _executed(error: dict[str, Any], recovery: Recovery, known: Row | None, exit: Exit | None) -> Executed:
    """M3: what the error says, then an explicit invitation, then the row or the exit code."""
    said = error.get("executed")
    if said.__class__ is str and said in _EXECUTED:
        return _EXECUTED[said]
    if error.get("phase") == "validation":
        # The newer table's promise: nothing has run yet.
        return NOT_EXECUTED
    if recovery is TRANSIENT and error.get("retryable") is True and _seconds(error.get("retry_after_ms")):
        code, status = _facts(error.get("code"), exit)[0], error.get("status")
        if not excluded(code, members.whole(status), intent=error.get("intent") is not None):
            return NOT_EXECUTED
    if known is not None:
        return known.executed
    return exit.executed if exit else MAYBE_EXECUTED


def encode(fault: Fault) -> dict[str, Any]:
    """Return the whole envelope of a failure."""
    fault = outgoing(fault, NAME)
    return {"ok": False, "error": _error(fault), "meta": _meta(fault)}


def _meta(fault: Fault) -> dict[str, Any]:
    meta = {"attempt": fault.attempt, "max_attempts": fault.max_attempts, "trace_id": fault.trace_id}
    return {name: value for name, value in meta.items() if value is not None}


def encode_error(fault: Fault) -> dict[str, Any]:
    """Return the error object alone."""
    return _error(outgoing(fault, NAME))


def _retryable(fault: Fault) -> bool | str:
    """M2: "maybe" for uncertain, except a command whose effect has to be verified before it runs again."""
    if fault.recovery is UNCERTAIN and fault.code != EFFECT_UNKNOWN:
        return "maybe"
    return fault.recovery is TRANSIENT


def _error(fault: Fault) -> dict[str, Any]:
    recovery = fault.recovery
    wait = milliseconds(fault.retry_after)
    row = source_row(fault)
    if wait is None and fault.origin is None and fault.code == "RATE_LIMITED":
        # C3: a rate limit always says how long; the default is what a reader would wait anyway.
        wait = milliseconds(VOCABULARY.rows["RATE_LIMITED"].wait)
    fix = recovery is CORRECTABLE
    written: dict[str, Any] = {
        "code": fault.code,
        "message": fault.message,
        "retryable": _retryable(fault),
        "retry_after_ms": wait,
        "retry_strategy": fault.strategy,
        "max_retries": fault.max_retries,
        "fix_required": (fault.suggestions[0] if fault.suggestions else row.suggestion) if fix else None,
        "recovery": recovery.value,
        # Written also when empty beside a fix of ours, so that a reader does not take ours for the producer's.
        "suggestions": list(fault.suggestions) if fault.suggestions or fix else None,
        "field": fault.field,
        "details": fault.details,
        "errors": [_error(child) | _meta(child) for child in fault.errors] or None,
        "doc_uri": fault.doc_uri,
        "type": fault.type,
        "title": fault.title,
        "status": fault.status,
        "instance": fault.instance,
        "intent": fault.intent,
        "user_message": fault.user_message,
        "actor": fault.actor.value,
        "executed": fault.executed.value,
    }
    error = {name: value for name, value in written.items() if value is not None}
    for name, value in fault.extensions.items():
        if name not in _MEMBERS:
            error[name] = value
    return error
