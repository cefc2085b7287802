"""
Recovery in OpenTelemetry: spans with S3's attributes, and metrics. Needs the API package alone; without an SDK it does
nothing, and it never configures a provider.

    import amends.bindings.otel
    amends.bindings.otel.instrument()

- Span `amends.wait` covers each wait before a repeat; span `amends.recover` covers an operation that did not succeed at
  once, from its first call to its end. Both carry `error.code`, `error.type` and `amends.*`; one that was given up on
  also `error`, `error.message` and `error.recoverable` (T10), and so does the span it happened in.
- `amends.recovery.attempts` counts calls of operations that did not succeed at once, by code; `amends.recovery.waits` is
  a histogram of seconds; `amends.recovery.give_ups` counts by reason. An operation that succeeds at once costs
  nothing and is not counted.

`error.message` is what the code means, never what a failure said: texts and arguments do not get here.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

try:
    from opentelemetry import metrics, trace
except ImportError as missing:
    raise ImportError("amends.bindings.otel needs an extra: pip install 'amends[otel]'") from missing

from amends._version import __version__
from amends.core.enums import Recovery
from amends.core.vocabulary import row_for
from amends.recovery.events import Event, add_hook, remove_hook

__all__ = ["instrument", "span_event", "uninstrument"]

_SCOPE = "amends.recovery"
_ENDS = frozenset({"gave-up", "recovered", "fallback"})


def instrument() -> None:
    """Report recovery from now on, to whatever providers are configured by then. Twice is as good as once."""
    add_hook(span_event)


def uninstrument() -> None:
    """Stop reporting."""
    remove_hook(span_event)


def span_event(event: Event) -> AbstractContextManager[Any] | None:
    """One event as spans and metrics. For a retry, the span that covers the wait."""
    attributes = _attributes(event)
    attempts, waits, give_ups = _instruments()
    if event.kind == "retry":
        attempts.add(1, attributes)
        waits.record(event.delay or 0.0, attributes)
        covering: AbstractContextManager[Any] = trace.get_tracer(_SCOPE, __version__).start_as_current_span(
            "amends.wait", attributes={**attributes, "amends.attempt": event.attempt}
        )
        return covering
    if event.kind not in _ENDS:
        return None
    failed = event.kind == "gave-up"
    whole = {**attributes, "amends.attempt": event.attempt, "amends.outcome": event.kind}
    attempts.add(1, attributes)
    if failed:
        give_ups.add(1, attributes)
        error = _error(event)
        whole |= error
        trace.get_current_span().set_attributes(error)
    now = time.time_ns()
    span = trace.get_tracer(_SCOPE, __version__).start_span(
        "amends.recover", attributes=whole, start_time=now - int(event.elapsed * 1e9)
    )
    if failed:
        span.set_status(trace.StatusCode.ERROR)
    span.end(now)
    return None


def _attributes(event: Event) -> dict[str, Any]:
    """What every span and metric carries; few values each, fit for a time series."""
    return {
        "amends.operation": event.operation,
        "amends.reason": event.reason,
        "error.code": event.code,
        "error.type": event.code,
    }


def _error(event: Event) -> dict[str, Any]:
    """T10. Correctable counts as recoverable, as S3 has it."""
    return {
        "error": True,
        "error.code": event.code,
        "error.message": row_for(event.vocabulary, event.code).message,
        "error.recoverable": event.recovery is not Recovery.TERMINAL,
    }


@cache
def _instruments() -> tuple[Any, Any, Any]:
    """Made at the first event, so that it does not matter whether the provider was set before or after us."""
    meter = metrics.get_meter(_SCOPE, __version__)
    return (
        meter.create_counter(
            "amends.recovery.attempts",
            unit="{attempt}",
            description="Calls of operations that did not succeed at once",
        ),
        meter.create_histogram("amends.recovery.waits", unit="s", description="Waits before a repeat"),
        meter.create_counter(
            "amends.recovery.give_ups",
            unit="{operation}",
            description="Operations recovery gave up on, by reason",
        ),
    )
