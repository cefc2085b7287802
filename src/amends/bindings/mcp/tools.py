"""What a tool's annotations promise, read from a server's listing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND

from amends.core.operation import Operation

__all__ = ["KEY", "Promises", "every_tool", "promises"]

Promises = dict[str, tuple[Operation, bool]]
"""By tool name: what its annotations promise, and whether it takes an idempotency key."""

KEY = "idempotency_key"
"""The argument AdCP's tools take their idempotency key in."""

_PAGES = 20
"""Pages of a listing that are read: one that never ends cannot hold a call up."""

# The SDK's words and the protocol's. FastMCP warns of whoever asks for the second.
_HINTS = {
    "read_only_hint": "readOnlyHint",
    "idempotent_hint": "idempotentHint",
    "destructive_hint": "destructiveHint",
}


def promises(tools: Any) -> Promises:
    """What these tools promise."""
    found = {}
    for tool in tools:
        schema = getattr(tool, "input_schema", None)
        properties = schema.get("properties") if isinstance(schema, dict) else None
        keyed = isinstance(properties, dict) and KEY in properties
        hints = {name: getattr(tool.annotations, word, None) for word, name in _HINTS.items()}
        found[tool.name] = Operation.of_tool(hints, name=f"tools/call {tool.name}"), keyed
    return found


async def every_tool(list_tools: Callable[..., Awaitable[Any]]) -> list[Any]:
    """A server's tools, page by page; none where it has no listing."""
    tools: list[Any] = []
    cursor = None
    for _ in range(_PAGES):
        try:
            page = await list_tools(cursor=cursor)
        except MCPError as exc:
            if exc.code == METHOD_NOT_FOUND:
                break
            raise
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tools
