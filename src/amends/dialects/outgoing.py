"""
The one way out of the process: every fault that is written in any format passes `outgoing`.

It makes the fault's values plain JSON and removes what a producer wrote by mistake. It walks the Fault's own fields, so a
field that is added to the class is redacted without a change here; `_FIELDS` lists the exceptions.

| format | what is removed |
|---|---|
| problem, adcp, task, telemetry | everything `amends.core.redaction` finds, because strangers read them (A19) |
| envelope | credentials; paths and hosts stay, because the reader started the command on this machine |
| model (the text for an agent's own model) | credentials |
| arcp | nothing: `details` leave as raised (R4); a warning is logged where something looks like a leak |

A fault that was received in the same format is passed on unchanged; AdCP and tasks mask credentials in it (`masked`). A lone surrogate, which UTF-8 cannot encode, becomes "?"
in every format.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import msgspec
from msgspec.structs import astuple, replace

from amends.core.crosswalk import ORIGINAL
from amends.core.enums import Actor, Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.json_value import json_value
from amends.logs import logger

__all__ = ["FORMATS", "check_adcp_details", "masked", "outgoing", "outgoing_code"]

# How much is removed. The smaller of a format's and a field's value counts.
_NOTHING, _CREDENTIALS, _EVERYTHING = range(3)

FORMATS = {
    "problem": _EVERYTHING,
    "adcp": _EVERYTHING,
    "task": _EVERYTHING,
    "telemetry": _EVERYTHING,
    "envelope": _CREDENTIALS,
    "model": _CREDENTIALS,
    "arcp": _NOTHING,
}

_WITH_RECORD = frozenset({"problem", "adcp", "envelope", "arcp", "task"})
"""The formats in which the fault as it was raised is written, too: in the record."""

# M5: the code that an error was translated from is not written into these.
_WITHOUT_NOTE = frozenset({"problem", "adcp"})

# Fields that are not free text. Identifiers and URLs lose credentials only: a dotted `field` is not a host name.
# `intent` leaves as it is (design section 6).
_FIELDS = {
    "code": _CREDENTIALS,
    "vocabulary": _CREDENTIALS,
    "strategy": _CREDENTIALS,
    "field": _CREDENTIALS,
    "trace_id": _CREDENTIALS,
    "type": _CREDENTIALS,
    "doc_uri": _CREDENTIALS,
    "instance": _CREDENTIALS,
    "intent": _NOTHING,
}

_NAMED_BY_CALLER = frozenset({"capability", "target"})
"""Details of a refused lease: what the agent asked for, which the protocol requires in the error. They are not a leak."""

_WITHOUT_TEXT = frozenset({int, float, bool, Recovery, Executed, Actor, Origin})
"""The types of values that have nothing to remove. A value of any other type is cleaned."""


def outgoing(fault: Fault, format: str, given: frozenset[str] = frozenset()) -> Fault:
    """
    Return the fault as it may leave in `format`: plain values, with leaks removed.

    Args:
        fault: the fault.
        format: where it goes.
        given: values of the caller's own request, which may go back to the same caller, unless they are credentials.

    >>> outgoing(Fault(code="TIMEOUT", message="no answer from 10.0.0.5"), "problem").message
    'no answer from [redacted]'
    """
    if fault.origin is not None and fault.origin.dialect == format:
        return _encodable(fault)
    allowed = FORMATS[format]
    changes: dict[str, Any] = {}
    for before, (name, level) in zip(astuple(fault), _levels(type(fault), format), strict=True):
        # The fault as it was raised is cleaned when it is written, in `record`.
        if name == "raised":
            if before is not None and format not in _WITH_RECORD:
                changes[name] = None
            continue
        if not before or type(before) in _WITHOUT_TEXT:
            continue
        after = _clean(before, level, format, given)
        if after is not before:
            changes[name] = after
    if format in _WITHOUT_NOTE and fault.details is not None and ORIGINAL in fault.details:
        details = changes.get("details", fault.details)
        changes["details"] = {name: each for name, each in details.items() if name != ORIGINAL} or None
    if allowed == _NOTHING and fault.origin is None:
        _warn_of_leaks(fault, format)
    return replace(fault, **changes) if changes else fault


def outgoing_code(fault: Fault, format: str) -> str:
    """
    Return the code as `outgoing` writes it, for a format that has only the code.

    >>> outgoing_code(Fault(code="TIMEOUT", message="no answer from 10.0.0.5"), "telemetry")
    'TIMEOUT'
    """
    return _clean_text(_without_surrogates(str.__str__(fault.code)), min(FORMATS[format], _FIELDS["code"]))


@cache
def _levels(cls: type[Fault], format: str) -> tuple[tuple[str, int], ...]:
    """Return every field of the class, with how much is removed from it."""
    return tuple(
        (name, min(FORMATS[format], _FIELDS.get(name, _EVERYTHING))) for name in cls.__struct_fields__
    )


def _encodable(fault: Fault) -> Fault:
    """Return a fault that is passed on, unchanged except for lone surrogates: tolerant readers accept them, UTF-8 does not."""
    changes: dict[str, Any] = {}
    for name in fault.__struct_fields__:
        before = getattr(fault, name)
        after = before
        if isinstance(before, str):
            after = _without_surrogates(before)
        elif isinstance(before, tuple):
            after = tuple(
                _encodable(item) if isinstance(item, Fault) else _without_surrogates(item) for item in before
            )
        elif isinstance(before, dict) and before and not _is_encodable(before):
            after = json_value(before)
        if after != before:
            changes[name] = after
    return replace(fault, **changes) if changes else fault


def _is_encodable(value: Any) -> bool:
    try:
        msgspec.json.encode(value)
    except UnicodeError:
        return False
    except (TypeError, ValueError, OverflowError, RecursionError, BufferError):
        pass
    return True


def _without_surrogates(text: str) -> str:
    if text.isascii():
        return text
    clean = text.encode("utf-8", "replace").decode()
    return text if clean == text else clean


def _clean(value: Any, level: int, format: str, given: frozenset[str]) -> Any:
    """A field's value with leaks removed; the same object where nothing had to change."""
    if isinstance(value, str):
        # A subclass of str, such as Django's SafeString, becomes a plain one.
        return _clean_text(_without_surrogates(str.__str__(value)), level, given)
    if isinstance(value, Fault):
        return outgoing(value, format, given)
    if isinstance(value, tuple):
        items = tuple(_clean(item, level, format, given) for item in value)
        return value if all(one is other for one, other in zip(items, value, strict=True)) else items
    if not value:
        return value
    if level == _NOTHING:
        return json_value(value)
    from amends.core.redaction import redact_value  # loaded by the first failure that is written

    return redact_value(value, kinds=_kinds(level), given=given)


def _clean_text(text: str, level: int, given: frozenset[str] = frozenset()) -> str:
    if level == _NOTHING or not text:
        return text
    if given:
        return _redact(text, level, given)
    # Most failures of a program are the same few sentences.
    return _redact_short(text, level) if len(text) <= 500 else _redact(text, level)


def _redact(text: str, level: int, given: frozenset[str] = frozenset()) -> str:
    from amends.core.redaction import redact

    clean = redact(text, kinds=_kinds(level), given=given)
    return text if clean == text else clean


_redact_short = lru_cache(maxsize=1024)(_redact)


def _kinds(level: int) -> frozenset[str]:
    from amends.core.redaction import KINDS, SECRETS

    return KINDS if level == _EVERYTHING else SECRETS


def masked(value: Any) -> Any:
    """
    Return a value that is passed on as it was received, with credentials in its strings masked; the same without any.

    >>> masked({"dsn": "postgres://svc:hunter2@db/x", "host": "db.internal"})
    {'dsn': 'postgres://svc:[redacted]@db/x', 'host': 'db.internal'}
    """
    if isinstance(value, str):
        return _clean_text(value, _CREDENTIALS)
    if isinstance(value, list):
        return [masked(item) for item in value]
    if isinstance(value, dict):
        return {name: masked(item) for name, item in value.items()}
    return value


def check_adcp_details(fault: Fault) -> None:
    """A14: log a warning where AdCP details differ from their recommended shape or are too large to be read cheaply."""
    if fault.details is None:
        return
    from amends.core.details import check_details

    for warning in check_details(fault.code, fault.details):
        logger("amends").warning("AdCP details of %s: %s", _clean_text(fault.code, _CREDENTIALS), warning)


def _warn_of_leaks(fault: Fault, format: str) -> None:
    """Log a warning, without the text, when a fault made here carries what looks like a leak."""
    from amends.core.redaction import find

    texts = [fault.message, *fault.suggestions]
    details = {name: value for name, value in (fault.details or {}).items() if name not in _NAMED_BY_CALLER}
    if details:
        from amends.core.wire import compact

        texts.append((compact(json_value(details)) or b"").decode("utf-8", "replace"))
    kinds = sorted({leak.kind for text in texts if text for leak in find(text)})
    if kinds:
        logger("amends").warning(
            "a %s error with code %s carries what looks like: %s",
            format,
            _clean_text(fault.code, _CREDENTIALS),
            ", ".join(kinds),
        )
