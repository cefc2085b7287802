"""The same job with amends: one line per client, and a fenced text for the model."""

from __future__ import annotations

import os

from amends import Policy, for_llm, from_exception
from amends.demo.agents import KEY, MODEL, ORDER, Agent, menu_message, orders_url, question

__all__ = ["AGENT"]

POLICY = Policy(attempts=5, max_wait=20, deadline=30)


async def ask(messages: list[dict[str, str]]) -> str:
    """Call the model. The transport knows the service by its host, and that it only computes."""
    import httpx2

    from amends.bindings.httpx import AsyncTransport

    async with httpx2.AsyncClient(transport=AsyncTransport(policy=POLICY), timeout=2.0) as client:
        response = await client.post(MODEL, json=question(messages), headers={"authorization": "Bearer demo"})
        return str(response.json()["choices"][0]["message"]["content"])


async def order() -> object:
    """Place the order. `keyed=True`: the store honours keys, so a lost answer is repeated."""
    import httpx2

    from amends.bindings.httpx import AsyncTransport

    transport = AsyncTransport(policy=POLICY, keyed=True)
    async with httpx2.AsyncClient(transport=transport, timeout=2.0) as client:
        response = await client.post(orders_url(), json=ORDER, headers={"Idempotency-Key": KEY})
        return response.json()["id"]


async def tool() -> object:
    """Call the tool."""
    from amends.bindings.mcp import Client

    async with Client(os.environ["MCP_URL"], policy=POLICY) as client:
        result = await client.call_tool("create_order", {"item": "wine", "quantity": 6})
        return result.structured_content


async def menu() -> object:
    """Send the message. A failed task raises a typed error."""
    from a2a.types.a2a_pb2 import SendMessageRequest

    from amends.bindings.a2a import Client

    async with Client(os.environ["A2A_URL"], policy=POLICY) as client:
        request = SendMessageRequest(message=menu_message())
        return [str(event) async for event in client.send_message(request)]


def explain(error: Exception) -> str:
    """The model reads the code, the field and what to do, fenced."""
    return for_llm(from_exception(error))


AGENT = Agent("with amends", ask, order, tool, menu, explain)
