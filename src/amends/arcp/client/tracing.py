"""The trace a submission belongs to (section 11): OpenTelemetry's current one, where somebody traces."""

from __future__ import annotations

import sys

__all__ = ["current_trace_id"]


def current_trace_id() -> str | None:
    """32 hexadecimal digits, or None. OpenTelemetry is not imported: a program that traces has loaded it."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    from amends.http.tracing import current_span

    span = current_span()
    return None if span is None else f"{span.get_span_context().trace_id:032x}"
