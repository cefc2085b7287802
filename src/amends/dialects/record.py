"""
The record: what a failure was when it was raised, in one reserved member of every format.

Each format says in its own members what they can say. The record beside them holds the same object everywhere:

    {"v": 1, "code", "vocabulary", "recovery", "executed", "message", "field", "suggestions", "errors", "retry_after_ms",
     "actor", "tries", "trace_id", "service", "doc_uri", "status", "in_doubt", "sig"}

| format | place |
|---|---|
| problem | member `amends`, if the code was translated or the record is signed |
| envelope | `error.amends`, in the same cases |
| task, ARCP | `error.details.amends`; the reader removes it |
| MCP | `_meta["amends/fault"]` of the result |
| A2A | `metadata["amends/fault"]` of the part that holds `adcp_error` |
| JSON-RPC | `error.data["amends/fault"]`, beside `adcp_error` |

A reader believes of it only what makes its caller more careful (`attach`): the effect may be raised, tries and a wait too. Where
the format has no members for them, it also takes what helps to correct the request (`add_corrections`).
The rest is restored (`restored`) by a client that knows that the service is its own: by the user's word, or by the signature.
The record is at most 4096 bytes, and has no details, no foreign text and no address.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import ceil, isfinite
from typing import Any

from msgspec.structs import replace

from amends.core.enums import Executed
from amends.core.fault import Fault, Origin
from amends.core.hints import LONGEST, finite
from amends.core.text import truncate
from amends.core.travel import count
from amends.core.vocabulary import names, row_for
from amends.core.wire import as_dict, compact, plain
from amends.dialects import members
from amends.dialects.outgoing import FORMATS, outgoing
from amends.proof import Claim, Proof, rests_on

__all__ = [
    "BYTES",
    "IN_DOUBT",
    "KEY",
    "MEMBER",
    "add_corrections",
    "attach",
    "beside",
    "is_record",
    "join_details",
    "read_beside",
    "record_of",
    "restored",
    "says_more",
    "size_of",
    "split_details",
]

KEY = "amends/fault"
"""The member of MCP's `_meta`, of A2A's `metadata` and of JSON-RPC's `data`."""
MEMBER = "amends"
"""The member of a problem, of an envelope's error, and of the details of a task's or ARCP's error."""
IN_DOUBT = "It may have happened. Check before you send it again."
"""What a caller is told after a call that changes something has got no answer, in every format (M2)."""
BYTES = 4096
"""The largest record. A larger one is ignored."""
VERSION = 1

_MOST_PARTS, _PARTS, _STEPS, _TEXT, _NAME = 64, 16, 3, 256, 256
_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")
_RANK = {Executed.NO: 0, Executed.MAYBE: 1, Executed.YES: 2}
_MOST_TRIES = 100
_REMOVED: dict[str, Any] = {
    "details": None,
    "extensions": {},
    "intent": None,
    "errors": (),
    "raised": None,
    "instance": None,
}
_BY_ORIGIN = frozenset({"arcp"})


# Writing -------------------------------------------------------------------------------------------------------


def record_of(fault: Fault, format: str, *, brief: bool = False) -> dict[str, Any]:
    """
    Return the record of a fault that is written in `format`.

    Args:
        fault: the fault in the vocabulary of the format; `raised` is what it was before.
        format: whose redaction applies.
        brief: for a caller that is no part of our system: only what it may believe.

    >>> record_of(Fault(code="TIMEOUT", attempt=3), "adcp", brief=True)
    {'v': 1, 'executed': 'maybe', 'tries': 3}

    """
    record: dict[str, Any] = {"v": VERSION}
    if not brief:
        record |= _meaning(fault if fault.raised is None else fault.raised, format, parts=True)
    record["executed"] = fault.executed.value
    if fault.attempt is not None and fault.attempt > 1:
        record["tries"] = min(fault.attempt, 1_000_000)
    # A server names its own trace in `raised`, where the error itself is passed on as it is.
    trace = fault.trace_id if fault.raised is None else fault.raised.trace_id or fault.trace_id
    if trace is not None and _ID.fullmatch(trace):
        record["trace_id"] = trace
    if fault.in_doubt:
        record["in_doubt"] = True
    return _fit(record)


def _meaning(fault: Fault, format: str, *, parts: bool) -> dict[str, Any]:
    """Return the members that say what the failure is."""
    clean = _clean(fault, format)
    found: dict[str, Any] = {
        "code": clean.code,
        "vocabulary": clean.vocabulary,
        "recovery": clean.recovery.value,
    }
    if _has_chosen_actor(clean):
        found["actor"] = clean.actor.value
    if clean.message:
        found["message"] = clean.message
    if clean.field:
        found["field"] = clean.field
    if clean.suggestions:
        found["suggestions"] = list(clean.suggestions)
    wait = clean.retry_after
    if wait is not None and isfinite(wait) and 0 < wait * 1000 <= 2**53:
        found["retry_after_ms"] = ceil(round(wait * 1000, 6))
    if clean.doc_uri and parts:
        found["doc_uri"] = clean.doc_uri
    if clean.status is not None:
        found["status"] = clean.status
    if parts and fault.errors:
        found["errors"] = [
            _meaning(part if part.raised is None else part.raised, format, parts=False)
            for part in fault.errors[:_MOST_PARTS]
        ]
    return found


def _clean(fault: Fault, format: str) -> Fault:
    """Return the fault with the texts that the format may have."""
    bare = replace(fault, **_REMOVED)
    if format in _BY_ORIGIN:
        # Its texts leave as raised; `outgoing` warns of leaks when it writes the error itself.
        bare = replace(bare, origin=Origin(format))
    elif bare.origin is not None and bare.origin.dialect in FORMATS:
        # Passed on in another format than it was received in, or unchanged.
        pass
    return outgoing(bare, format)


def _fit(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record in at most 4096 bytes. Code, recovery, executed and tries always stay."""
    for shorten in _SHORTER:
        if size_of(record) <= BYTES:
            return record
        shorten(record)
    return record


def size_of(record: object) -> int:
    """Return the size of a record as compact JSON; more than the largest for a value that is none."""
    written = compact(record)
    return BYTES + 1 if written is None else len(written)


def _fewer_parts(record: dict[str, Any]) -> None:
    if "errors" in record:
        record["errors"] = record["errors"][:_PARTS]


def _fewer_steps(record: dict[str, Any]) -> None:
    for part in (record, *record.get("errors", ())):
        if "suggestions" in part:
            part["suggestions"] = part["suggestions"][:_STEPS]


def _shorter_text(record: dict[str, Any]) -> None:
    for part in (record, *record.get("errors", ())):
        for name in ("message", "field"):
            if name in part:
                part[name] = truncate(part[name], _TEXT)


def _without(*dropped: str) -> Callable[[dict[str, Any]], None]:
    def drop(record: dict[str, Any]) -> None:
        for name in dropped:
            record.pop(name, None)

    return drop


def _short_names(record: dict[str, Any]) -> None:
    for name in ("code", "vocabulary"):
        if name in record:
            record[name] = truncate(record[name], _NAME)


_SHORTER = (
    _fewer_parts,
    _fewer_steps,
    _shorter_text,
    _without("errors"),
    _without("suggestions", "doc_uri"),
    _without("field", "message"),
    _short_names,
)


def beside(fault: Fault) -> dict[str, Any]:
    """
    Return the members that are sent beside an AdCP error: the record.

    >>> beside(Fault(code="TIMEOUT", attempt=3))["amends/fault"]["tries"]
    3
    """
    return {KEY: record_of(fault, "adcp")}


# Reading -------------------------------------------------------------------------------------------------------


def read_beside(fault: Fault, document: object) -> Fault:
    """
    Return the fault with the record that was sent beside its AdCP error. Any value is accepted.

    >>> read_beside(Fault(code="TIMEOUT"), {"amends/fault": {"v": 1, "tries": 3.0}}).attempt
    3
    """
    found = as_dict(document)
    return fault if found is None else attach(fault, found.get(KEY))


def attach(fault: Fault, received: object) -> Fault:
    """
    Return a fault that was read with its record: more careful by what it says, and with the record in its origin.

    >>> attach(Fault(code="CONFLICT"), {"v": 1, "executed": "maybe", "recovery": "transient"}).executed.value
    'maybe'
    >>> attach(Fault(code="TIMEOUT"), {"v": 1, "executed": "no", "code": "NOT_FOUND"}).executed.value
    'maybe'
    """
    record = as_dict(plain(received)) if received is not None else None
    if not record or count(record.get("v")) != VERSION or size_of(record) > BYTES:
        return fault
    changes: dict[str, Any] = {}
    executed = members.executed(record.get("executed"))
    if executed is not None and _RANK[executed] > _RANK[fault.executed]:
        changes["executed"] = executed
    tries = min(count(record.get("tries")), _MOST_TRIES)
    if tries > (fault.attempt or 0):
        changes["attempt"] = tries
    wait = finite(record.get("retry_after_ms"))
    if wait is not None and wait > 0:
        longer = min(LONGEST, wait / 1000)
        if longer > (fault.retry_after or 0):
            changes["retry_after"] = longer
    trace = record.get("trace_id")
    # A conformant AdCP error is passed on unchanged, with the trace of the service that raised it; the record has the caller's.
    passed_on = fault.origin is not None and fault.origin.dialect == "adcp"
    if (fault.trace_id is None or passed_on) and isinstance(trace, str) and _ID.fullmatch(trace):
        changes["trace_id"] = trace
    if record.get("in_doubt") is True:
        changes["in_doubt"] = True
        changes.setdefault("executed", Executed.MAYBE if fault.executed is Executed.NO else fault.executed)
    if fault.origin is not None:
        changes["origin"] = replace(fault.origin, record=record)
    return replace(fault, **changes)


def add_corrections(fault: Fault) -> Fault:
    """
    Return a fault with the field, the suggestions and the errors of its record, where it has none. No decision depends on them.

    >>> record = {"v": 1, "field": "/day", "suggestions": ["Send a date"], "executed": "no"}
    >>> found = add_corrections(attach(Fault(code="INVALID_INPUT", vocabulary="task", origin=Origin("task")), record))
    >>> found.field, found.suggestions
    ('/day', ('Send a date',))
    """
    origin = fault.origin
    record = None if origin is None else origin.record
    if origin is None or record is None:
        return fault
    changes: dict[str, Any] = {}
    field, suggestions, parts = (
        members.text(record.get("field")),
        record.get("suggestions"),
        record.get("errors"),
    )
    if fault.field is None and field is not None:
        changes["field"] = field
    if not fault.suggestions and isinstance(suggestions, list):
        changes["suggestions"] = members.texts(suggestions)
    if not fault.errors and isinstance(parts, list):
        errors = _parts(parts, fault, origin)
        changes["errors"] = tuple(replace(part, origin=replace(origin, record=None)) for part in errors)
    return replace(fault, **changes) if changes else fault


@rests_on(Claim.NOT_HAPPENED, Proof.USER, Proof.SECRET)
def restored(fault: Fault) -> Fault:
    """
    Return a fault as it was raised, from its record; the same fault if it has none.

    Only for a service that is known to be our own: by the user's word, or by the signature of the record.
    """
    origin = fault.origin
    record = None if origin is None else origin.record
    if origin is None or record is None:
        return fault
    changes = _restored(record)
    if changes is None:
        return fault
    executed = members.executed(record.get("executed"))
    if executed is not None:
        changes["executed"] = executed
    if "code" in changes:
        changes["origin"] = replace(origin, complete=True)
        parts = record.get("errors")
        if isinstance(parts, list):
            changes["errors"] = _parts(parts, fault, origin)
    return replace(fault, **changes)


def is_record(value: object) -> bool:
    """Return whether a value is a record. Another object of the same name belongs to the producer."""
    return isinstance(value, dict) and count(value.get("v")) == VERSION


def join_details(details: dict[str, Any] | None, record: dict[str, Any]) -> dict[str, Any]:
    """Return the details of a task's or ARCP's error with the record, unless the producer has an `amends` of its own."""
    return {MEMBER: record} if details is None else {MEMBER: record, **details}


def says_more(fault: Fault, standard: Fault | None) -> bool:
    """
    Return whether the record of a fault says more than the standard members, as a reader takes them.

    >>> says_more(Fault(code="TIMEOUT", vocabulary="arcp"), Fault(code="TIMEOUT", vocabulary="arcp"))
    False
    """
    if standard is None or fault.raised is not None or fault.in_doubt or (fault.attempt or 1) > 1:
        return True
    if fault.field or fault.suggestions or fault.errors or fault.retry_after or fault.trace_id:
        return True
    if (standard.executed, standard.recovery) != (fault.executed, fault.recovery):
        return True
    return standard.actor is not fault.actor and _has_chosen_actor(fault)


def _has_chosen_actor(fault: Fault) -> bool:
    """Return whether the producer chose who has to act: it is neither the row's nor that of the row under the recovery."""
    row = row_for(fault.vocabulary, fault.code, fault.status)
    return fault.actor is not row.actor and fault.actor is not row.actor_under(fault.recovery)


def split_details(details: dict[str, Any] | None) -> tuple[dict[str, Any] | None, object]:
    """
    Return the details as they were raised, and the record that came in them.

    >>> split_details({"what": "tea", "amends": {"v": 1}}), split_details({"amends": 7})
    (({'what': 'tea'}, {'v': 1}), ({'amends': 7}, None))
    """
    received = None if details is None else details.get(MEMBER)
    if details is None or not is_record(received):
        return details, None
    return {name: value for name, value in details.items() if name != MEMBER} or None, received


def _restored(record: dict[str, Any]) -> dict[str, Any] | None:
    """Return the fields that a record or one of its parts states. A brief record has none."""
    code, recovery = members.code(record.get("code")), members.recovery(record.get("recovery"))
    vocabulary = record.get("vocabulary")
    if code is None or recovery is None or not isinstance(vocabulary, str) or vocabulary not in names():
        return {}
    status = members.status(record.get("status"))
    changes: dict[str, Any] = {
        "code": code,
        "vocabulary": vocabulary,
        "recovery": recovery,
        "actor": members.actor(record.get("actor"))
        or row_for(vocabulary, code, status).actor_under(recovery),
    }
    for name in ("message", "field", "doc_uri"):
        found = members.text(record.get(name))
        if found is not None:
            changes[name] = found
    if isinstance(record.get("suggestions"), list):
        changes["suggestions"] = members.texts(record["suggestions"])
    wait = finite(record.get("retry_after_ms"))
    changes["retry_after"] = wait / 1000 if wait is not None and wait > 0 else None
    if status is not None:
        changes["status"] = status
    return changes


def _parts(parts: list[Any], fault: Fault, origin: Origin) -> tuple[Fault, ...]:
    found = []
    for place, part in enumerate(parts[:_MOST_PARTS]):
        changes = _restored(part) if isinstance(part, dict) else None
        if not changes:
            continue
        standard = fault.errors[place] if place < len(fault.errors) else None
        base = standard or Fault(code="INTERNAL_ERROR", executed=fault.executed, origin=origin)
        found.append(replace(base, origin=replace(origin, record=None, complete=True), **changes))
    return tuple(found)
