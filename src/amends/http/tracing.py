"""
One id for a failure: in the response, in the log line, in the span (P5).

The id of the current OpenTelemetry trace where there is one, else that of the incoming `traceparent`, else a fresh one.
OpenTelemetry is not imported: an application that traces has loaded it already.
"""

from __future__ import annotations

import re
import sys
from os import urandom
from typing import Any

from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.dialects.outgoing import outgoing

__all__ = ["current_span", "mark", "trace_id"]

# W3C Trace Context: version, trace id, parent id, flags. Version ff and an id of zeros are invalid.
_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?"
)


_UNSEEN: Any = object()


def trace_id(traceparent: str | None = None, span: Any = _UNSEEN) -> str:
    """The id of what is going on now: 32 hexadecimal digits. `span` is the current one, where it is known already."""
    if span is _UNSEEN:
        span = current_span()
    if span is not None:
        return f"{span.get_span_context().trace_id:032x}"
    found = _TRACEPARENT.fullmatch(traceparent) if traceparent else None
    return found[1] if found else urandom(16).hex()


def current_span() -> Any:
    """The current span of OpenTelemetry, or None when nobody traces."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    span = trace.get_current_span()
    return span if span.get_span_context().is_valid else None


def mark(span: Any, fault: Fault, status: int, words: str) -> None:
    """Say on the span what went wrong (T10). `words` are the code's own, never what a failure said."""
    if not span.is_recording():
        return
    code = outgoing(fault, "telemetry").code
    span.set_attributes(
        {
            "error": True,
            "error.type": code,
            "error.code": code,
            "error.message": words,
            "error.recoverable": fault.recovery is not Recovery.TERMINAL,
        }
    )
    if status >= 500:
        # Only a server's own failures count as errors of its span (OpenTelemetry's HTTP conventions).
        span.set_status(sys.modules["opentelemetry.trace"].StatusCode.ERROR)
