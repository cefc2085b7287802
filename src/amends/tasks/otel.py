"""
Report tasks to OpenTelemetry: a span for each attempt, a span for each task, and metrics.

    import amends.tasks.otel
    amends.tasks.otel.instrument()

- All spans of a task are in one trace: the one of the span that was current when the task was submitted, or one that is derived
  from the task's id. They are children of that span, whichever process runs the task.
- The span `amends.task.attempt` covers one attempt, so that spans of the agent are its children. If the attempt fails, it has
  `error`, `error.code`, `error.message` and `error.recoverable` (T10). The span `amends.task` covers a task from its first attempt
  to its end; a request that is refused has one with the status `refused`.
- `amends.tasks.attempts` counts attempts by outcome, `amends.tasks.ended` counts tasks by status, and `amends.tasks.duration` is
  a histogram of seconds.

Only the API package is needed, and no provider is configured. `error.message` is the standard message of the code, never the text
of a failure.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING

try:
    from opentelemetry import metrics, trace
except ImportError as missing:
    raise ImportError("amends.tasks.otel needs an extra: pip install 'amends[otel]'") from missing

from amends._version import __version__
from amends.core.enums import Recovery
from amends.core.vocabulary import row_for
from amends.dialects.outgoing import outgoing_code
from amends.errors.base import FaultError
from amends.tasks.events import TaskEvent, add_hook, remove_hook

if TYPE_CHECKING:
    from opentelemetry.context import Context

__all__ = ["instrument", "span_event", "uninstrument"]

_SCOPE = "amends.tasks"
_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


def instrument() -> None:
    """Start to report tasks to the configured providers. Calling it twice has no further effect."""
    add_hook(span_event)


def uninstrument() -> None:
    """Stop to report tasks."""
    remove_hook(span_event)


def span_event(event: TaskEvent) -> AbstractContextManager[object] | None:
    """The hook: reports one event as spans and metrics."""
    if event.kind == "submitted":
        return nullcontext(_current_trace())
    if event.kind == "attempt":
        return _attempt(event)
    if event.kind not in {"ended", "refused"}:
        return None
    _, ended, duration = _instruments()
    status = {"amends.status": event.status or ("refused" if event.kind == "refused" else "")}
    ended.add(1, {**status, **_named(event), **({"error.code": event.code} if event.code else {})})
    began = event.at if event.began is None else event.began
    duration.record(max(0.0, event.at - began), status)
    span = trace.get_tracer(_SCOPE, __version__).start_span(
        "amends.task",
        # A refused request is no task: its span belongs to the request that it came in.
        context=_parent(event) if event.kind == "ended" or event.trace is not None else None,
        attributes={**status, **_named(event), "amends.task": event.task},
        start_time=int(began * 1e9),
    )
    if event.code is not None:
        span.set_attributes(_error(event.code, event.recoverable))
        span.set_status(trace.StatusCode.ERROR)
    span.end(int(event.at * 1e9))
    return None


span_event.wants_submissions = True  # type: ignore[attr-defined]


def _current_trace() -> str | None:
    """The W3C `traceparent` of the current span; None if there is none."""
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def _parent(event: TaskEvent) -> Context:
    """The context in which the spans of a task start."""
    found = _TRACEPARENT.fullmatch(event.trace or "")
    if found is not None:
        trace_id, span_id, flags = (int(part, 16) for part in found.groups())
    else:
        digest = hashlib.sha256(event.task.encode(errors="replace")).digest()
        trace_id, span_id = int.from_bytes(digest[:16]), int.from_bytes(digest[16:24])
        flags = trace.TraceFlags.SAMPLED
    context = trace.SpanContext(trace_id, span_id, is_remote=True, trace_flags=trace.TraceFlags(flags))
    return trace.set_span_in_context(trace.NonRecordingSpan(context))


@contextmanager
def _attempt(event: TaskEvent) -> Iterator[None]:
    attempts, _, _ = _instruments()
    names = _named(event)
    with trace.get_tracer(_SCOPE, __version__).start_as_current_span(
        "amends.task.attempt",
        context=_parent(event),
        attributes={**names, "amends.task": event.task, "amends.attempt": event.attempt or 1},
        record_exception=False,  # its text may be internal
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        except FaultError as error:
            code = outgoing_code(error.fault, "telemetry")
            span.set_attributes(_error(code, error.fault.recovery is not Recovery.TERMINAL))
            span.set_status(trace.StatusCode.ERROR)
            attempts.add(1, {**names, "error.code": code})
            raise
        attempts.add(1, names)


def _named(event: TaskEvent) -> dict[str, str]:
    return {"amends.agent": event.agent or "", "amends.capability": event.capability or ""}


def _error(code: str, recoverable: bool) -> dict[str, str | bool]:
    """The attributes of a failure (T10)."""
    return {
        "error": True,
        "error.code": code,
        "error.message": row_for("task", code).message,
        "error.recoverable": recoverable,
    }


@cache
def _instruments() -> tuple[metrics.Counter, metrics.Counter, metrics.Histogram]:
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
