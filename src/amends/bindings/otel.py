"""
Events of recovery as OpenTelemetry spans and metrics, with the attributes of the agent error contract (T10).

Needs only the API package. Without an SDK it does nothing, and it never configures a provider.

    import amends.bindings.otel
    amends.bindings.otel.instrument()

- The span `amends.wait` covers each wait before a repeat. The span `amends.recover` covers an operation whose first call
  failed, from that call to its end. Both have `error.code`, `error.type` and `amends.*`. If recovery gave up, the span
  also has `error`, `error.message` and `error.recoverable` (T10), and so has the span that was current then.
- `amends.recovery.attempts` counts the calls of operations whose first call failed, by code; `amends.recovery.waits` is a
  histogram of seconds; `amends.recovery.give_ups` counts by reason. An operation whose first call succeeds is not
  counted and costs nothing.

`error.message` is the meaning of the code. Messages of failures and arguments are never part of an event.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from functools import cache

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
    """
    Report events from now on, to the providers that are configured by then. A second call changes nothing.

    >>> instrument()
    >>> uninstrument()
    """
    add_hook(span_event)


def uninstrument() -> None:
    """
    Stop reporting events.

    >>> instrument()
    >>> uninstrument()
    """
    remove_hook(span_event)


def span_event(event: Event) -> AbstractContextManager[object] | None:
    """
    Report one event as spans and metrics. For a retry, return the span that covers the wait.

    `instrument` adds it to the hooks. To replace the log records by spans, make it the only hook:

        amends.recovery.set_hooks(span_event)
    """
    attributes = _attributes(event)
    attempts, waits, give_ups = _instruments()
    if event.kind == "retry":
        attempts.add(1, attributes)
        waits.record(event.delay or 0.0, attributes)
        covering: AbstractContextManager[object] = trace.get_tracer(
            _SCOPE, __version__
        ).start_as_current_span("amends.wait", attributes={**attributes, "amends.attempt": event.attempt})
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


def _attributes(event: Event) -> dict[str, str | bool | int]:
    """Return the attributes of every span and metric. Each has few distinct values, as metrics need."""
    return {
        "amends.operation": event.operation,
        "amends.reason": event.reason,
        "error.code": event.code,
        "error.type": event.code,
    }


def _error(event: Event) -> dict[str, str | bool | int]:
    """Return the attributes of an error (T10). A correctable one counts as recoverable, as the contract demands."""
    return {
        "error": True,
        "error.code": event.code,
        "error.message": row_for(event.vocabulary, event.code).message,
        "error.recoverable": event.recovery is not Recovery.TERMINAL,
    }


@cache
def _instruments() -> tuple[metrics.Counter, metrics.Histogram, metrics.Counter]:
    """Return the metrics. They are made at the first event, so the provider may be set before or after `instrument`."""
    meter = metrics.get_meter(_SCOPE, __version__)
    return (
        meter.create_counter(
            "amends.recovery.attempts",
            unit="{attempt}",
            description="Calls of operations whose first call failed",
        ),
        meter.create_histogram("amends.recovery.waits", unit="s", description="Waits before a repeat"),
        meter.create_counter(
            "amends.recovery.give_ups",
            unit="{operation}",
            description="Operations recovery gave up on, by reason",
        ),
    )
