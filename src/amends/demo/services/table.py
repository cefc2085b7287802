"""The MCP server: one tool that finds a table, guarded by one call."""

from __future__ import annotations

from typing import Any

from amends.demo.call_record import Scene
from amends.demo.scenario import Late, Wrong
from amends.errors.adcp import RateLimitedError, ValidationError

__all__ = ["server"]


def server(scene: Scene) -> Any:
    """An MCPServer that answers in AdCP's words."""
    from mcp.server.mcpserver import MCPServer
    from mcp_types import ToolAnnotations

    from amends.bindings.mcp import guard

    found = MCPServer("tables")

    @found.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def find_table(guests: int, time: str) -> dict[str, Any]:
        """Find a table for some guests at a time."""
        hurdle = scene.world.call("table", time)
        if isinstance(hurdle, Wrong):
            raise ValidationError(
                "No table is free then",
                field="time",
                suggestions=[f"Ask for {' or '.join(hurdle.allowed)}"],
                details={"allowed": list(hurdle.allowed)},
            )
        if isinstance(hurdle, Late):
            raise RateLimitedError("Too many questions at once", retry_after=hurdle.seconds)
        return {"table": 4, "guests": guests, "time": time}

    guard(found)
    return found
