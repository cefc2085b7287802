"""The metrics of a runtime: numbers of jobs and sessions, without their contents."""

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from amends.arcp import connect, otel
from amends.errors.base import FaultError


@pytest.fixture
def collected(monkeypatch):
    """Collects the metrics: name → attributes and value."""
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    monkeypatch.setattr(metrics, "get_meter", provider.get_meter)
    otel._instruments.cache_clear()

    def collect():
        data = reader.get_metrics_data()
        found = data.resource_metrics[0].scope_metrics[0].metrics if data else []
        return {
            metric.name.removeprefix("amends.arcp."): {
                point.attributes.get("error.code", ""): point.value for point in metric.data.data_points
            }
            for metric in found
        }

    yield collect
    otel._instruments.cache_clear()
    provider.shutdown()


async def test_a_runtime_is_reported_while_it_runs(begin, collected):
    runtime = await begin()
    otel.instrument(runtime)
    otel.instrument(runtime)
    async with connect(runtime, token="alice-token") as client:
        assert await (await client.submit("echo", "s3cr3t")).done == "s3cr3t"
        with pytest.raises(FaultError):
            await (await client.submit("raising", {"code": "TIMEOUT"})).done
        found = collected()
    assert found["jobs.ended"] == {"": 1, "TIMEOUT": 1}
    assert (found["jobs.running"], found["sessions"], found["nodes"]) == ({"": 0}, {"": 1}, {"": 1})
    assert found["jobs.taken_over"] == {"": 0}
    assert "s3cr3t" not in repr(found)
    otel.uninstrument(runtime)
    assert "jobs.running" not in {name for name, points in collected().items() if points}
