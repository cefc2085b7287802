"""The official clients alone: one call per step, and the model reads the exception."""

from __future__ import annotations

import asyncio
import subprocess

from amends.demo.agents import StepContext, StepFunction, cellar_command, menu_message

__all__ = ["STEP_FUNCTIONS", "ToolFailed"]

TIMEOUT = 10.0
"""Seconds for one call."""


class ToolFailed(Exception):
    """A result that reports an error, raised as most agent loops do."""


async def prices(context: StepContext) -> object:
    """Send a GET."""
    import httpx2

    async with httpx2.AsyncClient(base_url=context.endpoints.http, timeout=TIMEOUT) as client:
        return (await client.get("/prices")).raise_for_status().json()


async def order(context: StepContext) -> object:
    """Send a POST."""
    import httpx2

    async with httpx2.AsyncClient(base_url=context.endpoints.http, timeout=TIMEOUT) as client:
        return (await client.post("/orders", json={"trout": 8})).raise_for_status().json()


async def wine(context: StepContext) -> object:
    """Run a command."""
    done = await asyncio.to_thread(
        subprocess.run, cellar_command(context), capture_output=True, check=False, timeout=TIMEOUT
    )
    if done.returncode:
        raise ToolFailed((done.stdout + done.stderr).decode())
    return done.stdout.decode()


async def table(context: StepContext) -> object:
    """Call a tool. The SDK returns a failed result like any other."""
    from mcp import Client

    async with Client(context.endpoints.mcp) as client:
        result = await client.call_tool("find_table", {"guests": 8, "time": context.time})
    if result.is_error:
        raise ToolFailed(result.model_dump_json(by_alias=True, exclude_none=True))
    return result.structured_content


async def menu(context: StepContext) -> object:
    """Send a message. The SDK yields a failed task like any other."""
    from a2a.client import ClientConfig, ClientFactory
    from a2a.types.a2a_pb2 import SendMessageRequest, TaskState

    client = await ClientFactory(ClientConfig(streaming=False)).create_from_url(context.endpoints.a2a)
    events = [event async for event in client.send_message(SendMessageRequest(message=menu_message()))]
    if events[-1].task.status.state == TaskState.TASK_STATE_FAILED:
        raise ToolFailed(str(events[-1].task))
    return events


async def charge(context: StepContext) -> object:
    """Submit a job with the protocol's published SDK."""
    from arcp import ClientInfo, WebSocketTransport
    from arcp.client import ARCPClient

    client = ARCPClient(client=ClientInfo(name="demo", version="1"), token=context.endpoints.token)
    await client.connect(await WebSocketTransport.connect(context.endpoints.arcp))
    try:
        handle = await client.submit(agent="deposit", input={"amount": "50"})
        async with asyncio.timeout(TIMEOUT):
            return await handle.done
    finally:
        await client.close()


STEP_FUNCTIONS: dict[str, StepFunction] = {
    function.__name__: function for function in (prices, order, wine, table, menu, charge)
}
