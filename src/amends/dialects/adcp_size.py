"""
Make an AdCP error object one that every reader accepts (A7): plain JSON, at most 4096 bytes of compact UTF-8.

Values become plain: keys are strings, enum members and tuples become what they hold, a lone surrogate becomes "?". If
the object is too large, it loses in this order:

1. `details`, as a whole;
2. nested `errors`, the last one first;
3. members that AdCP does not define;
4. the ends of `message` (1024 bytes), `suggestion` (512) and `field` (256), counted as in JSON.

A code has at most 64 characters; a longer one is cut.
"""

from __future__ import annotations

from typing import Any

import msgspec

from amends.core.json_value import json_value
from amends.core.text import truncate
from amends.core.wire import compact, plain
from amends.dialects.members import CODE_BYTES

__all__ = ["LONGEST", "MAX_ERROR_BYTES", "fit"]

MAX_ERROR_BYTES = 4096
"""Size of the compact UTF-8 JSON. A larger object is not an error (A7)."""
LONGEST = {"message": 1024, "suggestion": 512, "field": 256}
"""Bytes of JSON to which these members are cut if the error would be too large otherwise."""

_KEPT = ("code", "message", "recovery", "retry_after", "field", "suggestion")
_RECOVERY_BYTES = 64

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def fit(error: dict[str, Any]) -> dict[str, Any]:
    """Return an error object as plain values, cut by the rule of this module if it is too large."""
    error = _as_json(error)
    if len(error["code"]) > CODE_BYTES:
        error["code"] = error["code"][:CODE_BYTES]
    if _fits(error):
        return error
    error.pop("details", None)
    if "errors" in error and not _fits(error):
        error["errors"] = _first_errors(error)
        if not error["errors"]:
            del error["errors"]
    if _fits(error):
        return error
    known = {name: error[name] for name in _KEPT if name in error}
    return known if _fits(known) else {name: _cut(name, value) for name, value in known.items()}


def _as_json(error: dict[str, Any]) -> dict[str, Any]:
    """Return a copy made of JSON's own types, as a receiver would parse it."""
    try:
        found = _decode(_encode(error))
    except (TypeError, ValueError, OverflowError, RecursionError, BufferError, msgspec.MsgspecError):
        # A lone surrogate, or a value that is not JSON.
        return json_value(error)  # type: ignore[no-any-return]
    # Deeper values are JSON, but readers refuse them.
    return found if plain(found) is found else json_value(error)  # type: ignore[no-any-return]


def _fits(error: dict[str, Any]) -> bool:
    written = compact(error)
    return written is not None and len(written) <= MAX_ERROR_BYTES


def _first_errors(error: dict[str, Any]) -> list[Any]:
    """Return as many nested errors, from the first one on, as the object has room for."""
    nested = error["errors"]
    if not isinstance(nested, list):
        return []
    room = MAX_ERROR_BYTES - len(compact({**error, "errors": []}) or b"")
    kept: list[Any] = []
    for item in nested:
        room -= len(compact(item) or b"") + 1
        if room < 0:
            break
        kept.append(item)
    return kept


def _cut(name: str, value: Any) -> Any:
    """Return a member of an object that is too large even without all others."""
    if name == "recovery" and len(compact(value) or b"") > _RECOVERY_BYTES:
        # A value that no reader knows counts as terminal (A12).
        return "terminal"
    if name not in LONGEST or not isinstance(value, str):
        return value
    limit = LONGEST[name]
    value = truncate(value, limit)
    while (size := len(compact(value) or b"") - 2) > limit:
        # Control characters take six bytes in JSON.
        value = value[: len(value) * limit // size]
    return value
