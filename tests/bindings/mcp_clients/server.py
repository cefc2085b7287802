"""
A server with a tool that has an output schema and one that has none, both failing: `python server.py KIND PORT`.

KIND is bare, guarded, or structured: guarded, but with `structuredContent` in every error, as before protocol 2026-07-28
no error of a tool with an output schema has it.
"""

import sys

from mcp.server.mcpserver import MCPServer

from amends.bindings.mcp.guard import guard
from amends.errors import RateLimitedError

server = MCPServer("shop")


@server.tool()
def shaped() -> int:
    raise RateLimitedError("Too many orders", retry_after=5)


@server.tool(structured_output=False)
def plain() -> int:
    raise RateLimitedError("Too many orders", retry_after=5)


if __name__ == "__main__":
    kind, port = sys.argv[1:]
    if kind != "bare":
        guard(server)
    if kind == "structured":
        sys.modules["amends.bindings.mcp.guard"].may_be_structured = lambda protocol, client: True
    server.run(transport="streamable-http", port=int(port))
