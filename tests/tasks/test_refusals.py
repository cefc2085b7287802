"""Requests that are refused, and delegations whose caller handles their failure, leave a log record, a span and metadata."""

import json
import logging

import pytest
from opentelemetry import trace

from amends.errors import FaultError
from amends.errors import task as errors
from amends.serving.tracing import handling
from amends.tasks import Agent, Orchestrator, Request, Step
from tests.tasks.test_otel import exported

__all__ = ["exported"]

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

REFUSED = {
    "agent": ({"id": "t", "type": "work", "agent": "nobody"}, "AGENT_NOT_FOUND"),
    "capability": ({"id": "t", "type": "fly"}, "AGENT_NOT_FOUND"),
    "id": ({"type": "work"}, "MISSING_REQUIRED_FIELD"),
    "policy": ({"id": "t", "type": "work", "retryPolicy": {"maxAttempts": 0}}, "INVALID_FIELD_VALUE"),
    "json": ('{"id": ', "INVALID_INPUT"),
    "names": ({"id": "t\n" * 5000, "type": "fly\n" * 5000}, "AGENT_NOT_FOUND"),
}


def worker():
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def work(payload, ctx):
        if payload == "fail":
            raise errors.KnowledgeNotFoundError
        return payload

    return agent


@pytest.fixture
async def working():
    """An orchestrator in memory that works on its tasks."""
    async with Orchestrator([worker()], grace=0) as orchestrator:
        yield orchestrator


def record_in(caplog):
    """The one record of a failure: T11's members."""
    (record,) = [record for record in caplog.records if record.name == "amends.tasks"]
    assert record.levelno == logging.ERROR
    assert {"level", "timestamp", "taskId", "error", "event"} <= set(record.amends)
    assert "\n" not in record.getMessage()
    assert len(record.getMessage()) < 1000
    return record.amends


def span_in(exported):
    (span,) = [span for span in exported.get_finished_spans() if span.attributes.get("error")]
    assert span.status.status_code is trace.StatusCode.ERROR
    return span


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("how", ["run", "submit"])
async def test_a_request_that_an_orchestrator_refuses(working, exported, caplog, name, how):
    request, code = REFUSED[name]
    if how == "run":
        response = await working.run(request)
        document = response.document()
        assert document["error"]["code"] == code
        assert document["metadata"]["duration_ms"] >= 0
        assert {"startedAt", "completedAt"} <= set(document["metadata"])
        assert document["metadata"].get("agent") == (request["agent"] if name == "agent" else None)
    else:
        with pytest.raises(FaultError):
            await working.submit(request)
    assert record_in(caplog)["error"]["code"] == code
    span = span_in(exported)
    assert (span.attributes["error.code"], span.attributes["amends.status"]) == (code, "refused")


@pytest.mark.parametrize("name", [name for name in REFUSED if name != "agent"])
async def test_a_request_that_an_agent_refuses(exported, caplog, name):
    request, code = REFUSED[name]
    response = await worker().handle(request)
    code = "CAPABILITY_NOT_FOUND" if code == "AGENT_NOT_FOUND" else code
    assert response.error.code == code
    assert response.document()["metadata"]["agent"] == "worker"
    assert record_in(caplog)["error"]["code"] == code
    assert span_in(exported).attributes["error.code"] == code


@pytest.mark.parametrize(
    "request_", [Request(id="t", type="fly"), json.dumps({"id": "t", "type": "fly"}), "fly"]
)
async def test_what_was_asked_for_is_logged(working, caplog, request_):
    with handling(PARENT):
        response = await working.run(request_)
    record = record_in(caplog)
    assert (record["capability"], record["trace_id"]) == ("fly", PARENT[3:35])
    assert request_ == "fly" or (response.id, record["taskId"]) == ("t", "t")


async def test_an_invalid_plan_is_refused(working, caplog):
    response = await working.run([Step(name="a", type="fly")])
    assert response.error.code == "AGENT_NOT_FOUND"
    assert record_in(caplog)["event"] == "refused"


async def test_a_capability_that_fails_without_an_orchestrator(exported, caplog):
    """T10, T11: one record and one span, and none for a success."""
    agent = worker()
    with handling(PARENT):
        await agent.handle({"id": "t", "type": "work", "payload": "fail"})
        await agent.handle({"id": "t", "type": "work", "payload": "x"})
    record = record_in(caplog)
    assert (record["event"], record["error"]["code"], record["trace_id"]) == (
        "failed",
        "KNOWLEDGE_NOT_FOUND",
        PARENT[3:35],
    )
    assert span_in(exported).attributes["error.code"] == "KNOWLEDGE_NOT_FOUND"


async def test_a_delegation_whose_failure_is_handled(manual, caplog):
    """The task succeeds, and the log says what failed in it and where."""
    lead = Agent("lead")

    @lead.capability(idempotent=True)
    async def plan(payload, ctx):
        for type in ("work", "fly"):
            try:
                await ctx.delegate(type, "fail")
            except FaultError:
                pass
        return "did without"

    manual.register(lead, worker())
    handle = await manual.submit("plan", id="t")
    await manual.drain()
    assert await handle.result() == "did without"
    failed = [record.amends for record in caplog.records if record.name == "amends.tasks"]
    assert [(one["event"], one["error"]["code"]) for one in failed] == [
        ("failed", "KNOWLEDGE_NOT_FOUND"),
        ("failed", "AGENT_NOT_FOUND"),
    ]
    assert (failed[0]["agent"], failed[0]["capability"], failed[0]["taskId"]) == ("worker", "work", "t")
    assert failed[0]["step"] == "plan>worker/work#1"
