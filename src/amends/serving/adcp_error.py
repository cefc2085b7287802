"""
AdCP error objects as servers send them: with a trace id, not nested too deep, and one sentence for people.

`amends.dialects.adcp_size` makes the object one that every reader accepts (A7).
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.dialects import adcp

__all__ = ["TRACE", "error_object", "sentence"]

TRACE = "trace_id"
"""The extra member that holds the trace id; AdCP defines none, and its readers keep members they do not know."""

_NEEDED = ("code", "message", "recovery", "retry_after", "field", "suggestion")


def error_object(fault: Fault, *, levels: int = 64) -> dict[str, Any]:
    """
    Return the AdCP error object of a fault, without its parts: plain JSON values, at most 4096 bytes.

    The fault's trace id becomes the member `trace_id`, except in an error received from an upstream, which is passed
    on unchanged.

    Args:
        fault: a fault in the adcp vocabulary.
        levels: how deeply values may be nested.

    """
    if fault.trace_id is not None and fault.origin is None:
        fault = replace(fault, extensions={TRACE: fault.trace_id, **fault.extensions})
    error = adcp.encode_alone(fault)
    for names in (tuple(error), tuple(name for name in error if name != "details"), _NEEDED):
        error = {name: error[name] for name in names if name in error}
        if _within(error, levels):
            break
    return error


def _within(value: object, levels: int) -> bool:
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
