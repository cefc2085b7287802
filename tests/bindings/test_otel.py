"""Tests of the OpenTelemetry binding with the real SDK."""

import runpy
import sys

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from amends import Fault, FaultError, Operation, recover
from amends.bindings import otel
from amends.errors import RateLimitedError
from amends.testing import FakeClock, Script

READ = Operation(name="read", read_only=True)


@pytest.fixture
def telemetry(monkeypatch):
    """Set providers for this test only, after `instrument`, as an application may do."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    otel._instruments.cache_clear()
    otel.instrument()
    otel.instrument()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    meters = MeterProvider([reader])
    monkeypatch.setattr(trace, "get_tracer", tracers.get_tracer)
    monkeypatch.setattr(metrics, "get_meter", meters.get_meter)
    with FakeClock():
        yield exporter, reader
    otel.uninstrument()
    otel._instruments.cache_clear()


def data_points(reader):
    """Return the metric data points by name."""
    found = {}
    for resource in reader.get_metrics_data().resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                found[metric.name] = list(metric.data.data_points)
    return found


def test_a_recovered_operation_has_its_spans(telemetry):
    """One span covers the wait, one the whole operation; both have names and codes only."""
    exporter, reader = telemetry
    recover(Script(RateLimitedError("s3cret", retry_after=1.5), "x"), "s3cret", operation=READ)
    wait, whole = exporter.get_finished_spans()
    assert (wait.name, whole.name) == ("amends.wait", "amends.recover")
    assert wait.attributes["error.code"] == "RATE_LIMITED"
    assert whole.attributes["amends.outcome"] == "recovered"
    assert whole.end_time - whole.start_time >= 1.5e9
    assert "error" not in whole.attributes
    found = data_points(reader)
    assert sum(point.value for point in found["amends.recovery.attempts"]) == 2
    assert found["amends.recovery.waits"][0].sum == 1.5
    assert "s3cret" not in wait.to_json() + whole.to_json()


@pytest.mark.parametrize(("code", "recoverable"), [("PERMISSION_DENIED", False), ("NOT_FOUND", True)])
def test_giving_up_sets_the_error_attributes(telemetry, code, recoverable):
    """T10: error, error.code, error.message, error.recoverable; on our span and on the current one."""
    exporter, reader = telemetry
    with trace.get_tracer("test").start_as_current_span("request"), pytest.raises(FaultError):
        recover(Script(Fault(code=code, message="s3cret")), operation=READ)
    whole, around = exporter.get_finished_spans()
    for span in (whole, around):
        assert span.attributes["error"] is True
        assert span.attributes["error.code"] == code
        assert span.attributes["error.recoverable"] is recoverable
        assert "s3cret" not in span.attributes["error.message"]
    assert not whole.status.is_ok
    (point,) = data_points(reader)["amends.recovery.give_ups"]
    assert point.attributes["amends.reason"] in {"terminal", "correctable"}


def test_other_events_make_no_spans(telemetry):
    """Hooks that run between calls are part of the operation's span."""
    exporter, _ = telemetry
    recover(Script(Fault(code="UNAUTHENTICATED"), "x"), refresh=lambda: None)
    assert [span.name for span in exporter.get_finished_spans()] == ["amends.wait", "amends.recover"]


def test_a_missing_package_is_named(monkeypatch):
    """The error has the command that installs it."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ImportError, match=r"amends\[otel\]"):
        runpy.run_path(otel.__file__)
