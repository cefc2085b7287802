"""
An AdCP error as it leaves a server: an object every reader takes (A7), and one terse sentence beside it.

What cannot be JSON, or would make the error too large to be read, is left out: first the details, then all but what
a caller needs to act.
"""

from __future__ import annotations

from typing import Any

import msgspec

from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.text import truncate
from amends.core.wire import compact, plain
from amends.dialects import adcp

__all__ = ["error_object", "sentence"]

_NEEDED = ("code", "message", "recovery", "retry_after", "field", "suggestion")
_LONGEST = {"message": 1024, "field": 256, "suggestion": 512}
"""Bytes, where an error would be too large otherwise."""


def error_object(fault: Fault, *, levels: int = 64) -> dict[str, Any]:
    """
    The error object: plain JSON values, at most 4096 bytes.

    Args:
        fault: in the adcp vocabulary.
        levels: how deep the carrier may be nested.

    """
    error = adcp.encode(fault)
    for names in (None, tuple(name for name in error if name != "details"), _NEEDED):
        found = _plain(error if names is None else {name: error[name] for name in names if name in error})
        if found is not None and adcp.valid(found) and _within(found, levels):
            return found
    return {
        name: truncate(value, _LONGEST[name]) if name in _LONGEST and isinstance(value, str) else value
        for name in _NEEDED
        if (value := error.get(name)) is not None
    }


def _plain(error: dict[str, Any]) -> dict[str, Any] | None:
    """The same as every JSON reader sees it; None for what is no JSON, too large, or without end."""
    raw = compact(plain(error))
    if raw is None or len(raw) > adcp.MAX_ERROR_BYTES:
        return None
    try:
        # A lone surrogate has no bytes in UTF-8, and half of the carriers refuse it.
        return msgspec.json.decode(raw.decode("utf-8", "replace"), type=dict[str, Any])
    except msgspec.DecodeError:
        return None


def _within(value: Any, levels: int) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return not isinstance(value, list) or (levels > 0 and all(_within(item, levels - 1) for item in value))


def sentence(error: dict[str, Any]) -> str:
    """
    An error object for people and models, terse: what happened, and what to do about it in a few words.

    >>> sentence({"code": "RATE_LIMITED", "message": "Too many requests.", "recovery": "transient", "retry_after": 5})
    'Too many requests. Retry in 5 s.'
    """
    said = (error.get("message") or error["code"]).strip()
    parts = [said if said.endswith((".", "!", "?")) else f"{said}."]
    if error.get("recovery") == Recovery.TRANSIENT and error.get("retry_after") is not None:
        parts.append(f"Retry in {error['retry_after']:g} s.")
    elif error.get("recovery") == Recovery.CORRECTABLE and isinstance(error.get("suggestion"), str):
        parts.append(error["suggestion"])
    return " ".join(parts)
