"""T10, T11: spans, metrics, logs and hooks."""

import logging

import pytest
import structlog
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from amends.errors import task as errors
from amends.tasks import Agent, Step, TaskEvent, add_hook, events, otel, remove_hook, sequence, set_hooks
from amends.tasks.events import log_event, record_of, structlog_event


@pytest.fixture
def agent():
    made = Agent("content-agent")

    @made.capability(read_only=True)
    async def draft_post(payload, ctx):
        trace.get_tracer("inner").start_span("inside").end()
        if payload == "fail":
            raise errors.McpNotConnectedError("s3cret 10.0.0.7", details={"mcp": "notion", "why": "s3cret"})
        if payload == "wait" and ctx.attempt == 1:
            raise errors.McpRateLimitedError("s3cret", retry_after=2)
        return "s3cret result"

    return made


@pytest.fixture
def spans(monkeypatch):
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    otel._instruments.cache_clear()
    otel.instrument()
    otel.instrument()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", tracers.get_tracer)
    monkeypatch.setattr(metrics, "get_meter", MeterProvider([reader]).get_meter)
    yield exporter, reader
    otel.uninstrument()
    otel._instruments.cache_clear()
    events._hooks = (log_event,)


async def test_spans_of_a_failed_task(manual, agent, spans):
    """The spans of the attempt and the task have the four error attributes, and no text of the failure."""
    manual.register(agent)
    await manual.submit("draft_post", "fail", id="t")
    await manual.drain()
    inside, attempt, task = spans[0].get_finished_spans()
    expected = {
        "error": True,
        "error.code": "MCP_NOT_CONNECTED",
        "error.message": "Required MCP is not connected",
        "error.recoverable": True,
    }
    for span in (attempt, task):
        assert expected.items() <= dict(span.attributes).items()
        assert span.status.status_code is trace.StatusCode.ERROR
        assert not span.events
    assert (attempt.name, task.name) == ("amends.task.attempt", "amends.task")
    assert attempt.attributes["amends.task"] == "t"
    assert inside.parent.span_id == attempt.context.span_id
    assert "s3cret" not in str([span.to_json() for span in (attempt, task)])


async def test_counters(manual, clock, agent, spans):
    """Attempts by code, tasks by status."""
    manual.register(agent)
    for payload in ("fail", "wait", "go"):
        await manual.submit("draft_post", payload)
    await manual.drain()
    clock.pass_(2)
    await manual.drain()
    found = {}
    for resource in spans[1].get_metrics_data().resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                found[metric.name] = {
                    point.attributes.get("error.code", point.attributes.get("amends.status")): point
                    for point in metric.data.data_points
                }
    assert found["amends.tasks.attempts"]["MCP_NOT_CONNECTED"].value == 1
    assert found["amends.tasks.attempts"]["MCP_RATE_LIMITED"].value == 1
    assert found["amends.tasks.ended"]["completed"].value == 2
    assert found["amends.tasks.duration"]["completed"].max == 2
    assert otel.span_event(TaskEvent(kind="retry", at=0, task="t")) is None


async def test_the_log_record(manual, agent, caplog):
    """It has level, timestamp, agent, taskId and error {code, message}."""
    manual.register(agent)
    await manual.submit("draft_post", "fail", id="uuid")
    await manual.drain()
    (record,) = [each for each in caplog.records if hasattr(each, "amends")]
    fields = record.amends
    assert record.levelno == logging.ERROR
    assert fields["level"] == "error"
    assert fields["timestamp"] == "1970-01-12T13:46:40Z"
    assert (fields["agent"], fields["taskId"]) == ("content-agent", "uuid")
    assert fields["error"] == {"code": "MCP_NOT_CONNECTED", "message": "Required MCP is not connected"}
    assert "s3cret" not in caplog.text.partition("Traceback")[0]


async def test_structlog(manual, agent):
    """The same record. The process-wide configuration of structlog is restored."""
    before = structlog.get_config()
    structlog.reset_defaults()
    set_hooks(structlog_event)
    try:
        manual.register(agent)
        with structlog.testing.capture_logs() as logs:
            await manual.submit("draft_post", "fail", id="uuid")
            await manual.drain()
        (fields,) = logs
        assert (fields["log_level"], fields["taskId"], fields["agent"]) == ("error", "uuid", "content-agent")
        assert fields["error"]["code"] == "MCP_NOT_CONNECTED"
    finally:
        events._hooks = (log_event,)
        structlog.configure(**before)


async def test_the_events_of_a_task(manual, clock, agent, events):
    """Each event is published once, in order."""

    @agent.capability(keyed=True, undo=lambda: None)
    async def book(payload):
        return 1

    manual.register(agent)
    await manual.submit("draft_post", "wait")
    await manual.drain()
    clock.pass_(2)
    await manual.drain()
    assert [event.kind for event in events] == ["attempt", "retry", "attempt", "finished", "ended"]
    assert events[1].delay == 2
    events.clear()
    await manual.submit(
        sequence(Step(name="a", type="book"), Step(name="b", type="draft_post", payload="fail"))
    )
    await manual.drain()
    kinds = [event.kind for event in events]
    assert kinds == ["attempt", "finished", "attempt", "failed", "undone", "ended"]
    assert events[-1].status == "failed"
    assert record_of(events[1]) is None


async def test_a_hook_that_fails_changes_nothing(manual, agent, caplog):
    """The exception is logged, and the task completes."""

    def broken(event):
        raise OSError

    add_hook(broken)
    try:
        manual.register(agent)
        handle = await manual.submit("draft_post")
        await manual.drain()
        assert (await handle.response()).ok
        assert "a task hook failed" in caplog.text
    finally:
        remove_hook(broken)
        events._hooks = (log_event,)
    set_hooks()
    events.publish(await manual.state(handle.id), "ended", at=0.0)
    events._hooks = (log_event,)
