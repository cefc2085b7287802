"""
The same shop as an MCPServer, as a low-level Server and as a FastMCP server, with the same tools and failures.

As a program it serves standard streams: `python -m tests.bindings.apps.mcp_shop KIND`.
"""

import asyncio
import logging
import os
import sys
from contextlib import suppress

import mcp_types as types
from mcp import MCPError
from mcp.server import Server
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError

from amends import FaultError
from amends.bindings.mcp import guard
from amends.errors import RateLimitedError
from amends.errors.adcp import BudgetTooLowError

READS = types.ToolAnnotations(read_only_hint=True)
KEYED = types.ToolAnnotations(idempotent_hint=True)
POISONS = 1000
NAME, SECRET = "order", "db-7.internal.acme"


class OutOfStock(FaultError):
    """Nothing is left"""

    code = "MCP_SHOP_OUT_OF_STOCK"
    recovery = "correctable"
    adcp_code = "X_SHOP_OUT_OF_STOCK"


def poison(number):
    """One of many exceptions with a text that must not be sent."""
    from tests.foreign.test_leaks import POISONS as TEXTS
    from tests.foreign.test_leaks import poisoned

    from amends.foreign.classes import rows

    names = ("builtins.ValueError", "builtins.KeyError", "acme.Crash", *rows())
    return poisoned(names[number % len(names)], TEXTS[number % len(TEXTS)])


FAILURES = {
    "limited": lambda: RateLimitedError("Too many orders", retry_after=5),
    "budget": lambda: BudgetTooLowError("Raise it", field="budget", details={"minimum_budget": 500}),
    "own": lambda: OutOfStock("All sold", suggestions=["Take another size"]),
    "crash": lambda: ValueError(f"no route to {SECRET}"),
    "deep": lambda: ExceptionGroup("tasks", [RateLimitedError(retry_after=2)]),
}


def fail(kind):
    """Raise the exception of that name."""
    if kind == "quoted":
        try:
            raise KeyError(SECRET)
        except KeyError as error:
            raise ToolError(f"could not: {error}") from error
    if kind == "quoted in passing":
        try:
            raise KeyError(SECRET)
        except KeyError as error:
            raise ToolError(f"could not: {error}")  # noqa: B904 - as people write it
    if kind == "tool error":
        raise ToolError("There is no such order")
    if kind == "protocol":
        raise MCPError(-31999, "mine", {"why": "because"})
    if kind == "protocol in a task":
        raise ExceptionGroup("tasks", [MCPError(-31999, "mine")])
    if kind == "page":
        from mcp.shared.exceptions import UrlElicitationRequiredError

        raise UrlElicitationRequiredError(
            [
                types.ElicitRequestURLParams(
                    mode="url", message="Sign in", url="https://a.example/", elicitation_id="1"
                )
            ]
        )
    failure = FAILURES[kind]()
    raise failure


class Shop:
    """What the tools have done: purchases, and the number of calls by tool."""

    def __init__(self):
        self.bought = []
        self.calls = {}
        self._slow = None

    def count(self, name):
        self.calls[name] = self.calls.get(name, 0) + 1
        return self.calls[name]

    def flaky(self, name, times):
        if self.count(name) <= times:
            raise RateLimitedError("Wait", retry_after=1)
        return self.calls[name]

    async def wait(self, seconds):
        """Wait for some seconds, or until `finish` is called."""
        self._slow = asyncio.get_running_loop(), asyncio.Event()
        self.count("slow")
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._slow[1].wait()

    def finish(self):
        """End the wait of the tool `slow`, from any thread."""
        loop, event = self._slow
        loop.call_soon_threadsafe(event.set)


def official(shop, *, guarded=True, **options):
    """The shop on the SDK's MCPServer."""
    server = MCPServer("shop", **options)

    @server.tool(annotations=READS)
    async def add(a: int, b: int = 1) -> int:
        shop.count("add")
        return a + b

    @server.tool(annotations=READS)
    async def look(times: int) -> int:
        return shop.flaky("look", times)

    @server.tool()
    async def buy(item: str, times: int = 0) -> str:
        shop.flaky("buy", times)
        shop.bought.append(item)
        return item

    @server.tool(annotations=KEYED)
    async def breaks() -> str:
        if shop.count("breaks") == 1:
            raise ConnectionResetError(SECRET)
        return "mended"

    @server.tool(annotations=READS)
    async def peeks() -> str:
        if shop.count("peeks") == 1:
            raise ConnectionResetError(SECRET)
        return "seen"

    @server.tool()
    async def breaks_once() -> str:
        shop.count("breaks_once")
        raise ConnectionResetError(SECRET)

    @server.tool()
    async def fails(kind: str) -> str:
        fail(kind)

    @server.tool()
    async def poisoned(number: int) -> str:
        raise poison(number)

    @server.tool(annotations=READS)
    async def slow(seconds: float) -> str:
        try:
            await shop.wait(seconds)
        except asyncio.CancelledError:
            shop.count("cancelled")
            raise
        return "done"

    @server.tool()
    async def steps(ctx: Context) -> str:
        for at in range(3):
            await ctx.report_progress(at, 3)
        return "done"

    @server.tool()
    async def asks(ctx: Context) -> str:
        from pydantic import BaseModel

        class Answer(BaseModel):
            size: int

        found = await ctx.elicit("Which size?", Answer)
        return f"{found.action} {getattr(found, 'data', None)}"

    @server.tool()
    async def dies() -> str:
        os._exit(3)

    @server.tool()
    async def nested(ctx: Context) -> str:
        try:
            await ctx.mcp_server.call_tool("fails", {"kind": "crash"}, ctx)
        except ToolError as error:
            return f"seen {type(error).__name__}"

    @server.resource("shop://stock")
    def stock() -> str:
        raise ConnectionResetError(SECRET)

    @server.resource("shop://limited")
    def limited() -> str:
        raise RateLimitedError("Wait", retry_after=3)

    @server.resource("shop://closed")
    def closed() -> str:
        raise ResourceError("Closed on Sundays")

    @server.prompt()
    def order(item: str) -> str:
        if item == "crash":
            raise ConnectionResetError(SECRET)
        if item == "limited":
            raise RateLimitedError("Wait", retry_after=3)
        return f"Order {item}"

    return guard(server) if guarded else server


def low_level(shop, *, guarded=True):
    """The shop on the low-level Server, with two tools that fail."""

    async def list_tools(ctx, params):
        schema = {"type": "object", "properties": {"kind": {"type": "string"}, "number": {"type": "integer"}}}
        tools = [types.Tool(name=name, input_schema=schema) for name in ("fails", "poisoned")]
        return types.ListToolsResult(tools=tools)

    async def call_tool(ctx, params):
        if params.name == "poisoned":
            raise poison(params.arguments["number"])
        if params.name == "fails":
            fail(params.arguments["kind"])
        return types.CallToolResult(content=[types.TextContent(type="text", text="done")])

    async def read_resource(ctx, params):
        raise ConnectionResetError(SECRET)

    server = Server("low", on_list_tools=list_tools, on_call_tool=call_tool, on_read_resource=read_resource)
    return guard(server) if guarded else server


def fast(shop, *, guarded=True):
    """The shop on FastMCP."""
    from fastmcp import Context as FastContext
    from fastmcp import FastMCP
    from fastmcp.exceptions import AuthorizationError, PromptError
    from fastmcp.exceptions import ToolError as FastToolError

    from amends.bindings import fastmcp as binding

    server = FastMCP("fast")

    @server.tool(annotations=READS)
    async def add(a: int, b: int = 1) -> int:
        return a + b

    @server.tool(annotations=READS)
    async def look(times: int) -> int:
        return shop.flaky("look", times)

    @server.tool
    async def buy(item: str, times: int = 0) -> str:
        shop.flaky("buy", times)
        shop.bought.append(item)
        return item

    @server.tool
    async def breaks_once() -> str:
        shop.count("breaks_once")
        raise ConnectionResetError(SECRET)

    @server.tool
    async def fails(kind: str) -> str:
        if kind == "denied":
            raise AuthorizationError(SECRET)
        if kind == "tool error":
            raise FastToolError("There is no such order")
        fail(kind)

    @server.tool
    async def poisoned(number: int) -> str:
        raise poison(number)

    @server.tool(annotations=READS)
    async def slow(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    @server.tool
    async def steps(ctx: FastContext) -> str:
        for at in range(3):
            await ctx.report_progress(at, 3)
        return "done"

    @server.tool
    async def dies() -> str:
        os._exit(3)

    @server.resource("shop://stock")
    def stock() -> str:
        raise ConnectionResetError(SECRET)

    @server.prompt
    def order(item: str) -> str:
        if item == "closed":
            raise PromptError("Closed on Sundays")
        raise ConnectionResetError(SECRET)

    return binding.guard(server) if guarded else server


KINDS = {"official": official, "low_level": low_level, "fast": fast}

if __name__ == "__main__":
    # The SDK writes coloured tracebacks, which takes longer than the tests themselves.
    logging.disable(logging.CRITICAL)
    made = KINDS[sys.argv[1]](Shop())
    if sys.argv[1] == "low_level":
        from mcp.server.stdio import stdio_server

        async def main():
            async with stdio_server() as streams:
                await made.run(*streams, made.create_initialization_options())

        asyncio.run(main())
    elif sys.argv[1] == "fast":
        made.run(show_banner=False)
    else:
        made.run()
