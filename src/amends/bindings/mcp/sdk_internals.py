"""
The private attributes of the MCP SDKs that the bindings use, all of them, each with the reason.

Checked with mcp 2.3 and fastmcp 4.1. Nothing else in `amends.bindings` may use a private attribute of these packages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from fastmcp import FastMCP
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

__all__ = ["fastmcp_server", "is_closed", "lowlevel_server", "parse_result", "session_task"]


def lowlevel_server(server: MCPServer[object]) -> Server[object]:
    """
    Return the low-level server of an MCPServer.

    `MCPServer._lowlevel_server`: the request handlers and the negotiated protocol version are only there. The SDK's own
    `Client` uses the same attribute.
    """
    return server._lowlevel_server  # noqa: SLF001


def fastmcp_server(server: FastMCP[object]) -> Server[object]:
    """Return the low-level server of a FastMCP server, `FastMCP._mcp_server`: needed as `lowlevel_server` is."""
    return server._mcp_server  # noqa: SLF001


def is_closed(session: Any) -> bool:
    """
    Whether the connection of a ClientSession has ended.

    `ClientSession._dispatcher._closed`: without it, a call on a connection that ended earlier fails with the same
    error as a call whose connection was lost after sending, and could not be repeated.
    """
    try:
        return session._dispatcher._closed is True  # noqa: SLF001
    except AttributeError:
        return False


def session_task(client: Any) -> asyncio.Task[object] | None:
    """
    Return the task that holds the session of a `fastmcp.Client` open, or None if the client was not entered.

    `Client._session_state.session_task`: `Client.is_connected()` is false both before the client was entered and
    after the session was lost.
    """
    task: asyncio.Task[object] | None = client._session_state.session_task  # noqa: SLF001
    return task


async def parse_result(client: Any, name: str, result: object) -> object:
    """
    Return the result of a tool as `fastmcp.Client.call_tool` does: with `data` parsed by the tool's output schema.

    `Client._parse_call_tool_result`: the public `call_tool` sends the request too.
    """
    return await client._parse_call_tool_result(name, result)  # noqa: SLF001
