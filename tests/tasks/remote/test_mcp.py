"""MCP servers as agents, and as servers that agents need."""

import asyncio
import json

import mcp_types as types
import pytest
from mcp.server.mcpserver import MCPServer

from amends.bindings.mcp import guard
from amends.errors import ConflictError, RateLimitedError
from amends.tasks import Agent
from amends.tasks.remote.mcp import McpAgent
from tests.http.serving import serve
from tests.ports import free_port
from tests.tasks.remote.orchestrated import SOON, orchestrated


def shop(calls):
    server = MCPServer("shop")
    reads = types.ToolAnnotations(read_only_hint=True)

    @server.tool(annotations=reads)
    def price(item: str) -> dict[str, int]:
        calls.append(item)
        if len(calls) == 1:
            raise RateLimitedError("slow down", retry_after=1)
        return {"price": 7}

    @server.tool()
    def buy(item: str, idempotency_key: str) -> str:
        calls.append(idempotency_key)
        return f"bought {item}"

    @server.tool()
    def broken(item: str) -> str:
        raise ConflictError("It is gone")

    guard(server)
    return server


async def test_an_mcp_servers_tools():
    """Tools are capabilities; keys are passed on; failures are MCP errors with their cause."""
    calls = []
    agent = McpAgent("shop-agent", shop(calls))
    async with orchestrated(agent) as orchestrator:
        priced = await orchestrator.run("price", {"item": "book"}, agent="shop-agent")
        assert priced.result == {"price": 7}
        assert calls == ["book", "book"]
        bought = await orchestrator.run("buy", {"item": "book"}, agent="shop-agent", id="b")
        assert calls[-1] == "b/buy"
        assert "bought book" in json.dumps(bought.result)
        broken = await orchestrator.run("broken", {"item": "x"}, agent="shop-agent")
        assert broken.error.code == "MCP_ERROR"
        assert broken.error.details["cause"]["code"] == "CONFLICT"
        assert broken.error.details["mcp"] == "shop-agent"
        nothing = await orchestrator.run("fly", agent="shop-agent")
        assert nothing.error.code == "CAPABILITY_NOT_FOUND"
        # After the tools were listed, the agent is found by the capability.
        assert (await orchestrator.run("price", {"item": "pen"})).ok


async def test_an_mcp_server_that_is_missing_at_first():
    """MCP_NOT_CONNECTED, then `setup` starts the server, then the call succeeds."""
    port = free_port()
    url, started = f"http://127.0.0.1:{port}/mcp", []
    agent = Agent("content-agent", mcp={"notion": url})

    @agent.capability(requires=["notion"], keyed=True)
    async def draft_post(payload, ctx):
        answer = await ctx.mcp["notion"].call_tool("price", {"item": "post"})
        return answer.structured_content

    async with orchestrated(agent) as orchestrator:
        missing = await orchestrator.run("draft_post", {}, id="task-uuid")
        error = missing.document()["error"]
        assert error == {
            "code": "MCP_NOT_CONNECTED",
            "message": "The Notion MCP is not connected. Run setup to configure.",
            "details": {"mcp": "notion", "requiredBy": "content-agent", "capability": "draft_post"},
            "recoverable": True,
        }

        import socket
        import threading

        import uvicorn

        calls = ["one"]

        async def setup(fault):
            assert fault.details["mcp"] == "notion"
            listener = socket.create_server(("127.0.0.1", port))
            app = shop(calls).streamable_http_app()
            server = uvicorn.Server(
                uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=1)
            )
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
            thread.start()
            while not server.started:
                await asyncio.sleep(0.01)
            started.append((server, thread))

        agent.setup = setup
        try:
            appeared = await orchestrator.run("draft_post", {}, id="again")
            assert appeared.result == {"price": 7}
            state = await orchestrator.state("again")
            assert [
                attempt.decision.reason for attempt in state.steps["draft_post"].stepper.history[:-1]
            ] == ["set-up"]
        finally:
            await agent.close()
            for server, thread in started:
                server.should_exit = True
                await asyncio.to_thread(thread.join, 20)


@pytest.mark.parametrize(
    ("status", "headers", "code"),
    [
        (401, {}, "MCP_AUTH_FAILED"),
        (429, {"retry-after": "400"}, "MCP_RATE_LIMITED"),
        (500, {}, "MCP_NOT_CONNECTED"),
    ],
)
async def test_an_mcp_server_that_refuses(status, headers, code):
    """The HTTP status decides the code."""

    async def refuse(scope, receive, send):
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": b""})

    with serve(refuse) as base:
        agent = Agent("content-agent", mcp={"notion": f"{base}/mcp"})

        @agent.capability(requires=["notion"])
        async def draft(payload):
            raise AssertionError

        async with orchestrated(agent) as orchestrator:
            refused = await orchestrator.run("draft")
            assert refused.error.code == code
            assert refused.error.details["mcp"] == "notion"
            assert refused.error.executed == "no"


async def test_a_broken_connection_is_opened_again():
    """The call fails, and the next one uses a new client."""
    made = []

    class Breaking:
        def __init__(self):
            made.append(self)
            self.first = len(made) == 1

        async def __aenter__(self):
            return self

        async def __aexit__(self, *exc):
            return None

        async def call_tool(self, name, arguments):
            if self.first:
                raise ConnectionResetError("10.0.0.7")
            return {"done": name}

        name = "plain attribute"

    agent = Agent("content-agent", mcp={"notion": lambda: Breaking()})

    @agent.capability(requires=["notion"], read_only=True)
    async def draft(payload, ctx):
        assert ctx.mcp["notion"].name == "plain attribute"
        return await ctx.mcp["notion"].call_tool("page", {})

    async with orchestrated(agent) as orchestrator:
        done = await orchestrator.run("draft", retry_policy=SOON)
        assert done.result == {"done": "page"}
        assert len(made) == 2
    await agent.close()


async def test_task_errors_of_a_server_are_kept():
    """The server, the agent and the capability are added to the details."""

    class RaisingTaskErrors:
        async def __aenter__(self):
            return self

        async def __aexit__(self, *exc):
            return None

        async def call_tool(self, name, arguments):
            from amends.errors.task import KnowledgeNotFoundError

            raise KnowledgeNotFoundError(details={"file": "x.md"})

    agent = Agent("content-agent", mcp={"notion": lambda: RaisingTaskErrors()})

    @agent.capability(requires=["notion"])
    async def draft(payload, ctx):
        return await ctx.mcp["notion"].call_tool("page", {})

    error = (await agent.handle({"id": "x", "type": "draft"})).error
    assert error.code == "KNOWLEDGE_NOT_FOUND"
    assert error.details == {
        "mcp": "notion",
        "requiredBy": "content-agent",
        "capability": "draft",
        "file": "x.md",
    }
    await agent.close()


async def test_a_tool_list_without_end():
    """A limited number of pages is read. Tools on them can be called; others are not found."""
    pages = []

    class Endless:
        async def __aenter__(self):
            return self

        async def __aexit__(self, *exc):
            return None

        async def list_tools(self, cursor=None):
            pages.append(cursor)
            tool = types.Tool(name=f"tool{len(pages)}", input_schema={"type": "object"})
            return types.ListToolsResult(tools=[tool], next_cursor="more")

        async def call_tool(self, name, arguments):
            content = [types.TextContent(type="text", text=each) for each in (name, str(arguments))]
            return types.CallToolResult(content=content)

    async with orchestrated(McpAgent("endless", lambda: Endless())) as orchestrator:
        assert (await orchestrator.run("nothing", agent="endless")).error.code == "CAPABILITY_NOT_FOUND"
        assert 1 < len(pages) < 100
        called = await orchestrator.run("tool2", "plain", agent="endless")
        assert called.result == ["tool2", "{'input': 'plain'}"]
