"""
What the recorder takes, as OpenTelemetry spans and metrics.

    import amends.recorder.otel
    amends.recorder.otel.instrument()

Needs only the API package. Without an SDK it does nothing, and it never configures a provider. It works with and without
`amends.record`. `amends gateway` calls it if OpenTelemetry is loaded, as `opentelemetry-instrument amends gateway …` does.

- The span `amends.failure` covers a failure from the first try to its end, below the span that is current at the end. It has
  `error.type`, the attributes of the HTTP, MCP and GenAI conventions that are known (`http.request.method`, `url.full`,
  `http.response.status_code`, `http.request.resend_count`, `mcp.method.name`, `gen_ai.tool.name`) and `amends.*`.
- `amends.failures` counts events by where they happened, outcome, code and upstream, and `amends.failure.duration` is a
  histogram of the seconds from the first try to the end.

Values are redacted like those of the recorder; messages of failures are never part of them.
"""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING

try:
    from opentelemetry import metrics, trace
except ImportError as missing:
    raise ImportError("amends.recorder.otel needs an extra: pip install 'amends[otel]'") from missing

from amends._version import __version__
from amends.core import recording
from amends.core.fault import Fault
from amends.recorder.clean import event_of
from amends.recorder.event import ENDS, Event

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

__all__ = ["instrument", "uninstrument"]

_SCOPE = "amends.recorder"
_SERVERS = frozenset({"http server", "mcp server", "a2a server", "command line"})
"""Where a failure is sent by us, so that no try of a call belongs to it."""
_TOOL = "tools/call"
_METHODS = ("tools/", "resources/", "prompts/", "completion/", "initialize", "ping", "server/")


def instrument() -> None:
    """Report failures from now on, to the providers that are configured by then. A second call changes nothing."""
    recording.add_sink(report)


def uninstrument() -> None:
    """Stop reporting failures."""
    recording.remove_sink(report)


def report(where: str, outcome: str, fault: Fault, facts: dict[str, object]) -> None:
    """Report one note of a binding."""
    event = event_of(time.time(), where, outcome, fault, facts)
    counted = _without_empty(
        {
            "error.type": event.fault.code,
            "amends.where": event.where,
            "amends.outcome": event.outcome,
            "amends.upstream": event.upstream,
        }
    )
    failures, duration = _instruments()
    failures.add(event.count, counted)
    if outcome not in ENDS:
        return
    if event.elapsed is not None:
        duration.record(event.elapsed, counted)
    end = int(event.at * 1e9)
    span = trace.get_tracer(_SCOPE, __version__).start_span(
        "amends.failure",
        attributes={**counted, **attributes(event)},
        start_time=end - int((event.elapsed or 0.0) * 1e9),
    )
    if not event.succeeded:
        span.set_status(trace.StatusCode.ERROR)
    span.end(end)


def attributes(event: Event) -> dict[str, AttributeValue]:
    """
    Return the attributes of the span, besides those of the metrics.

    >>> event = Event(at=0.0, where="gateway", outcome="passed-on", fault=Fault(code="TIMEOUT"), name="tools/call pay")
    >>> attributes(event)
    {'amends.operation': 'tools/call pay', 'amends.attempt': 1, 'mcp.method.name': 'tools/call', 'gen_ai.tool.name': 'pay'}
    """
    found: dict[str, AttributeValue] = {
        "amends.operation": event.name,
        "amends.trace_id": event.trace_id,
        "amends.vendor": event.vendor,
        "amends.attempt": event.attempt if event.where not in _SERVERS else 0,
        "http.request.method": event.method if event.url else "",
        "url.full": event.url,
        "http.response.status_code": event.status or event.fault.status or 0,
    }
    if event.url and event.attempt > 1:
        found["http.request.resend_count"] = event.attempt - 1
    if event.decision is not None:
        found["amends.decision"] = event.decision.action.value
        found["amends.reason"] = event.decision.reason
    method, _, tool = event.name.partition(" ")
    if method.startswith(_METHODS):
        found["mcp.method.name"] = method
        if method == _TOOL:
            found["gen_ai.tool.name"] = tool
    return _without_empty(found)


def _without_empty(found: dict[str, AttributeValue]) -> dict[str, AttributeValue]:
    return {name: value for name, value in found.items() if value}


@cache
def _instruments() -> tuple[metrics.Counter, metrics.Histogram]:
    """Return the metrics. They are made at the first failure, so the provider may be set before or after `instrument`."""
    meter = metrics.get_meter(_SCOPE, __version__)
    return (
        meter.create_counter(
            "amends.failures", unit="{failure}", description="Failures, tries and recoveries, as recorded"
        ),
        meter.create_histogram(
            "amends.failure.duration", unit="s", description="From the first try of a failed call to its end"
        ),
    )
