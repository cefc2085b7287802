"""
The names of the MCP SDK that the client needs, from the SDK's version 2 or 1.

Version 1 has its types in `mcp.types`, writes their attributes as the protocol does (`isError`), and speaks HTTP with httpx.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

__all__ = [
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "URL_ELICITATION_REQUIRED",
    "VERSION_1",
    "CallToolResult",
    "ListToolsResult",
    "MCPError",
    "TextContent",
    "Tool",
    "code_of",
    "httpx2",
    "is_failed",
    "member",
]


def _is_version_1() -> bool:
    try:
        return version("mcp").startswith("1.")
    except PackageNotFoundError:
        return False


VERSION_1 = _is_version_1()
"""Whether version 1 of the SDK is installed."""

if TYPE_CHECKING or not VERSION_1:
    import httpx2
    from mcp.shared.exceptions import MCPError
    from mcp_types import (
        INVALID_REQUEST,
        METHOD_NOT_FOUND,
        PARSE_ERROR,
        URL_ELICITATION_REQUIRED,
        CallToolResult,
        ListToolsResult,
        TextContent,
        Tool,
    )
else:
    import httpx as httpx2
    from mcp.shared.exceptions import McpError as MCPError
    from mcp.types import (
        INVALID_REQUEST,
        METHOD_NOT_FOUND,
        PARSE_ERROR,
        URL_ELICITATION_REQUIRED,
        CallToolResult,
        ListToolsResult,
        TextContent,
        Tool,
    )


def member(value: object, name: str, first: str) -> object:
    """Return an attribute of a type of the SDK: `name` in version 2, `first` in version 1."""
    # FastMCP warns if the other name is read.
    return getattr(value, first if VERSION_1 else name, None)


def is_failed(result: object) -> bool:
    """Return whether a result of a tool says that it failed."""
    return member(result, "is_error", "isError") is True


def code_of(error: MCPError) -> int:
    """Return the number of a JSON-RPC error."""
    return error.error.code
