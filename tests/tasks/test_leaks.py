"""T12: what a caller, a user or an operator reads about a failed task shows nothing of the inside."""

import asyncio
import json

import httpx2
import pytest
from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, TextContent

from amends import errors as everyday
from amends.errors import task as errors
from amends.tasks import Agent, Orchestrator, Request
from amends.tasks.remote.http import Endpoint, HttpAgent
from amends.tasks.remote.mcp import McpAgent
from amends.tasks.timeline import timeline

SECRETS = ("hunter2", "db.internal", "10.0.0.5", "/srv/app")
LEAKING = "postgres://svc:hunter2@db.internal/x refused 10.0.0.5:5432, see /srv/app/settings.py"


async def test_the_timeline_of_a_failed_task(manual):
    """The message of an error is redacted; its code stays."""
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def leak(payload, ctx):
        raise errors.KnowledgeNotFoundError(LEAKING)

    manual.register(agent)
    await manual.submit("leak", id="t")
    await manual.drain()
    shown = str(timeline(await manual.records("t")))
    assert "KNOWLEDGE_NOT_FOUND" in shown
    assert [secret for secret in SECRETS if secret in shown] == []


def failing():
    agent = Agent("worker")
    details = {"password": "hunter2", "dsn": LEAKING, "amount": 7}

    @agent.capability(read_only=True)
    async def typed(payload, ctx):
        raise errors.InvalidFieldValueError(LEAKING, field="/amount", suggestions=[LEAKING], details=details)

    @agent.capability(read_only=True)
    async def translated(payload, ctx):
        raise everyday.ValidationError(LEAKING, field="/amount", suggestions=[LEAKING], details=details)

    @agent.capability(read_only=True)
    async def group(payload, ctx):
        raise ExceptionGroup(LEAKING, [everyday.ValidationError(LEAKING, field=f"/{n}") for n in "ab"])

    @agent.capability(read_only=True)
    async def foreign(payload, ctx):
        raise OSError(LEAKING)

    return agent


def leaks(document):
    text = json.dumps(document)
    return [secret for secret in SECRETS if secret in text]


@pytest.mark.parametrize("capability", ["typed", "translated", "group", "foreign"])
async def test_documents_of_failed_tasks(capability):
    """The answer of an agent, of an orchestrator, of a delegation and of a plan, each as a document."""
    agent, front = failing(), Agent("front")

    @front.capability(read_only=True)
    async def ask(payload, ctx):
        return await ctx.delegate("worker", capability, payload)

    documents = [(await agent.handle(Request(id="t", type=capability))).document()]
    once = {"maxAttempts": 1}
    async with Orchestrator([agent, front]) as orchestrator:
        for type in (capability, "ask"):
            documents.append((await orchestrator.run(type, {}, id=type, retry_policy=once)).document())
    for document in documents:
        assert document["status"] == "failed"
        assert leaks(document) == [], document
    if capability in {"typed", "translated"}:
        details = documents[0]["error"]["details"]
        assert (details["amount"], details["name"], details["pointer"]) == (7, "amount", "/amount")


SERVER = MCPServer("files")


@SERVER.tool()
def plain_text(path: str = "") -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=f"Ann Lee: {LEAKING}")], is_error=True)


@SERVER.tool()
def raises(path: str = "") -> str:
    raise RuntimeError(f"Ann Lee: {LEAKING}")


@pytest.mark.parametrize("tool", ["plain_text", "raises"])
async def test_the_text_of_a_foreign_tool(tool):
    """It may be that of an exception: the task says that the tool failed, and not what the tool said."""
    async with Orchestrator([McpAgent("files", SERVER)]) as orchestrator:
        response = await orchestrator.run(tool, {}, agent="files", id="t", retry_policy={"maxAttempts": 1})
    document = response.document()
    assert (document["error"]["code"], document["error"]["message"]) == ("MCP_ERROR", "MCP returned an error")
    assert "Ann Lee" not in json.dumps(document)


FAILED = {"state": "failed", "message": {"parts": [{"kind": "text", "text": f"Ann Lee: {LEAKING}"}]}}
ANSWERS = {
    "mcp": (200, {"isError": True, "content": [{"type": "text", "text": f"Ann Lee: {LEAKING}"}]}),
    "a2a": (200, {"id": "1", "status": FAILED}),
    "jsonrpc": (
        200,
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": f"Ann Lee: {LEAKING}"}},
    ),
    "vendor": (
        402,
        {"error": {"type": "card_error", "code": "card_declined", "message": f"Ann Lee: {LEAKING}"}},
    ),
    "own": (500, {"error": f"Ann Lee: {LEAKING}"}),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_the_text_of_a_foreign_service(kind):
    """Also of a service that is an agent here: only text in one of the five formats was written for callers."""

    def answer(request):
        status, body = ANSWERS[kind]
        return httpx2.Response(status, json=body)

    async def run():
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
        agent = HttpAgent("shop", {"pay": Endpoint(url="http://shop.example/pay")}, client=client)
        async with client, Orchestrator([agent]) as orchestrator:
            return await orchestrator.run("pay", {}, agent="shop", id="t", retry_policy={"maxAttempts": 1})

    document = asyncio.run(run()).document()
    assert document["status"] == "failed"
    assert document["error"]["message"]
    assert "Ann Lee" not in json.dumps(document)
