"""The trace a submission belongs to (section 11): OpenTelemetry's current one, where somebody traces."""

from __future__ import annotations

import sys

__all__ = ["current_trace_id"]


def current_trace_id() -> str | None:
    """32 hexadecimal digits, or None. OpenTelemetry is not imported: a program that traces has loaded it."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    context = trace.get_current_span().get_span_context()
    return f"{context.trace_id:032x}" if context.is_valid else None
