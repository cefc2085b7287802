"""An MCP server as an agent of the orchestrator. Its tools are the capabilities; their annotations decide about repeats."""

from __future__ import annotations

from functools import partial
from typing import Any

from amends.tasks.agent import Agent
from amends.tasks.capability import Capability
from amends.tasks.context import Context

__all__ = ["McpAgent"]


class McpAgent(Agent):
    """
    An agent that is called over MCP.

        files = McpAgent("file-agent", "http://localhost:8000/mcp")

    The tools are listed when one is first called. A tool with a parameter `idempotency_key` gets the step's key.
    """

    dynamic = True

    def __init__(self, name: str, server: object, *, timeout: float = 60.0, **options: Any) -> None:
        """
        Args:
            name: the agent's name.
            server: whatever `amends.bindings.mcp.Client` connects to, or a function that returns an unopened client.
            timeout: seconds for one call.
            options: as for `Agent`.
        """
        super().__init__(name, mcp={name: server}, timeout=timeout, **options)

    async def find(self, type: str) -> Capability:
        """Return the capability of a tool. Lists the server's tools if it is not known yet."""
        if type not in self.capabilities:
            await self._list_tools(type)
        return await super().find(type)

    async def _list_tools(self, wanted: str) -> None:
        connection = await self.connections.connect(self.name, wanted)
        from amends.bindings.mcp.tools import KEY, list_all_tools, operations_of

        tools = operations_of(await list_all_tools(connection.list_tools))
        for name, (promised, keyed) in tools.items():
            self.relay(
                name,
                partial(_call_tool, self.name, name, KEY if keyed else None),
                requires=(self.name,),
                read_only=promised.read_only,
                idempotent=promised.idempotent,
                keyed=keyed,
            )


async def _call_tool(server: str, tool: str, key: str | None, payload: object, ctx: Context) -> object:
    """Call a tool, with the step's key as the argument `key`. Of the result, the structured content or the texts are stored."""
    arguments = dict(payload) if isinstance(payload, dict) else {} if payload is None else {"input": payload}
    if key is not None:
        arguments.setdefault(key, ctx.key)
    return await ctx.mcp[server].call_tool(tool, arguments)
