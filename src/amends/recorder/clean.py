"""Make an event from what a binding reported: redacted, plain, and of limited size."""

from __future__ import annotations

import os
import re
import sys
from functools import lru_cache
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec.structs import replace

from amends.core.decision import Decision
from amends.core.fault import Fault
from amends.core.json_value import json_value
from amends.core.redaction import SECRETS, redact, redact_value
from amends.core.redaction.text import hide_keys
from amends.core.redaction.url_paths import plain_path
from amends.core.text import strip, truncate
from amends.core.wire import compact
from amends.dialects.outgoing import outgoing
from amends.recorder.event import Event
from amends.recovery.events import plain_url

__all__ = ["event_of"]

_TEXT, _NAME, _PARTS = 500, 200, 5
_LARGEST = 2048
"""Bytes of `details`, of `extensions` and of `facts`, each as JSON; larger ones are left out."""
_OMITTED = {"omitted": "too large for the recorder"}
_LIMITS = {
    "code": _NAME,
    "message": _TEXT,
    "field": _NAME,
    "trace_id": _NAME,
    "user_message": _TEXT,
    "title": _NAME,
    "strategy": _NAME,
}
"""The most bytes of each text of a fault."""
_URLS = ("type", "doc_uri", "instance")
_TEXTS = frozenset({"trace_id", "name", "upstream", "vendor", "sent", "method"})
_NUMBERS = frozenset({"attempt", "elapsed", "wait", "status", "count"})


def event_of(at: float, where: str, outcome: str, fault: Fault, facts: dict[str, object]) -> Event:
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
            members[name] = _address(str(value)[:2000])
        elif name == "decision" and isinstance(value, Decision):
            members[name] = value
        elif name == "facts":
            members[name] = redact_value(_bounded(json_value(value)))
    return Event(
        at=at, where=where, outcome=outcome, fault=_known(fault), process=_process(os.getpid()), **members
    )


_trace = re.compile(r"[0-9a-f]{16}|[0-9a-f]{32}").fullmatch
"""Ids of spans and traces are new for each call. Redaction leaves them as they are, which takes 25 µs."""


def _plain(value: object) -> str:
    text = str(value)[: 2 * _NAME]
    return text if _trace(text) else _named(text)


# Most failures of a program have the same few names, addresses and messages.
@lru_cache(maxsize=1024)
def _named(text: str) -> str:
    method, space, path = text.partition(" ")
    if path.startswith("/") and method.isupper():
        text = f"{method}{space}{plain_path(path)}"
    return truncate(strip(redact(hide_keys(text), kinds=SECRETS)), _NAME)


@lru_cache(maxsize=1024)
def _address(text: str) -> str:
    plain = plain_url(text)
    scheme, mark, rest = plain.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host}{plain_path(slash + path)}" if mark and slash else plain


@lru_cache(maxsize=1024)
def _short(text: str, limit: int) -> str:
    return truncate(strip(text), limit)


_CACHED = 2048
"""Bytes of the largest fault that is cached, as JSON."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Fault).decode


def _known(fault: Fault) -> Fault:
    """
    Return the clean fault, from a cache if an equal one was cleaned before.

    Most failures of a program differ only in their trace id. Cleaning one takes 30 to 60 µs, the cache 2 µs; without it
    the recorder takes more than 3 % of a failing call (bench/gateway.py).
    """
    trace = fault.trace_id
    try:
        encoded = _encode(fault if trace is None else replace(fault, trace_id=None))
        if len(encoded) > _CACHED:
            return _clean(fault)
        clean = _clean_encoded(encoded)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError, BufferError):
        return _clean(fault)  # a detail that is no JSON
    return clean if trace is None else replace(clean, trace_id=_plain(trace))


@lru_cache(maxsize=256)
def _clean_encoded(encoded: bytes) -> Fault:
    return _clean(_decode(encoded))


def _clean(fault: Fault, *, parts: bool = True) -> Fault:
    """Return the fault without secrets, internals, links and intent, and with bounded members."""
    clean = outgoing(_cut(fault, parts=parts), "telemetry")
    changes: dict[str, Any] = {}
    for name, limit in _LIMITS.items():
        before = getattr(clean, name)
        if before:
            after = _short(before, limit)
            if after != before:
                changes[name] = after
    for name in _URLS:
        before = getattr(clean, name)
        if before:
            changes[name] = _address(before)
    if clean.suggestions:
        changes["suggestions"] = tuple(_short(each, _TEXT) for each in clean.suggestions)
    if clean.errors:
        changes["errors"] = tuple(_clean(part, parts=False) for part in clean.errors)
    return replace(clean, **changes) if changes else clean


def _cut(fault: Fault, *, parts: bool) -> Fault:
    """Return the fault with large members cut or left out, so that redacting them takes a bounded time."""
    changes: dict[str, Any] = {}
    for name in _LIMITS:
        before = getattr(fault, name)
        if before is not None and len(before) > 4 * _TEXT:
            changes[name] = before[: 4 * _TEXT]
    if fault.suggestions:
        changes["suggestions"] = tuple(each[: 4 * _TEXT] for each in fault.suggestions[:_PARTS])
    if fault.errors:
        changes["errors"] = fault.errors[:_PARTS] if parts else ()
    if fault.details is not None:
        changes["details"] = _bounded(json_value(fault.details))
    if fault.extensions:
        changes["extensions"] = _bounded(json_value(fault.extensions))
    if fault.intent is not None:
        changes["intent"] = None
    if fault.origin is not None and fault.origin.dialect == "telemetry":
        changes["origin"] = None
    return replace(fault, **changes) if changes else fault


def _bounded(value: object) -> dict[str, object]:
    encoded = compact(value)
    if not isinstance(value, dict) or encoded is None or len(encoded) > _LARGEST:
        return dict(_OMITTED)
    plain: dict[str, object] = msgspec.json.decode(encoded)
    return plain


@lru_cache(maxsize=4)
def _process(pid: int) -> str:
    program = PurePath(sys.argv[0] if sys.argv and sys.argv[0] else "python").name
    return f"{truncate(program, 60)}:{pid}"
