"""The demo's MCP server: one tool that finds a table, with `guard` around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amends.demo.call_record import CurrentRecord
from amends.demo.scenario import InvalidChoice, RateLimit
from amends.errors.adcp import RateLimitedError, ValidationError

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

__all__ = ["server"]


def server(current: CurrentRecord) -> MCPServer:
    """Return an MCPServer whose failures are AdCP errors."""
    from mcp.server.mcpserver import MCPServer
    from mcp_types import ToolAnnotations

    from amends.bindings.mcp import guard

    mcp_server = MCPServer("tables")

    @mcp_server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def find_table(guests: int, time: str) -> dict[str, object]:
        """Find a table for some guests at a time."""
        failure = current.record.record_call("table", time)
        if isinstance(failure, InvalidChoice):
            raise ValidationError(
                "No table is free at that time",
                field="time",
                suggestions=[f"Ask for {' or '.join(failure.allowed)}"],
                details={"allowed": list(failure.allowed)},
            )
        if isinstance(failure, RateLimit):
            raise RateLimitedError("Too many requests", retry_after=failure.seconds)
        return {"table": 4, "guests": guests, "time": time}

    guard(mcp_server)
    return mcp_server
