"""All spans of a task are in one trace: that of its submission, whichever process runs it."""

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from amends.errors import task as errors
from amends.tasks import Agent, otel
from tests.tasks.conftest import advance_until_rest


@pytest.fixture
def exported(monkeypatch):
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", lambda *names: provider.get_tracer("tests"))
    otel.instrument()
    yield exporter
    otel.uninstrument()


@pytest.mark.parametrize("joined", [True, False])
async def test_one_trace_per_task(manual, clock, exported, joined):
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def work(payload, ctx):
        if ctx.attempt < 3:
            raise errors.AgentUnavailableError

    manual.register(agent)
    if joined:
        with trace.get_tracer("caller").start_as_current_span("caller"):
            handle = await manual.submit("work", id="t")
    else:
        handle = await manual.submit("work", id="t")
    await advance_until_rest(manual, clock, handle)
    spans = {span.name: span for span in exported.get_finished_spans()}
    attempts = [span for span in exported.get_finished_spans() if span.name == "amends.task.attempt"]
    assert len(attempts) == 3
    assert len({span.context.trace_id for span in exported.get_finished_spans()}) == 1
    assert {span.parent.span_id for span in attempts} == {spans["amends.task"].parent.span_id}
    if joined:
        assert attempts[0].parent.span_id == spans["caller"].context.span_id
