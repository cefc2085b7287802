"""The recorder's events as OpenTelemetry spans and metrics, with the SDK."""

import doctest

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, mcp_attributes
from opentelemetry.semconv.attributes import error_attributes, http_attributes, url_attributes

import amends
from amends import Fault
from amends.core import recording
from amends.recorder import otel


@pytest.fixture
def exported(monkeypatch):
    """Return the exporter of spans and the reader of metrics of fresh providers."""
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    meters = MeterProvider([reader])
    monkeypatch.setattr(trace, "get_tracer", tracers.get_tracer)
    monkeypatch.setattr(metrics, "get_meter", meters.get_meter)
    otel._instruments.cache_clear()
    otel.instrument()
    otel.instrument()
    yield spans, reader
    otel.uninstrument()
    otel._instruments.cache_clear()


def points(reader):
    (resource,) = reader.get_metrics_data().resource_metrics
    (scope,) = resource.scope_metrics
    return {each.name: list(each.data.data_points) for each in scope.metrics}


def test_examples():
    """The examples in the docstrings run."""
    found = doctest.testmod(otel)
    assert (found.attempted > 0, found.failed) == (True, 0)


def test_a_recovered_call(exported):
    """One span with the conventions' attributes below the current one, a count per event, and the whole duration."""
    spans, reader = exported
    answers = [amends.errors.RateLimitedError("secret text", retry_after=0.001), "ok"]

    def call():
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    operation = amends.Operation(
        name="GET /a", method="GET", url="https://user:pw@shop.example/a?key=1", read_only=True
    )
    tracer = TracerProvider().get_tracer("t")
    with tracer.start_as_current_span("outer") as outer:
        amends.recover(call, operation=operation)
    (span,) = spans.get_finished_spans()
    assert span.parent.span_id == outer.get_span_context().span_id
    found = dict(span.attributes)
    assert found[error_attributes.ERROR_TYPE] == "RATE_LIMITED"
    assert found[http_attributes.HTTP_REQUEST_METHOD] == "GET"
    assert found[url_attributes.URL_FULL] == "https://shop.example/a"
    assert found[http_attributes.HTTP_REQUEST_RESEND_COUNT] == 1
    assert found["amends.outcome"] == "recovered"
    assert span.status.status_code is trace.StatusCode.UNSET
    assert span.end_time - span.start_time >= 1_000_000
    assert "secret" not in str(found)
    counted = points(reader)
    outcomes = {each.attributes["amends.outcome"]: each.value for each in counted["amends.failures"]}
    assert outcomes == {"retry": 1, "recovered": 1}
    assert counted["amends.failure.duration"][0].count == 1


def test_a_failure_that_the_gateway_passes_on(exported):
    """Attributes of MCP; an error."""
    spans, _ = exported
    fault = Fault(code="CONFLICT", status=409, message="at db.internal")
    recording.emit("gateway", "passed-on", fault, name="tools/call pay", upstream="seats", trace_id="4bf9")
    (span,) = spans.get_finished_spans()
    found = dict(span.attributes)
    assert found[mcp_attributes.MCP_METHOD_NAME] == "tools/call"
    assert found[gen_ai_attributes.GEN_AI_TOOL_NAME] == "pay"
    assert (found["amends.upstream"], found["amends.trace_id"]) == ("seats", "4bf9")
    assert found[http_attributes.HTTP_RESPONSE_STATUS_CODE] == 409
    assert span.status.status_code is trace.StatusCode.ERROR
    assert "db.internal" not in str(found)


def test_with_and_without_a_recorder(exported, tmp_path):
    """Both get every note; after uninstrument only the recorder does."""
    spans, _ = exported
    with amends.record(f"sqlite:///{tmp_path}/r.db") as recorder:
        recording.emit("http server", "sent", Fault(code="CONFLICT"), name="POST /orders", status=409)
        otel.uninstrument()
        recording.emit("http server", "sent", Fault(code="CONFLICT"), name="POST /orders", status=409)
        recorder.flush()
        assert len(recorder.recent()) == 2
    assert len(spans.get_finished_spans()) == 1
    assert not recording.active()
