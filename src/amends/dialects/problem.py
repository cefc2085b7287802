"""
Problem details for agents: RFC 9457 with Agent Surface's extensions (S1).

- `message` is `detail`; `retry_after` is `retry_after_ms`, rounded up to whole milliseconds.
- `title`, `status` and `detail` are always written, also in nested problems. If the fault has none, they come from the
  code's row.
- `is_retriable` says whether the same request might succeed: true for transient and uncertain, with `max_retries` 1 for
  an uncertain fault made here. It is false for EFFECT_UNKNOWN, whose effect has to be verified first.
- `executed` is taken as read. Without it, `is_retriable: true` with a wait in the body means that the request had no
  effect (`amends.core.hints`).
- A nested problem leaves out what its status says: see `_part`.
- The extra members `code`, `recovery`, `field`, `details`, `retry_strategy`, `max_retries`, `user_message`, `actor`,
  `attempt`, `max_attempts`, `executed` carry the other fields, so nothing else is lost.
- Unknown members are kept. They never overwrite one of these.
"""

from __future__ import annotations

from math import ceil, inf
from typing import Any

from msgspec.structs import replace

from amends.core.crosswalk import source_row
from amends.core.enums import Executed, Recovery
from amends.core.executed import executed_by_status
from amends.core.fault import Fault, Origin
from amends.core.hints import excluded, finite
from amends.core.vocabularies.http import VOCABULARY
from amends.core.vocabulary import EVERYDAY, Row, row_for
from amends.dialects import members
from amends.dialects.outgoing import outgoing
from amends.dialects.record import MEMBER, attach, is_record, record_of
from amends.proof import Claim, Proof, rests_on

__all__ = ["LOSSES", "MEDIA_TYPE", "NAME", "SPEC", "decode", "document", "encode", "milliseconds"]

NAME = "problem"
SPEC = "RFC 9457 problem details with Agent Surface's extensions"
LOSSES = frozenset({"vocabulary", "origin", "fatal"})
MEDIA_TYPE = "application/problem+json"
EFFECT_UNKNOWN = "EFFECT_UNKNOWN"
"""The code of a request that may have had its effect; a repeat is not answered before that is known (M2)."""

MAX_PARTS = 10_000
"""The most nested problems that are read from one document, on all levels together."""

MAX_LEVELS = 64
"""Levels of nested problems. Deeper ones are ignored."""

# The members of S1. An object with any of them is a problem.
_CORE: members.Readers = {
    "type": ("type", members.text),
    "title": ("title", members.text),
    "status": ("status", members.status),
    "detail": ("message", members.text),
    "instance": ("instance", members.text),
    "is_retriable": None,
    "retry_after_ms": None,
    "retry_after_seconds": None,
    "doc_uri": ("doc_uri", members.text),
    "trace_id": ("trace_id", members.text),
    "suggestions": ("suggestions", members.texts),
    "errors": None,
    "intent": ("intent", members.mapping),
}
_CORE_NAMES = frozenset(_CORE)
_OURS: members.Readers = {
    "code": ("code", members.code),
    "recovery": ("recovery", members.recovery),
    "actor": ("actor", members.actor),
    "executed": ("executed", members.executed),
    "field": ("field", members.text),
    "details": ("details", members.mapping),
    "retry_strategy": ("strategy", members.text),
    "max_retries": ("max_retries", members.whole),
    "user_message": ("user_message", members.text),
    "attempt": ("attempt", members.positive),
    "max_attempts": ("max_attempts", members.positive),
}
_MEMBERS: members.Readers = {**_CORE, **_OURS}

_BARE = Origin("problem", "body")


def decode(
    data: Any,
    *,
    status: int | None = None,
    wait: float | None = None,
    origin: Origin = _BARE,
) -> Fault | None:
    """
    Return the Fault in a problem document, or None if the value is not one.

    Args:
        data: the document.
        status: the response's status; it takes precedence over the body's.
        wait: seconds that the response's headers ask for; the body's own wait takes precedence.
        origin: where it was found.

    """
    document = members.plain_mapping(data)
    return None if document is None else fault_of(document, status, wait, origin)


def fault_of(
    data: dict[str, Any], status: int | None = None, wait: float | None = None, origin: Origin = _BARE
) -> Fault | None:
    """Do the same for an object of plain values."""
    if _CORE_NAMES.isdisjoint(data):
        return None
    return _fault(data, status, None, wait, origin, [MAX_PARTS], 0)


def _fault(
    data: dict[str, Any],
    status: int | None,
    inherited: int | None,
    wait: float | None,
    origin: Origin,
    room: list[int],
    level: int,
) -> Fault:
    fields, extensions = members.sort(data, _MEMBERS)
    received = extensions.pop(MEMBER, None) if is_record(extensions.get(MEMBER)) else None
    if status is None:
        status = fields.get("status", inherited)
    own = own_wait(data)
    wait = wait if own is None else own
    code, recovery = fields.get("code"), fields.get("recovery")
    if code is not None and recovery is not None and not origin.complete:
        # Its parts leave out what they have in common with their status.
        origin = replace(origin, complete=True)
    children = _children(data.get("errors"), None if status == 207 else status, origin, room, level)
    # 207 has no row: its nested problems decide (M1).
    row = VOCABULARY.status_row(status) if status is not None and status >= 400 else None
    if code is None:
        if row is not None:
            code = "CANCELLED" if status == 408 and "intent" in fields else row.code
        else:
            code = "PARTIAL_FAILURE" if status == 207 else "UNKNOWN"
    if recovery is None:
        recovery = _recovery(data.get("is_retriable"), row, fields.get("suggestions", ()), children, wait)
    facts = row or row_for("http", code, status)
    fields.update(code=code, recovery=recovery, status=status)
    if isinstance(data.get("errors"), dict):
        _add_named_errors(fields, data["errors"])
    if "trace_id" not in fields and (trace := members.text(extensions.get("traceId"))):
        fields["trace_id"] = trace
    if "actor" not in fields:
        fields["actor"] = facts.actor_under(recovery)
    if "executed" not in fields:
        invited = recovery is Recovery.TRANSIENT and data.get("is_retriable") is True and own is not None
        fields["executed"] = _executed(data, code, status, facts, invited=invited)
    fault = Fault(
        vocabulary="http",
        retry_after=wait,
        errors=children,
        # A batch that failed in part did not fail (M1); its nested problems are decided one by one.
        fatal=status != 207,
        in_doubt=code == EFFECT_UNKNOWN,
        extensions=extensions,
        origin=origin,
        **fields,
    )
    return fault if received is None else attach(fault, received)


def _add_named_errors(fields: dict[str, Any], errors: dict[Any, Any]) -> None:
    """Add the errors of ASP.NET's problems, an object with the names of fields: {"Email": ["The field is required."]}."""
    name = next((each for each in errors if isinstance(each, str)), None)
    if name is not None:
        fields.setdefault("field", name)
        fields["details"] = {"errors": errors, **fields.get("details", {})}


def _children(
    value: Any, inherited: int | None, origin: Origin, room: list[int], level: int
) -> tuple[Fault, ...]:
    """Return the nested problems. All levels share `room`, the number of problems that may still be read."""
    if not isinstance(value, list) or level >= MAX_LEVELS:
        return ()
    found = []
    for item in value:
        if isinstance(item, dict) and room[0] > 0:
            room[0] -= 1
            found.append(_fault(item, None, inherited, None, origin, room, level + 1))
    return tuple(found)


def own_wait(data: dict[str, Any]) -> float | None:
    """Return the body's own wait in seconds; None for 0 and for a negative one (M1, P3)."""
    value = finite(data.get("retry_after_ms"))
    if value is not None and value > 0:
        return value / 1000
    value = finite(data.get("retry_after_seconds"))
    return float(value) if value is not None and value > 0 else None


def _recovery(
    is_retriable: Any,
    row: Row | None,
    suggestions: tuple[str, ...],
    children: tuple[Fault, ...],
    wait: float | None,
) -> Recovery:
    """Apply M1's rules for a problem; the first one that fits decides."""
    if is_retriable is True and wait is not None:
        return Recovery.TRANSIENT
    correctable_row = row is not None and row.recovery is Recovery.CORRECTABLE
    if is_retriable is False:
        return Recovery.CORRECTABLE if correctable_row or suggestions or children else Recovery.TERMINAL
    if is_retriable is True:
        if suggestions:
            return Recovery.CORRECTABLE
        return Recovery.UNCERTAIN if correctable_row else Recovery.TRANSIENT
    if row is not None:
        return row.recovery
    if suggestions:
        return Recovery.CORRECTABLE
    return _of_children(children) if children else Recovery.TERMINAL


def _of_children(children: tuple[Fault, ...]) -> Recovery:
    """Return the recovery of the whole: transient if all parts are, terminal if one is, else correctable."""
    kinds = {child.recovery for child in children}
    if kinds == {Recovery.TRANSIENT}:
        return Recovery.TRANSIENT
    return Recovery.TERMINAL if Recovery.TERMINAL in kinds else Recovery.CORRECTABLE


@rests_on(Claim.NOT_HAPPENED, Proof.STATUS, Proof.INVITATION)
def _executed(data: dict[str, Any], code: str, status: int | None, facts: Row, *, invited: bool) -> Executed:
    """M3, for a document that does not state it: an explicit invitation to repeat the call, then the row."""
    if status == 207:
        return Executed.YES
    if invited and not excluded(code, status, intent=data.get("intent") is not None):
        return Executed.NO
    if code == "RATE_LIMITED":
        return executed_by_status(429 if status is None else status)
    if status is None and code not in VOCABULARY.rows:
        return Executed.MAYBE
    # 408 uses the row of TIMEOUT, so it may have had its effect.
    return facts.executed


def encode(fault: Fault) -> dict[str, Any]:
    """Return the problem document. A fault that was received as a problem is passed on; any other is redacted."""
    return document(outgoing(fault, NAME))


def document(fault: Fault) -> dict[str, Any]:
    """Return the problem document of a fault that has passed `outgoing`."""
    row = source_row(fault)
    wait = milliseconds(fault.retry_after)
    written: dict[str, Any] = {
        "type": fault.type,
        "title": row.message if fault.title is None else fault.title,
        "status": fault.status or row.status or row_for(EVERYDAY, row.everyday).status,
        "detail": fault.message,
        "instance": fault.instance,
        "is_retriable": fault.retryable and fault.code != EFFECT_UNKNOWN,
        "retry_after_ms": wait or None,
        "doc_uri": fault.doc_uri,
        "trace_id": fault.trace_id,
        "suggestions": list(fault.suggestions) or None,
        "errors": [_part(child, fault) for child in fault.errors] or None,
        "intent": fault.intent,
        "code": fault.code,
        "recovery": str(fault.recovery),
        "field": fault.field,
        "details": fault.details,
        "retry_strategy": fault.strategy,
        "max_retries": _max_retries(fault),
        "user_message": fault.user_message,
        "actor": str(fault.actor),
        "executed": str(fault.executed),
        "attempt": fault.attempt,
        "max_attempts": fault.max_attempts,
    }
    problem = {name: value for name, value in written.items() if value is not None}
    if fault.raised is not None:
        problem[MEMBER] = record_of(fault, NAME)
    for name, value in fault.extensions.items():
        if name not in _MEMBERS:
            problem[name] = value
    return problem


_OF_STATUS = ("code", "recovery", "actor", "executed")


def _part(part: Fault, whole: Fault) -> dict[str, Any]:
    """
    Return a nested problem without what a reader takes from its status: a list of refused fields would say it for each.

    The items of a batch say all of it: they are decided one by one.
    """
    problem = document(part)
    row = VOCABULARY.status_row(problem["status"])
    plain = whole.status != 207 and not part.instance and not part.errors and part.raised is None
    if plain and row.recovery is Recovery.CORRECTABLE and not part.retryable:
        facts = (part.code, part.recovery, part.actor, part.executed)
        if facts == (row.code, row.recovery, row.actor, row.executed):
            return {name: value for name, value in problem.items() if name not in _OF_STATUS}
    return problem


def _max_retries(fault: Fault) -> int | None:
    """M2: one retry for an uncertain fault that was made here and sets no number."""
    if fault.max_retries is None and fault.recovery is Recovery.UNCERTAIN and fault.origin is None:
        return 1
    return fault.max_retries


def milliseconds(seconds: float | None) -> int | None:
    """Return whole milliseconds, rounded up; None without a usable wait. 0.07 s gives 70, despite float rounding."""
    if seconds is None or not 0 <= seconds * 1000 < inf:
        return None
    return ceil(round(seconds * 1000, 6))
