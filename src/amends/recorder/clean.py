"""Make an event from what a binding reported: redacted, plain, and of limited size."""

from __future__ import annotations

import os
import sys
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec.structs import replace

from amends.core.decision import Decision
from amends.core.fault import Fault
from amends.core.json_value import json_value
from amends.core.redaction import SECRETS, redact, redact_value
from amends.core.text import strip, truncate
from amends.core.wire import compact
from amends.dialects.outgoing import outgoing
from amends.recorder.event import Event
from amends.recovery.request_facts import plain_url

__all__ = ["event_of"]

_TEXT, _NAME, _PARTS = 500, 200, 5
_LARGEST = 2048
"""Bytes of `details`, of `extensions` and of `facts`, each as JSON; larger ones are left out."""
_OMITTED = {"omitted": "too large for the recorder"}
_TEXTS = frozenset({"trace_id", "name", "upstream", "vendor", "sent", "method"})
_NUMBERS = frozenset({"attempt", "elapsed", "wait", "status", "count"})


def event_of(at: float, where: str, outcome: str, fault: Fault, facts: dict[str, Any]) -> Event:
    """Return the event of a report. Facts that are no members of `Event` are ignored."""
    members: dict[str, Any] = {}
    for name, value in facts.items():
        if value is None:
            continue
        if name in _TEXTS:
            members[name] = _plain(value)
        elif name in _NUMBERS:
            if isinstance(value, int | float) and value - value == 0:
                members[name] = value
        elif name == "url":
            members[name] = plain_url(value)
        elif name == "decision" and isinstance(value, Decision):
            members[name] = value
        elif name == "facts":
            members[name] = redact_value(_bounded(json_value(value)))
    return Event(at=at, where=where, outcome=outcome, fault=_clean(fault), process=_process(), **members)


def _plain(value: Any) -> str:
    return truncate(strip(redact(str(value)[: 2 * _NAME], kinds=SECRETS)), _NAME)


def _clean(fault: Fault, *, parts: bool = True) -> Fault:
    """Return the fault without secrets, internals, links and intent, and with bounded members."""
    if fault.origin is not None and fault.origin.dialect == "telemetry":
        fault = replace(fault, origin=None)
    clean = outgoing(_cut(fault), "telemetry")
    return replace(
        clean,
        code=truncate(strip(clean.code), _NAME),
        message=truncate(strip(clean.message), _TEXT),
        suggestions=tuple(truncate(strip(each), _TEXT) for each in clean.suggestions[:_PARTS]),
        field=None if clean.field is None else truncate(strip(clean.field), _NAME),
        trace_id=None if clean.trace_id is None else truncate(strip(clean.trace_id), _NAME),
        user_message=None if clean.user_message is None else truncate(strip(clean.user_message), _TEXT),
        title=None if clean.title is None else truncate(strip(clean.title), _NAME),
        type=None if clean.type is None else plain_url(clean.type),
        doc_uri=None if clean.doc_uri is None else plain_url(clean.doc_uri),
        instance=None if clean.instance is None else plain_url(clean.instance),
        strategy=None if clean.strategy is None else truncate(strip(clean.strategy), _NAME),
        errors=tuple(_clean(part, parts=False) for part in clean.errors) if parts else (),
    )


def _cut(fault: Fault) -> Fault:
    """Return the fault with large members cut or left out, so that redacting them takes a bounded time."""
    return replace(
        fault,
        message=fault.message[: 4 * _TEXT],
        suggestions=tuple(each[: 4 * _TEXT] for each in fault.suggestions[:_PARTS]),
        errors=fault.errors[:_PARTS],
        details=None if fault.details is None else _bounded(json_value(fault.details)),
        extensions=_bounded(json_value(fault.extensions)) if fault.extensions else {},
        user_message=None if fault.user_message is None else fault.user_message[: 4 * _TEXT],
        intent=None,
    )


def _bounded(value: Any) -> dict[str, Any]:
    encoded = compact(value)
    if not isinstance(value, dict) or encoded is None or len(encoded) > _LARGEST:
        return dict(_OMITTED)
    plain: dict[str, Any] = msgspec.json.decode(encoded)
    return plain


def _process() -> str:
    program = PurePath(sys.argv[0] if sys.argv and sys.argv[0] else "python").name
    return f"{truncate(program, 60)}:{os.getpid()}"
