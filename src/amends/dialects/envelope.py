"""
A command line's envelope (S2): {ok, error, meta}.

- `retryable` is true, false or "maybe" (uncertain). If it is false, `fix_required` says what has to change first: the
  first suggestion, or for a correctable error that of the code. `recovery` says whether the caller can change it.
- `retry_after` is `retry_after_ms`, rounded up; a rate limit always has one (C3).
- `attempt`, `max_attempts` and `trace_id` are in `meta`; a nested error has no `meta`, so there they are members.
- `executed` is taken as read. Without it, `retryable: true` with `retry_after_ms` means that the command had no effect
  (`amends.core.hints`).
- The extra members `executed`, `recovery`, `suggestions`, `field`, `details`, `errors`, `actor`, `user_message` and those of a
  problem carry the other fields, so nothing else is lost. For the exit code see `amends.core.exits`.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from amends.core.crosswalk import source_row
from amends.core.enums import Executed, Recovery
from amends.core.exits import Exit
from amends.core.fault import Fault, Origin
from amends.core.hints import excluded, finite
from amends.core.vocabularies.cli import VOCABULARY
from amends.core.vocabulary import Row
from amends.dialects import members
from amends.dialects.outgoing import outgoing
from amends.dialects.problem import EFFECT_UNKNOWN, MAX_LEVELS, MAX_PARTS, milliseconds
from amends.dialects.record import MEMBER, attach, is_record, record_of
from amends.proof import Claim, Proof, rests_on

__all__ = ["LOSSES", "NAME", "SPEC", "decode", "document", "encode", "encode_error", "error_of"]

NAME = "envelope"
SPEC = "the CLI agent spec, challenge 19: retry hints in the JSON envelope of a command line"
LOSSES = frozenset({"vocabulary", "origin", "fatal"})

_MEMBERS: members.Readers = {
    "code": ("code", members.code),
    "message": ("message", members.text),
    "retryable": None,
    "retry_after_ms": None,
    "retry_strategy": ("strategy", members.text),
    "max_retries": ("max_retries", members.whole),
    "fix_required": None,
    "recovery": ("recovery", members.recovery),
    "suggestions": None,
    "suggestion": None,
    "field": ("field", members.text),
    "details": ("details", members.mapping),
    "errors": None,
    "doc_uri": ("doc_uri", members.text),
    "type": ("type", members.text),
    "title": ("title", members.text),
    "status": ("status", lambda value: members.whole(value, 100)),
    "instance": ("instance", members.text),
    "intent": ("intent", members.mapping),
    "user_message": ("user_message", members.text),
    "actor": ("actor", members.actor),
    "executed": ("executed", members.executed),
    # In `meta`; a nested error has no `meta`, so there they are members.
    "trace_id": ("trace_id", members.text),
    "attempt": ("attempt", members.positive),
    "max_attempts": ("max_attempts", members.positive),
}
_META = {name: _MEMBERS[name] for name in ("trace_id", "attempt", "max_attempts")}
_BARE = Origin("envelope", "envelope")


def error_of(data: Any) -> dict[str, Any] | None:
    """Return the error object of an envelope, or a bare one; None if there is none with a code or a verdict."""
    if not isinstance(data, dict):
        return None
    error = data.get("error", data if "ok" not in data else None)
    return error if isinstance(error, dict) and _is_error(error) else None


def _is_error(error: dict[str, Any]) -> bool:
    """Whether an object has what an error needs: a code, or whether to retry."""
    return members.code(error.get("code")) is not None or _verdict(error.get("retryable")) is not None


def decode(data: Any, *, exit: Exit | None = None, origin: Origin = _BARE) -> Fault | None:
    """
    Return the Fault in an envelope or its bare error, or None.

    Args:
        data: the envelope.
        exit: what the exit code means in the tool's profile; used where the envelope does not decide.
        origin: where it was found.

    """
    envelope = members.plain_mapping(data)
    if envelope is None or (envelope.get("ok") is True and envelope.get("error") is None):
        return None
    error = error_of(envelope)
    return None if error is None else fault_of(error, envelope.get("meta"), exit, origin)


def fault_of(error: dict[str, Any], meta: Any, exit: Exit | None = None, origin: Origin = _BARE) -> Fault:
    """Return the Fault in what `error_of` returned, with the envelope's `meta`; both of plain values."""
    return _fault(error, members.mapping(meta) or {}, exit, origin, [MAX_PARTS], 0)


def _fault(
    error: dict[str, Any],
    meta: dict[str, Any],
    exit: Exit | None,
    origin: Origin,
    room: list[int],
    level: int,
) -> Fault:
    get = error.get
    fields, extensions = members.sort(error, _MEMBERS)
    fields.update(members.sort(meta, _META)[0])
    received = extensions.pop(MEMBER, None) if is_record(extensions.get(MEMBER)) else None
    if "recovery" in fields and "code" in fields and not origin.complete:
        origin = replace(origin, complete=True)
    code = fields.setdefault("code", exit.code if exit else "INTERNAL_ERROR")
    known = VOCABULARY.rows.get(code)
    # For a code that is not one of the vocabulary, the exit code's row.
    row = known or (VOCABULARY.row(exit.code) if exit else VOCABULARY.unknown)
    fix = members.text(get("fix_required"))
    if "recovery" not in fields:
        fields["recovery"] = _recovery(get("retryable"), known, row, fix)
    recovery = fields["recovery"]
    if "actor" not in fields:
        fields["actor"] = row.actor_under(recovery)
    wait = _seconds(get("retry_after_ms"))
    if "executed" not in fields:
        invited = recovery is Recovery.TRANSIENT and get("retryable") is True and bool(wait)
        fields["executed"] = _executed(error, code, known, exit, invited=invited)
    fault = Fault(
        vocabulary="cli",
        retry_after=wait,
        suggestions=_suggestions(error, fix),
        errors=_children(get("errors"), origin, room, level),
        in_doubt=code == EFFECT_UNKNOWN,
        extensions=extensions,
        origin=origin,
        **fields,
    )
    return fault if received is None else attach(fault, received)


def _seconds(milliseconds: Any) -> float | None:
    wait = finite(milliseconds)
    return wait / 1000 if wait is not None and wait >= 0 else None


def _children(value: Any, origin: Origin, room: list[int], level: int) -> tuple[Fault, ...]:
    """Return the nested errors of an error, within the bounds that nested problems have."""
    if not isinstance(value, list) or level >= MAX_LEVELS:
        return ()
    found = []
    for item in value:
        if room[0] > 0 and isinstance(item, dict) and _is_error(item):
            room[0] -= 1
            found.append(_fault(item, {}, None, origin, room, level + 1))
    return tuple(found)


def _verdict(retryable: Any) -> Any:
    """Return `retryable` if it is true, false or "maybe", else None."""
    return retryable if isinstance(retryable, bool) or members.text(retryable) == "maybe" else None


def _recovery(retryable: Any, known: Row | None, row: Row, fix: str | None) -> Recovery:
    """Apply M1's rules for a command line. `row` is the exit code's where the code is unknown."""
    if retryable is False:
        correctable = fix is not None or (known is not None and known.recovery is Recovery.CORRECTABLE)
        return Recovery.CORRECTABLE if correctable else Recovery.TERMINAL
    if retryable is True:
        return Recovery.TRANSIENT
    return Recovery.UNCERTAIN if _verdict(retryable) is not None else row.recovery


def _suggestions(error: dict[str, Any], fix: str | None) -> tuple[str, ...]:
    if isinstance(error.get("suggestions"), list):
        return members.texts(error["suggestions"])
    return tuple(item for item in (fix, members.text(error.get("suggestion"))) if item is not None)


@rests_on(Claim.NOT_HAPPENED, Proof.INVITATION, Proof.STATED, Proof.STATUS)
def _executed(
    error: dict[str, Any], code: str, known: Row | None, exit: Exit | None, *, invited: bool
) -> Executed:
    """M3, for an error that does not state it: an explicit invitation, then the row or the exit code."""
    if invited and not excluded(
        code, members.whole(error.get("status")), intent=error.get("intent") is not None
    ):
        return Executed.NO
    if members.text(error.get("phase")) == "validation":
        # In the newer table this means that nothing has run yet.
        return Executed.NO
    if known is not None:
        return known.executed
    return exit.executed if exit else Executed.MAYBE


def encode(fault: Fault) -> dict[str, Any]:
    """Return the whole envelope of a failure."""
    return document(outgoing(fault, NAME))


def document(fault: Fault) -> dict[str, Any]:
    """Return the envelope of a fault that has passed `outgoing`."""
    return {"ok": False, "error": _error(fault), "meta": _meta(fault)}


def _meta(fault: Fault) -> dict[str, Any]:
    meta = {"attempt": fault.attempt, "max_attempts": fault.max_attempts, "trace_id": fault.trace_id}
    return {name: value for name, value in meta.items() if value is not None}


def encode_error(fault: Fault) -> dict[str, Any]:
    """Return the error object alone."""
    return _error(outgoing(fault, NAME))


def _retryable(fault: Fault) -> bool | str:
    """M2: "maybe" for uncertain, except a command whose effect has to be verified before it runs again."""
    if fault.recovery is Recovery.UNCERTAIN and fault.code != EFFECT_UNKNOWN:
        return "maybe"
    return fault.recovery is Recovery.TRANSIENT


def _error(fault: Fault) -> dict[str, Any]:
    recovery = fault.recovery
    wait = milliseconds(fault.retry_after)
    row = source_row(fault)
    if wait is None and fault.origin is None and fault.code == "RATE_LIMITED":
        # C3: a rate limit always has a wait. Readers use the same default.
        wait = milliseconds(VOCABULARY.rows["RATE_LIMITED"].wait)
    retryable, correctable = _retryable(fault), recovery is Recovery.CORRECTABLE
    steps = fault.suggestions or ((row.suggestion_under(recovery),) if correctable else ())
    written: dict[str, Any] = {
        "code": fault.code,
        "message": fault.message,
        "retryable": retryable,
        "retry_after_ms": wait,
        "retry_strategy": fault.strategy,
        "max_retries": fault.max_retries,
        "fix_required": steps[0] if steps and retryable is False else None,
        "recovery": recovery.value,
        # Also written if empty when `fix_required` is the code's, so that a reader does not take it for a suggestion.
        "suggestions": list(fault.suggestions) if fault.suggestions or correctable else None,
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
    if fault.raised is not None:
        error[MEMBER] = record_of(fault, NAME)
    for name, value in fault.extensions.items():
        if name not in _MEMBERS:
            error[name] = value
    return error
