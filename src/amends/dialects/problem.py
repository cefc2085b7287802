"""
Problem details for agents (S1, RFC 9457 with extensions).

- `message` is `detail`; `retry_after` is `retry_after_ms`, rounded up to whole milliseconds.
- `title`, `status` and `detail` are always written, nested problems included: where the fault has none they come
  from the code's row.
- `is_retriable` answers "might the same request succeed": true for transient and uncertain, with `max_retries` 1 for an
  uncertain fault made here. It is false for EFFECT_UNKNOWN, whose effect has to be verified first.
- `executed` is believed as read. Without it, `is_retriable: true` with a wait in the body means that the request had no
  effect (`amends.core.invitation`).
- S1 has no code; our extra members `code`, `recovery`, `field`, `details`, `retry_strategy`, `max_retries`,
  `user_message`, `actor`, `attempt`, `max_attempts`, `executed` carry the rest, so nothing else is lost.
- members we do not know are kept; they never overwrite one of these.
"""

from __future__ import annotations

from math import ceil, inf
from typing import Any

from msgspec.structs import replace

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
from amends.core.fault import Fault, Origin
from amends.core.hints import finite
from amends.core.invitation import excluded
from amends.core.vocabularies.http import VOCABULARY
from amends.core.vocabulary import EVERYDAY, Row, row_for
from amends.dialects import members
from amends.dialects.outgoing import outgoing

__all__ = ["LOSSES", "MEDIA_TYPE", "NAME", "SPEC", "decode", "document", "encode", "milliseconds"]

NAME = "problem"
SPEC = "RFC 9457 problem details with the agent extensions of S1"
LOSSES = frozenset({"vocabulary", "origin"})
MEDIA_TYPE = "application/problem+json"
EFFECT_UNKNOWN = "EFFECT_UNKNOWN"
"""The code of a request that may have had its effect; a repeat is not answered before that is known (M2)."""

MAX_PARTS = 10_000
"""Nested problems read from one document, all levels together."""

MAX_LEVELS = 64
"""Levels of problems inside problems. Deeper ones are passed over."""

# S1's own members, any of which makes an object a problem.
_CORE: members.Readers = {
    "type": ("type", str),
    "title": ("title", str),
    "status": None,
    "detail": ("message", str),
    "instance": ("instance", str),
    "is_retriable": None,
    "retry_after_ms": None,
    "retry_after_seconds": None,
    "doc_uri": ("doc_uri", str),
    "trace_id": ("trace_id", str),
    "suggestions": None,
    "errors": None,
    "intent": ("intent", dict),
}
_CORE_NAMES = frozenset(_CORE)
_OURS: members.Readers = {
    "code": None,
    "recovery": None,
    "actor": None,
    "executed": None,
    "field": ("field", str),
    "details": ("details", dict),
    "retry_strategy": ("strategy", str),
    "max_retries": ("max_retries", members.whole),
    "user_message": ("user_message", str),
    "attempt": ("attempt", members.positive),
    "max_attempts": ("max_attempts", members.positive),
}
_MEMBERS: members.Readers = {**_CORE, **_OURS}

_RECOVERY = {item.value: item for item in Recovery}
_ACTORS = {item.value: item for item in Actor}
_EXECUTED = {item.value: item for item in Executed}
_BARE = Origin("problem", "body")


def decode(
    data: Any,
    *,
    status: int | None = None,
    wait: float | None = None,
    origin: Origin = _BARE,
) -> Fault | None:
    """
    The Fault in a problem document, or None when the value is none.

    Args:
        data: the document.
        status: the response's status; it beats the body's.
        wait: seconds the response's headers ask for; the body's own wait beats it.
        origin: where it was found.

    """
    return fault_of(data, status, wait, origin) if members.shallow(data) else None


def fault_of(
    data: dict[str, Any], status: int | None = None, wait: float | None = None, origin: Origin = _BARE
) -> Fault | None:
    """The same for an object already known to be bounded."""
    own = own_wait(data)
    if own is None:
        return None if _CORE_NAMES.isdisjoint(data) else fault_with(data, status, wait, origin)
    return fault_with(data, status, own, origin)


def fault_with(data: dict[str, Any], status: int | None, wait: float | None, origin: Origin) -> Fault:
    """The same for an object known to be a problem, with the wait that counts."""
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
    get = data.get
    if status is None:
        status = members.whole(get("status"), 100)
        if status is None or status > 599:
            status = inherited
    children: tuple[Fault, ...] = ()
    if "errors" in data:
        children = _children(data["errors"], None if status == 207 else status, origin, room, level)
    suggestions = members.texts(data["suggestions"]) if "suggestions" in data else ()
    # 207 has no row: its parts decide (M1).
    row = VOCABULARY.status_row(status) if status is not None and status >= 400 else None
    code = members.code(data["code"]) if "code" in data else None
    if code is None:
        if row is not None:
            code = "CANCELLED" if status == 408 and get("intent").__class__ is dict else row.code
        else:
            code = "PARTIAL_FAILURE" if status == 207 else "UNKNOWN"
    said = get("recovery")
    retriable = get("is_retriable")
    recovery = (_RECOVERY.get(said) if said.__class__ is str else None) or _recovery(
        retriable, row, suggestions, children, wait
    )
    facts = row or row_for("http", code, status)
    actor = get("actor")
    kind, title, detail, trace = get("type"), get("title"), get("detail"), get("trace_id")
    found = Fault(
        code=code,
        message=detail if detail.__class__ is str else "",
        recovery=recovery,
        vocabulary="http",
        retry_after=wait,
        suggestions=suggestions,
        errors=children,
        trace_id=trace if trace.__class__ is str else None,
        type=kind if kind.__class__ is str else None,
        title=title if title.__class__ is str else None,
        status=status,
        actor=(_ACTORS.get(actor) if actor.__class__ is str else None)
        or (facts.actor if recovery is facts.recovery else facts.actor_under(recovery)),
        executed=_executed(data, code, status, recovery, facts),
        origin=origin,
    )
    # Where what was looked for is all there is, the document need not be gone through.
    seen = (kind is not None) + (title is not None) + (detail is not None) + (trace is not None)
    if len(data) == seen + (retriable is not None) + ("status" in data) + ("retry_after_ms" in data):
        return found
    fields, extensions = members.sort(data, _MEMBERS)
    return replace(found, extensions=extensions, **fields)


def _children(
    value: Any, inherited: int | None, origin: Origin, room: list[int], level: int
) -> tuple[Fault, ...]:
    """The nested problems of a problem. `room` is shared by all levels, so a document cannot multiply."""
    if value.__class__ is not list or level >= MAX_LEVELS:
        return ()
    found = []
    for item in value:
        if item.__class__ is dict and room[0] > 0:
            room[0] -= 1
            found.append(_fault(item, None, inherited, own_wait(item), origin, room, level + 1))
    return tuple(found)


def own_wait(data: dict[str, Any]) -> float | None:
    """The body's own wait in seconds; 0 is none, and so is a negative one (M1, P3)."""
    if "retry_after_ms" in data:
        value = finite(data["retry_after_ms"])
        if value is not None and value > 0:
            return value / 1000
    value = finite(data["retry_after_seconds"]) if "retry_after_seconds" in data else None
    return float(value) if value is not None and value > 0 else None


def _recovery(
    is_retriable: Any,
    row: Row | None,
    suggestions: tuple[str, ...],
    children: tuple[Fault, ...],
    wait: float | None,
) -> Recovery:
    """M1's rules for a problem, first one that applies."""
    if is_retriable is True and wait is not None:
        return TRANSIENT
    correctable_row = row is not None and row.recovery is CORRECTABLE
    if is_retriable is False:
        return CORRECTABLE if correctable_row or suggestions or children else TERMINAL
    if is_retriable is True:
        if suggestions:
            return CORRECTABLE
        return UNCERTAIN if correctable_row else TRANSIENT
    if row is not None:
        return row.recovery
    if suggestions:
        return CORRECTABLE
    return _of_children(children) if children else TERMINAL


def _of_children(children: tuple[Fault, ...]) -> Recovery:
    """What the parts of a failure say about the whole: transient only together, terminal alone."""
    kinds = {child.recovery for child in children}
    if kinds == {TRANSIENT}:
        return TRANSIENT
    return TERMINAL if TERMINAL in kinds else CORRECTABLE


def _executed(
    data: dict[str, Any], code: str, status: int | None, recovery: Recovery, facts: Row
) -> Executed:
    """M3: what the document says, then an explicit invitation, then the row."""
    said = data.get("executed")
    if said.__class__ is str and said in _EXECUTED:
        return _EXECUTED[said]
    if status == 207:
        return Executed.YES
    if code == "RATE_LIMITED":
        return NOT_EXECUTED
    invited = recovery is TRANSIENT and data.get("is_retriable") is True and own_wait(data) is not None
    if invited and not excluded(code, status, intent=data.get("intent") is not None):
        return NOT_EXECUTED
    if status is None and code not in VOCABULARY.rows:
        return MAYBE_EXECUTED
    # 408 borrows the row of TIMEOUT, and like it may have happened.
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
        "errors": [document(child) for child in fault.errors] or None,
        "intent": fault.intent,
        "code": fault.code,
        "recovery": fault.recovery.value,
        "field": fault.field,
        "details": fault.details,
        "retry_strategy": fault.strategy,
        "max_retries": _max_retries(fault),
        "user_message": fault.user_message,
        "actor": fault.actor.value,
        "executed": fault.executed.value,
        "attempt": fault.attempt,
        "max_attempts": fault.max_attempts,
    }
    problem = {name: value for name, value in written.items() if value is not None}
    for name, value in fault.extensions.items():
        if name not in _MEMBERS:
            problem[name] = value
    return problem


def _max_retries(fault: Fault) -> int | None:
    """M2: one retry for an uncertain fault that was made here and says nothing else."""
    if fault.max_retries is None and fault.recovery is UNCERTAIN and fault.origin is None:
        return 1
    return fault.max_retries


def milliseconds(seconds: float | None) -> int | None:
    """Whole milliseconds, rounded up; None for no usable wait. 0.07 s is 70, whatever floats make of it."""
    if seconds is None or not 0 <= seconds * 1000 < inf:
        return None
    return ceil(round(seconds * 1000, 6))
