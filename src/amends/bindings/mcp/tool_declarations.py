"""
What a server's listing says about a tool: whether it only reads, and whether it has an output schema.

The guard looks it up when a call has failed. A successful call costs nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import HandlerEntry
from mcp.server.mcpserver import MCPServer
from mcp_types import ListToolsResult, PaginatedRequestParams

__all__ = [
    "DECLARES_NOTHING",
    "Declaration",
    "GetTool",
    "find_declaration",
    "is_read_only",
    "is_repeatable",
    "listed_by",
    "tool_of",
]

GetTool = Callable[[str], Awaitable[object]]
"""Returns the tool of a name, or None."""

_MAX_PAGES = 20


class Declaration(NamedTuple):
    """The declaration of a tool, as far as an error depends on it."""

    read_only: bool
    has_output_schema: bool
    repeatable: bool = False
    """Whether a repeat has no further effect."""


DECLARES_NOTHING = Declaration(read_only=False, has_output_schema=False)
"""An unknown tool: no client has a schema for it."""
_LISTING_FAILED = Declaration(read_only=False, has_output_schema=True)
"""The tool may have a schema that a client knows from an earlier listing."""


async def find_declaration(get_tool: GetTool, name: object) -> Declaration:
    """Return the declaration of a tool. If it cannot be looked up, it counts as one with a schema."""
    if not isinstance(name, str):
        return DECLARES_NOTHING
    try:
        tool = await get_tool(name)
    except Exception:  # noqa: BLE001 - the listing is the application's code
        return _LISTING_FAILED
    if tool is None:
        return DECLARES_NOTHING
    return Declaration(
        is_read_only(tool), getattr(tool, "output_schema", None) is not None, is_repeatable(tool)
    )


def is_read_only(tool: object) -> bool:
    """Return whether a tool's annotations say that it only reads."""
    return getattr(getattr(tool, "annotations", None), "read_only_hint", None) is True


def is_repeatable(tool: object) -> bool:
    """Return whether a tool's annotations say that calling it again has no further effect."""
    return getattr(getattr(tool, "annotations", None), "idempotent_hint", None) is True


def tool_of(server: MCPServer[object]) -> GetTool:
    """Return a function that finds a tool of an MCPServer."""

    async def get_tool(name: str) -> object:
        return next((tool for tool in await server.list_tools() if tool.name == name), None)

    return get_tool


def listed_by(entry: HandlerEntry[object], ctx: ServerRequestContext[object, object]) -> GetTool:
    """Return a function that finds a tool in the pages of a low-level server's listing."""

    async def get_tool(name: str) -> object:
        cursor = None
        for _ in range(_MAX_PAGES):
            page = await entry.handler(ctx, PaginatedRequestParams(cursor=cursor))
            if not isinstance(page, ListToolsResult):
                return None
            for tool in page.tools:
                if tool.name == name:
                    return tool
            cursor = page.next_cursor
            if cursor is None:
                break
        return None

    return get_tool
