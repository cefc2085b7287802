"""
AdCP error objects as servers send them: an object that every reader accepts (A7), and one sentence for people.

Values that are not JSON, or that would make the object too large, are left out: first `details`, then all members that
a caller does not need in order to act.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.text import truncate
from amends.core.wire import compact, plain
from amends.dialects import adcp

__all__ = ["TRACE", "error_object", "sentence"]

TRACE = "trace_id"
"""The extra member that holds the trace id; AdCP defines none, and its readers keep members they do not know."""

_NEEDED = ("code", "message", "recovery", "retry_after", "field", "suggestion")
_LONGEST = {"message": 1024, "field": 256, "suggestion": 512}
"""Bytes to which these members are cut if the error would be too large otherwise."""


def error_object(fault: Fault, *, levels: int = 64) -> dict[str, Any]:
    """
    Return the AdCP error object of a fault: plain JSON values, at most 4096 bytes.

    The fault's trace id becomes the member `trace_id`, except in an error received from an upstream, which is passed
    on unchanged.

    Args:
        fault: a fault in the adcp vocabulary.
        levels: how deeply values may be nested.

    """
    if fault.trace_id is not None and fault.origin is None:
        fault = replace(fault, extensions={TRACE: fault.trace_id, **fault.extensions})
    error = adcp.encode(fault)
    for names in (None, tuple(name for name in error if name != "details"), _NEEDED):
        plain = _plain(error if names is None else {name: error[name] for name in names if name in error})
        if plain is not None and adcp.valid(plain) and _within(plain, levels):
            return plain
    return {
        name: truncate(value, _LONGEST[name]) if name in _LONGEST and isinstance(value, str) else value
        for name in _NEEDED
        if (value := error.get(name)) is not None
    }


def _plain(error: dict[str, Any]) -> dict[str, Any] | None:
    """Return the object after a round trip through JSON, or None if it is not JSON, too large, or contains itself."""
    raw = compact(plain(error))
    if raw is None or len(raw) > adcp.MAX_ERROR_BYTES:
        return None
    try:
        # A lone surrogate cannot be encoded as UTF-8, and half of the carriers refuse it.
        return msgspec.json.decode(raw.decode("utf-8", "replace"), type=dict[str, Any])
    except msgspec.DecodeError:
        return None


def _within(value: Any, levels: int) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return not isinstance(value, list) or (levels > 0 and all(_within(item, levels - 1) for item in value))


def sentence(error: dict[str, Any]) -> str:
    """
    Return an error object as short text: the message, then the wait or the suggestion.

    >>> sentence({"code": "RATE_LIMITED", "message": "Too many requests.", "recovery": "transient", "retry_after": 5})
    'Too many requests. Retry in 5 s.'
    """
    message = (error.get("message") or error["code"]).strip()
    parts = [message if message.endswith((".", "!", "?")) else f"{message}."]
    if error.get("recovery") == Recovery.TRANSIENT and error.get("retry_after") is not None:
        parts.append(f"Retry in {error['retry_after']:g} s.")
    elif error.get("recovery") == Recovery.CORRECTABLE and isinstance(error.get("suggestion"), str):
        parts.append(error["suggestion"])
    return " ".join(parts)
