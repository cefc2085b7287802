"""The official clients as they come: one call, and what it raises is what the model reads."""

from __future__ import annotations

import asyncio
import subprocess
from typing import Any

from amends.demo.agents import Act, Errand, cellar, message

__all__ = ["ACTS", "ToolFailed"]

PATIENCE = 10.0
"""Seconds after which anybody would give up."""


class ToolFailed(Exception):
    """A result that says it is an error, raised as most agent loops do."""


async def prices(errand: Errand) -> Any:
    """A GET."""
    import httpx2

    async with httpx2.AsyncClient(base_url=errand.places.http, timeout=PATIENCE) as client:
        return (await client.get("/prices")).raise_for_status().json()


async def order(errand: Errand) -> Any:
    """A POST."""
    import httpx2

    async with httpx2.AsyncClient(base_url=errand.places.http, timeout=PATIENCE) as client:
        return (await client.post("/orders", json={"trout": 8})).raise_for_status().json()


async def wine(errand: Errand) -> Any:
    """A command."""
    done = await asyncio.to_thread(
        subprocess.run, cellar(errand), capture_output=True, check=False, timeout=PATIENCE
    )
    if done.returncode:
        raise ToolFailed((done.stdout + done.stderr).decode())
    return done.stdout.decode()


async def table(errand: Errand) -> Any:
    """A tool call. The SDK returns a failed result like any other."""
    from mcp import Client

    async with Client(errand.places.mcp) as client:
        result = await client.call_tool("find_table", {"guests": 8, "time": errand.time})
    if result.is_error:
        raise ToolFailed(result.model_dump_json(by_alias=True, exclude_none=True))
    return result.structured_content


async def menu(errand: Errand) -> Any:
    """A message. The SDK yields a failed task like any other."""
    from a2a.client import ClientConfig, ClientFactory
    from a2a.types.a2a_pb2 import SendMessageRequest, TaskState

    client = await ClientFactory(ClientConfig(streaming=False)).create_from_url(errand.places.a2a)
    answers = [answer async for answer in client.send_message(SendMessageRequest(message=message()))]
    if answers[-1].task.status.state == TaskState.TASK_STATE_FAILED:
        raise ToolFailed(str(answers[-1].task))
    return answers


async def charge(errand: Errand) -> Any:
    """A job, with the protocol's published SDK."""
    from arcp import ClientInfo, WebSocketTransport
    from arcp.client import ARCPClient

    client = ARCPClient(client=ClientInfo(name="demo", version="1"), token=errand.places.token)
    await client.connect(await WebSocketTransport.connect(errand.places.arcp))
    try:
        handle = await client.submit(agent="deposit", input={"amount": "50"})
        return await asyncio.wait_for(handle.done, PATIENCE)
    finally:
        await client.close()


ACTS: dict[str, Act] = {act.__name__: act for act in (prices, order, wine, table, menu, charge)}
