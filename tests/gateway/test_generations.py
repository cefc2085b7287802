"""Clients and servers of different generations of MCP, through the gateway, with the official SDK on both sides."""

import asyncio
import contextlib
import json

import httpx
import pytest
import uvicorn
from mcp import Client, MCPError
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

from amends.demo.host import serving as demo_serving
from amends.gateway.config import UpstreamConfig
from amends.gateway.generations import Client as KnownClient
from amends.gateway.generations import (
    argument_headers,
    initialize_result,
    is_modern,
    marked_tools,
    refuses_generation,
    request_to_legacy,
    request_to_modern,
    response_to_legacy,
    response_to_modern,
)
from amends.gateway.rpc import read_members
from tests.gateway.peers import free_port, serving

MODERN = b"2026-07-28"


def new_server():
    server = MCPServer("shop", instructions="Look first.")
    server.paid = []

    @server.tool()
    def pay(eur: float) -> str:
        server.paid.append(eur)
        return f"paid {eur}"

    @server.tool()
    async def slow(ctx: Context) -> str:
        for done in (1, 2):
            await ctx.report_progress(done, 2)
        return "done"

    @server.tool()
    def fail() -> str:
        raise RuntimeError("no")

    @server.resource("shop://table")
    def table() -> str:
        return "oak"

    @server.prompt()
    def greet(name: str) -> str:
        return f"Hello {name}"

    return server


class OneGeneration:
    """An MCP server that refuses requests of the other generation, before it reads them."""

    def __init__(self, app, *, modern):
        self.app, self.modern, self.refused = app, modern, 0

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        is_of_2026 = (b"mcp-protocol-version", MODERN) in scope["headers"]
        if is_of_2026 is self.modern:
            await self.app(scope, receive, send)
            return
        self.refused += 1
        error = {"code": -32022, "message": "Unsupported protocol version", "data": {"supported": []}}
        body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 400, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@contextlib.asynccontextmanager
async def gateway_to(server, *, modern, stateless=False):
    """Run a server of one generation, and a gateway in front of it; yield the gateway's URL."""
    port = free_port()
    app = OneGeneration(server.streamable_http_app(stateless_http=stateless), modern=modern)
    running = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", access_log=False))
    task = asyncio.create_task(running.serve())
    while not running.started:
        await asyncio.sleep(0.005)
    config = UpstreamConfig(
        name="shop", kind="mcp", url=f"http://127.0.0.1:{port}/mcp", prefix="/mcp", timeout=10.0
    )
    async with serving(config) as gateway:
        gateway.peer = app
        yield gateway
    running.should_exit = True
    await task


async def use(gateway, server, mode):
    """Use tools, resources and prompts as a client of one generation."""
    seen = []

    async def progress(done, total, message):
        seen.append((done, total))

    async with Client(f"{gateway.url}/mcp", mode=mode) as client:
        tools = await client.list_tools()
        assert [tool.name for tool in tools.tools] == ["pay", "slow", "fail"]
        result = await client.call_tool("pay", {"eur": 1.5})
        assert (result.is_error, result.content[0].text) == (False, "paid 1.5")
        assert result.structured_content == {"result": "paid 1.5"}
        assert (await client.call_tool("fail", {})).is_error
        assert (await client.call_tool("slow", {}, progress_callback=progress)).content[0].text == "done"
        assert [each.uri for each in (await client.list_resources()).resources] == ["shop://table"]
        assert (await client.read_resource("shop://table")).contents[0].text == "oak"
        assert [each.name for each in (await client.list_prompts()).prompts] == ["greet"]
        prompt = await client.get_prompt("greet", {"name": "Ada"})
        assert prompt.messages[0].content.text == "Hello Ada"
        with pytest.raises(MCPError) as unknown:
            await client.read_resource("shop://nothing")
        assert unknown.value.error.code == -32602
    assert server.paid == [1.5]
    return seen


@pytest.mark.parametrize(
    ("modern", "mode", "stateless"),
    [
        (True, "legacy", False),
        (False, "2026-07-28", False),
        (False, "2026-07-28", True),
        (False, "auto", False),
        (True, "auto", False),
    ],
)
async def test_tools_resources_and_prompts(modern, mode, stateless):
    """A call is executed once, results and errors arrive whole, and progress is seen."""
    server = new_server()
    async with gateway_to(server, modern=modern, stateless=stateless) as gateway:
        seen = await use(gateway, server, mode)
        assert seen == [(1, 2), (2, 2)]
        refused = gateway.peer.refused
        server.paid.clear()
        await use(gateway, server, mode)
        assert gateway.peer.refused == refused


async def test_a_lost_session_is_opened_again_for_a_client_that_has_none():
    """The server restarts: the next call succeeds."""
    first, second = new_server(), new_server()
    async with (
        gateway_to(first, modern=False) as gateway,
        Client(f"{gateway.url}/mcp", mode="2026-07-28") as client,
    ):
        await client.call_tool("pay", {"eur": 1})
        again = second.streamable_http_app()
        async with again.router.lifespan_context(again):
            gateway.peer.app = again
            assert (await client.call_tool("pay", {"eur": 2})).content[0].text == "paid 2.0"
    assert (first.paid, second.paid) == ([1], [2])


async def test_what_is_not_translated():
    """Other methods are not found; an unknown session is one that has ended; GET has no stream."""
    async with gateway_to(new_server(), modern=True) as gateway, httpx.AsyncClient() as http:

        async def post(message, **headers):
            return await http.post(f"{gateway.url}/mcp", json={"jsonrpc": "2.0", **message}, headers=headers)

        params = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"},
        }
        opened = await post({"id": 1, "method": "initialize", "params": params})
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        result = opened.json()["result"]
        assert (result["protocolVersion"], result["instructions"]) == ("2025-06-18", "Look first.")
        assert set(result["capabilities"]) == {"tools", "resources", "prompts"}
        assert result["serverInfo"]["name"] == "shop"
        assert (await post({"method": "notifications/initialized"}, **session)).status_code == 202
        assert (await post({"id": 2, "method": "ping"}, **session)).json()["result"] == {}
        missing = await post({"id": 3, "method": "logging/setLevel", "params": {}}, **session)
        assert (missing.status_code, missing.json()["error"]["code"]) == (200, -32601)
        assert (await http.get(f"{gateway.url}/mcp", headers=session)).status_code == 405
        assert (await http.delete(f"{gateway.url}/mcp", headers=session)).status_code == 204
        assert (await post({"id": 4, "method": "tools/list"}, **session)).status_code == 404


class Stateless:
    """A server of the older generation that executes every call, also of the newer one, and fails after the effect."""

    def __init__(self, status, code):
        self.status, self.code, self.paid = status, code, 0

    async def __call__(self, scope, receive, send):
        message = json.loads((await receive())["body"])
        status, answer = 200, {"jsonrpc": "2.0", "id": message.get("id")}
        if message["method"] == "initialize":
            answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
        elif message["method"] == "tools/call":
            self.paid += 1
            status, answer["error"] = self.status, {"code": self.code, "message": "Refused, nothing was done"}
        else:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})


@pytest.mark.parametrize(
    ("status", "code", "sent"),
    [
        *((status, code, 1) for status in (200, 500) for code in (-32000, -32002, -32602)),
        *((500, code, 1) for code in (-32600, -32601, -32020, -32022)),
        # A status, or a number of the protocol, by which the server refuses the request itself.
        *((400, code, 2) for code in (-32000, -32602)),
        *((200, code, 2) for code in (-32600, -32601, -32022)),
    ],
)
async def test_a_call_that_may_have_happened_is_not_sent_in_the_other_generation(status, code, sent):
    """A failed answer that is no proof of a refusal only shows the gateway how to send the next call."""
    server = Stateless(status, code)
    async with demo_serving(server) as port:
        config = UpstreamConfig(name="shop", kind="mcp", url=f"http://127.0.0.1:{port}/mcp", prefix="/mcp")
        async with serving(config) as gateway, httpx.AsyncClient() as caller:
            meta = {"io.modelcontextprotocol/protocolVersion": MODERN.decode()}
            params = {"name": "pay", "arguments": {}, "_meta": meta}
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            answer = await caller.post(f"{gateway.url}/mcp", json=call)
            assert server.paid == sent
            assert answer.json()["error"]["code"] == code
            # The next one is translated.
            await caller.post(f"{gateway.url}/mcp", json=call)
            assert server.paid == sent + 1


def test_parts():
    """Refusals, marked arguments, a question to the user, a server that says little about itself."""
    assert refuses_generation(400, b"no JSON")
    assert refuses_generation(200, b'{"error":{"code":-32601}}')
    assert not refuses_generation(200, b'{"error":{"code":7}}')
    assert not refuses_generation(500, b"")
    assert not is_modern([])
    marked = {
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "in": {"properties": {"on": {"x-mcp-header": "On"}}},
        }
    }
    tools = marked_tools(
        {"result": {"tools": [{"name": "a", "inputSchema": marked}, {"name": "b"}, 7, {"name": None}]}}
    )
    assert tools["b"] == {}
    call = {"arguments": {"region": "é", "in": {"on": True}}}
    assert argument_headers(tools["a"], call) == [
        ("mcp-param-region", "=?base64?w6k=?="),
        ("mcp-param-on", "true"),
    ]
    assert argument_headers(tools["a"], None) == []
    for odd in (b'{"id":1,"method":"tools/call","params":[1]}', b'{"id":1,"result":[1]}'):
        message = read_members(odd)
        assert request_to_modern(message, KnownClient()) == message or b"params" not in odd
        assert request_to_legacy(message) == message or b"params" not in odd
        assert response_to_modern(message, "tools/list") == message
    asked = read_members(b'{"id":1,"result":{"resultType":"input_required","inputRequests":{}}}')
    error = json.loads(bytes(response_to_legacy(asked)["error"]))
    assert (error["code"], error["data"]["resultType"]) == (-32600, "input_required")
    result = initialize_result({"capabilities": {"tools": {}, "x": {}}}, KnownClient(), "shop")
    assert (result["capabilities"], result["serverInfo"]["name"]) == ({"tools": {}}, "shop")
