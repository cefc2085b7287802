"""
Report tasks to OpenTelemetry: a span for each attempt, a span for each task, and metrics.

    import amends.tasks.otel
    amends.tasks.otel.instrument()

- The span `amends.task.attempt` covers one attempt, so that spans of the agent are its children. If the attempt fails, it has
  `error`, `error.code`, `error.message` and `error.recoverable` (T10). The span `amends.task` covers a task from its first attempt
  to its end.
- `amends.tasks.attempts` counts attempts by outcome, `amends.tasks.ended` counts tasks by status, and `amends.tasks.duration` is
  a histogram of seconds.

Only the API package is needed, and no provider is configured. `error.message` is the standard message of the code, never the text
of a failure.
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
    """Start to report tasks to the configured providers. Calling it twice has no further effect."""
    add_hook(span_event)


def uninstrument() -> None:
    """Stop to report tasks."""
    remove_hook(span_event)


def span_event(event: TaskEvent) -> AbstractContextManager[Any] | None:
    """The hook: reports one event as spans and metrics."""
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
        record_exception=False,  # its text may be internal
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
    """The attributes of a failure (T10)."""
    return {
        "error": True,
        "error.code": code,
        "error.message": row_for("task", code).message,
        "error.recoverable": recoverable,
    }


@cache
def _instruments() -> tuple[Any, Any, Any]:
    """The instruments, created at the first event, so that a provider may be configured after `instrument`."""
    meter = metrics.get_meter(_SCOPE, __version__)
    return (
        meter.create_counter(
            "amends.tasks.attempts", unit="{call}", description="Attempts of agents' capabilities"
        ),
        meter.create_counter("amends.tasks.ended", unit="{task}", description="Ended tasks"),
        meter.create_histogram(
            "amends.tasks.duration", unit="s", description="Time from the first attempt to the end"
        ),
    )
