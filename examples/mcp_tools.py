"""An MCP server with `guard`, and a client that recovers from failures. Run: python examples/mcp_tools.py"""

import asyncio

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

from amends import FaultError, Policy, for_llm
from amends.bindings.mcp import Client, guard
from amends.errors.adcp import RateLimitedError

server = MCPServer("seats")
calls: list[int] = []


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def free_seats(train: int) -> dict[str, int]:
    """Return the number of free seats of a train."""
    calls.append(train)
    if len(calls) == 1:
        raise RateLimitedError("Slow down", retry_after=1)
    if train == 3:
        raise RuntimeError("psql: FATAL: password of db.internal is hunter2")
    return {"free": 12}


guard(server)


async def main() -> None:
    async with Client(server, policy=Policy(attempts=2, max_wait=5)) as client:
        print((await client.call_tool("free_seats", {"train": 2})).structured_content, len(calls))
        for train in ("two", 3):
            try:
                await client.call_tool("free_seats", {"train": train})
            except FaultError as error:
                print(error.fault.code, error.decision.action, "hunter2" in for_llm(error.fault))


asyncio.run(main())
# > {'free': 12} 2
# > VALIDATION_ERROR fix False
# > SERVICE_UNAVAILABLE escalate False
