"""MCP servers and clients on version 1 of the SDK, which CrewAI and LangChain's MCP adapters need."""

import asyncio
import json
import socket
import subprocess
import sys
import textwrap

import pytest
from mcp import StdioServerParameters
from mcp import types as mcp_types
from mcp.server.fastmcp import FastMCP
from mcp.server.fastmcp.exceptions import ToolError
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp.shared.memory import create_connected_server_and_client_session
from mcp.types import ToolAnnotations

from amends import FaultError
from amends.bindings import mcp
from amends.bindings.mcp import Client, guard
from amends.effects import Effects
from amends.errors import RateLimitedError, ServiceUnavailableError

READS = ToolAnnotations(readOnlyHint=True)


def shop(**options):
    """Return a guarded FastMCP server with tools that fail, and the calls that reached them."""
    server, calls = guard(FastMCP("shop"), **options), []

    @server.tool()
    def pay(order: int) -> str:
        calls.append(order)
        if order == 18:
            raise RuntimeError("password=hunter2 at db.internal")
        if order == 19:
            raise RateLimitedError("Too many", retry_after=30)
        if order == 20:
            raise ToolError("The order is closed")
        return f"receipt {order}"

    @server.tool(annotations=READS)
    def look(order: int) -> str:
        calls.append(order)
        if calls.count(order) == 1:
            raise ServiceUnavailableError("later", retry_after=0.01)
        return "open"

    @server.resource("shop://prices")
    def prices() -> str:
        raise RuntimeError("password=hunter2")

    return server, calls


async def raised(client, name, arguments):
    with pytest.raises(FaultError) as caught:
        await client.call_tool(name, arguments)
    return caught.value.fault


async def test_failures_of_a_guarded_server():
    """Each failure is an AdCP error, and no text of a foreign exception is sent."""
    server, calls = shop()
    async with Client(server) as client:
        assert (await client.call_tool("pay", {"order": 17})).content[0].text == "receipt 17"
        assert (await raised(client, "pay", {"order": 19})).retry_after == 30
        closed = await raised(client, "pay", {"order": 20})
        assert closed.message == "The order is closed"
        wrong = await raised(client, "pay", {"order": "many"})
        assert (wrong.code, wrong.field) == ("VALIDATION_ERROR", "order")
        assert (await raised(client, "sell", {})).code == "REFERENCE_NOT_FOUND"
        bug = await raised(client, "pay", {"order": 18})
        assert "hunter2" not in repr(bug)
        assert bug.executed == "maybe"
        with pytest.raises(FaultError) as caught:
            await client.read_resource("shop://prices")
        assert "hunter2" not in repr(caught.value.fault)
        assert (await client.call_tool("look", {"order": 1})).content[0].text == "open"
    assert calls == [17, 19, 20, 18, 1, 1]


async def test_what_a_bare_client_gets():
    """A client without amends reads a result that says that it failed, with the error as structured content or text."""
    server, _ = shop()
    async with create_connected_server_and_client_session(server) as session:
        result = await session.call_tool("pay", {"order": 18})
    assert result.isError
    assert "hunter2" not in result.model_dump_json()


@pytest.mark.parametrize("name", ["mcp", "editor"])
@pytest.mark.parametrize("protocol", ["2025-11-25", "2024-11-05"])
async def test_errors_of_tools_with_an_output_schema(monkeypatch, name, protocol):
    """The SDK's own client does not validate them and gets both forms; another one, or an old protocol, gets text alone."""
    monkeypatch.setattr("mcp.types.LATEST_PROTOCOL_VERSION", protocol)
    server = guard(FastMCP("shop"))

    @server.tool()
    def free() -> dict[str, int]:
        raise RateLimitedError("Too many", retry_after=30)

    client = mcp_types.Implementation(name=name, version="0.1.0")
    async with create_connected_server_and_client_session(server, client_info=client) as session:
        await session.list_tools()
        result = await session.call_tool("free", {})
    assert json.loads(result.content[0].text)["adcp_error"]["code"] == "RATE_LIMITED"
    both = name == "mcp" and protocol == "2025-11-25"
    assert (result.structuredContent is not None) == both


async def test_the_page_that_the_user_has_to_open_first():
    """-32042 is a typed error, too."""
    server = guard(FastMCP("shop"))

    @server.tool()
    def connect() -> str:
        page = mcp_types.ElicitRequestURLParams(
            mode="url", message="Sign in", url="https://shop.example/connect", elicitationId="1"
        )
        raise UrlElicitationRequiredError([page])

    async with Client(server) as client:
        assert (await raised(client, "connect", {})).code == "PERMISSION_DENIED"


async def test_a_low_level_server():
    """A handler that was registered before the guard, and one after it, are both guarded."""
    for early in (True, False):
        server = Server("shop")

        def register(server=server):
            @server.list_tools()
            async def tools():
                schema = {"type": "object", "properties": {"order": {"type": "integer"}}}
                return [mcp_types.Tool(name="pay", inputSchema=schema)]

            @server.call_tool()
            async def call(name, arguments):
                raise RuntimeError("hunter2")

        if early:
            register()
        guard(server)
        if not early:
            register()
        async with Client(server, raises="nothing") as client:
            result = await client.call_tool("pay", {"order": 17})
        assert result.isError
        assert "hunter2" not in result.model_dump_json()
        assert (
            "INTERNAL_ERROR" in result.model_dump_json() or "SERVICE_UNAVAILABLE" in result.model_dump_json()
        )


async def test_a_client_with_a_ledger():
    """A call that is made again is done once, and a tool that only reads is not covered."""
    server, calls = shop()
    with Effects("memory:") as effects, effects.scope("task"):
        async with Client(server, effects=effects) as client:
            await client.call_tool("pay", {"order": 17})
            again = await raised(client, "pay", {"order": 17})
            assert again.code == "ALREADY_DONE"
    assert calls == [17]


PROGRAM = """
    import sys
    from mcp.server.fastmcp import FastMCP
    from amends.bindings.mcp import guard
    from amends.errors import RateLimitedError

    server = guard(FastMCP("shop", port=int(sys.argv[2]) if len(sys.argv) > 2 else 0))

    @server.tool()
    def pay(order: int) -> str:
        if order == 19:
            raise RateLimitedError("Too many", retry_after=30)
        return f"receipt {order}"

    server.run(sys.argv[1])
"""


async def test_a_server_in_another_process(tmp_path):
    """Over stdio."""
    program = tmp_path / "server.py"
    program.write_text(textwrap.dedent(PROGRAM))
    async with Client(StdioServerParameters(command=sys.executable, args=[str(program), "stdio"])) as client:
        assert (await client.call_tool("pay", {"order": 17})).content[0].text == "receipt 17"
        assert (await raised(client, "pay", {"order": 19})).retry_after == 30


async def test_a_server_over_http(tmp_path):
    """Over HTTP; a server that has ended is a typed error, and one that is back is used again."""
    program = tmp_path / "server.py"
    program.write_text(textwrap.dedent(PROGRAM))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    async def start():
        process = subprocess.Popen(
            [sys.executable, str(program), "streamable-http", str(port)], stderr=subprocess.DEVNULL
        )
        for _ in range(600):
            try:
                asyncio.get_running_loop()
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return process
        raise AssertionError("the server did not start")

    process = await start()
    try:
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            assert (await client.call_tool("pay", {"order": 17})).content[0].text == "receipt 17"
            assert (await raised(client, "pay", {"order": 19})).retry_after == 30
            process.kill()
            process.wait()
            process = await start()
            assert (await client.call_tool("pay", {"order": 17})).content[0].text == "receipt 17"
    finally:
        process.kill()
        process.wait()


def test_what_needs_version_2():
    """The options and names that are not there say which version they need."""
    with Effects("memory:") as effects, pytest.raises(TypeError, match="version 2"):
        guard(FastMCP("shop"), effects=effects)
    with pytest.raises(ImportError, match="version 2"):
        mcp.reject  # noqa: B018
    with pytest.raises(TypeError, match="FastMCP"):
        guard(json)
