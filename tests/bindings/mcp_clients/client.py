"""Calls two tools of a server, one with an output schema, and prints what the Python SDK's client returns or raises."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

import mcp


@asynccontextmanager
async def connected(url, protocol):
    if hasattr(mcp, "Client"):
        mode = protocol if protocol == "2026-07-28" else "legacy"
        async with mcp.Client(url, mode=mode) as client:
            yield client
        return
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(url) as (read, write, _), mcp.ClientSession(read, write) as session:
        await session.initialize()
        yield session


async def main(url, protocol):
    found = {}
    async with connected(url, protocol) as client:
        await client.list_tools()
        for name in ("shaped", "plain"):
            try:
                found[name] = (await client.call_tool(name, {})).model_dump(by_alias=True, mode="json")
            except Exception as error:
                found[name] = {"thrown": str(error)[:200]}
    print(json.dumps(found))


asyncio.run(main(*sys.argv[1:]))
