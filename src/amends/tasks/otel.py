"""
Tasks in OpenTelemetry: a span for every call of an agent, one for the whole task, and counters.

    import amends.tasks.otel
    amends.tasks.otel.instrument()

- Span `amends.task.attempt` covers each call, so that what the agent does is below it; one that fails carries `error`,
  `error.code`, `error.message` and `error.recoverable` (T10). Span `amends.task` covers a task from its first call to its end.
- `amends.tasks.attempts` counts calls by outcome, `amends.tasks.ended` tasks by status, `amends.tasks.duration` is a histogram
  of seconds.

Needs the API package alone; never configures a provider. `error.message` is what the code means, never what a failure said.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

try:
    from opentelemetry import metrics, trace
except ImportError as missing:
    raise ImportError("amends.tasks.otel needs an extra: pip install 'amends[otel]'") from missing

from amends._version import __version__
from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.vocabulary import row_for
from amends.dialects.outgoing import outgoing
from amends.errors.base import FaultError
from amends.tasks.telemetry import TaskEvent, add_hook, remove_hook

__all__ = ["instrument", "span_event", "uninstrument"]

_SCOPE = "amends.tasks"


def instrument() -> None:
    """Report tasks from now on, to whatever providers are configured by then. Twice is as good as once."""
    add_hook(span_event)


def uninstrument() -> None:
    """Stop reporting."""
    remove_hook(span_event)


def span_event(event: TaskEvent) -> AbstractContextManager[Any] | None:
    """One event as spans and metrics."""
    if event.kind == "attempt":
        return _attempt(event)
    if event.kind != "ended":
        return None
    _, ended, duration = _instruments()
    status = {"amends.status": event.status or ""}
    ended.add(1, {**status, **_named(event), **({"error.code": event.code} if event.code else {})})
    began = event.at if event.began is None else event.began
    duration.record(max(0.0, event.at - began), status)
    span = trace.get_tracer(_SCOPE, __version__).start_span(
        "amends.task",
        attributes={**status, **_named(event), "amends.task": event.task},
        start_time=int(began * 1e9),
    )
    if event.code is not None:
        span.set_attributes(_error(event.code, event.recoverable))
        span.set_status(trace.StatusCode.ERROR)
    span.end(int(event.at * 1e9))
    return None


@contextmanager
def _attempt(event: TaskEvent) -> Iterator[None]:
    attempts, _, _ = _instruments()
    names = _named(event)
    with trace.get_tracer(_SCOPE, __version__).start_as_current_span(
        "amends.task.attempt",
        attributes={**names, "amends.task": event.task, "amends.attempt": event.attempt or 1},
        record_exception=False,  # its text stays here
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        except FaultError as error:
            fault: Fault = outgoing(error.fault, "telemetry")
            span.set_attributes(_error(fault.code, fault.recovery is not Recovery.TERMINAL))
            span.set_status(trace.StatusCode.ERROR)
            attempts.add(1, {**names, "error.code": fault.code})
            raise
        attempts.add(1, names)


def _named(event: TaskEvent) -> dict[str, Any]:
    return {"amends.agent": event.agent or "", "amends.capability": event.capability or ""}


def _error(code: str, recoverable: bool) -> dict[str, Any]:
    """A failure's attributes, as S3 names them (T10)."""
    return {
        "error": True,
        "error.code": code,
        "error.message": row_for("task", code).message,
        "error.recoverable": recoverable,
    }


@cache
def _instruments() -> tuple[Any, Any, Any]:
    """Made at the first event, so that it does not matter whether the provider was set before or after us."""
    meter = metrics.get_meter(_SCOPE, __version__)
    return (
        meter.create_counter("amends.tasks.attempts", unit="{call}", description="Calls of agents"),
        meter.create_counter("amends.tasks.ended", unit="{task}", description="Tasks by their end"),
        meter.create_histogram(
            "amends.tasks.duration", unit="s", description="From the first call to the end"
        ),
    )
