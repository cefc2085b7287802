"""Whether tool calls are safe to repeat, read from the annotations in a server's listing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from amends.bindings.mcp.sdk_types import (
    METHOD_NOT_FOUND,
    VERSION_1,
    ListToolsResult,
    MCPError,
    Tool,
    code_of,
    member,
)
from amends.core.operation import Operation

__all__ = ["KEY", "ToolOperations", "list_all_tools", "operations_of"]

ToolOperations = dict[str, tuple[Operation, bool]]
"""By tool name: the operation that the tool's annotations describe, and whether the tool takes an idempotency key."""

KEY = "idempotency_key"
"""The argument in which AdCP's tools take an idempotency key."""

_MAX_PAGES = 20
"""Pages that are read of a listing, so that an endless one cannot delay a call forever."""

# From the SDK's attribute names to the protocol's. FastMCP warns if the protocol's names are read.
_HINTS = {
    "read_only_hint": "readOnlyHint",
    "idempotent_hint": "idempotentHint",
    "destructive_hint": "destructiveHint",
}


def operations_of(tools: Iterable[Tool]) -> ToolOperations:
    """
    Return the operations that the annotations of these tools describe.

    A name that is listed twice with different annotations counts as a tool without annotations.
    """
    operations: ToolOperations = {}
    for tool in tools:
        schema = member(tool, "input_schema", "inputSchema")
        properties = schema.get("properties") if isinstance(schema, dict) else None
        takes_key = isinstance(properties, dict) and KEY in properties
        hints = {
            name: getattr(tool.annotations, name if VERSION_1 else attribute, None)
            for attribute, name in _HINTS.items()
        }
        name = f"tools/call {tool.name}"
        found = Operation.of_tool(hints, name=name), takes_key
        if operations.setdefault(tool.name, found) != found:
            operations[tool.name] = Operation.of_tool({}, name=name), False
    return operations


async def list_all_tools(list_tools: Callable[..., Awaitable[ListToolsResult]]) -> list[Tool]:
    """Return a server's tools, read page by page; an empty list if the server has no listing."""
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        try:
            page = await list_tools(cursor=cursor)
        except MCPError as exc:
            if code_of(exc) == METHOD_NOT_FOUND:
                break
            raise
        tools += page.tools
        following = member(page, "next_cursor", "nextCursor")
        cursor = following if isinstance(following, str) else None
        if cursor is None:
            break
    return tools
