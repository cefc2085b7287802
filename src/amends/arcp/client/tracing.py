"""The trace of a submission (section 11): OpenTelemetry's current one, if the program uses OpenTelemetry."""

from __future__ import annotations

import sys

__all__ = ["current_trace_id"]


def current_trace_id() -> str | None:
    """32 hexadecimal digits, or None. OpenTelemetry is not imported: a program that uses it has imported it."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    context = trace.get_current_span().get_span_context()
    return f"{context.trace_id:032x}" if context.is_valid else None
