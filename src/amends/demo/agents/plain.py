"""The official clients alone: one call per step, and the model reads the exception."""

from __future__ import annotations

from typing import Any

from amends.demo.agents import KEY, MODEL, ORDER, Agent, StepFailedError, menu_message, orders_url, question

__all__ = ["AGENT", "TIMEOUT", "ask", "menu", "order", "tool"]

TIMEOUT = 2.0
"""Seconds for one call."""


async def ask(messages: list[dict[str, str]]) -> str:
    """Call the model."""
    answer = await _post(MODEL, question(messages), {"authorization": "Bearer demo"})
    return str(answer["choices"][0]["message"]["content"])


async def order() -> object:
    """Place the order."""
    return (await _post(orders_url(), ORDER, {"Idempotency-Key": KEY}))["id"]


async def _post(url: str, content: object, headers: dict[str, str]) -> Any:
    import httpx2

    async with httpx2.AsyncClient(timeout=TIMEOUT) as client:
        response = await client.post(url, json=content, headers=headers)
        if response.is_error:
            raise httpx2.HTTPStatusError(response.text, request=response.request, response=response)
        return response.json()


async def tool() -> object:
    """Call a tool. The SDK returns a failed result like any other."""
    import os

    from mcp import Client

    async with Client(os.environ["MCP_URL"], read_timeout_seconds=TIMEOUT) as client:
        result = await client.call_tool("create_order", {"item": "wine", "quantity": 6})
    if result.is_error:
        raise StepFailedError(result.model_dump_json(by_alias=True, exclude_none=True))
    return result.structured_content


async def menu() -> object:
    """Send a message. The SDK yields a failed task like any other."""
    import os

    import httpx2
    from a2a.client import ClientConfig, ClientFactory
    from a2a.types.a2a_pb2 import SendMessageRequest, TaskState

    async with httpx2.AsyncClient(timeout=TIMEOUT) as http:
        config = ClientConfig(streaming=False, httpx_client=http)  # type: ignore[arg-type]
        client = await ClientFactory(config).create_from_url(os.environ["A2A_URL"])
        events = [event async for event in client.send_message(SendMessageRequest(message=menu_message()))]
    if events[-1].task.status.state == TaskState.TASK_STATE_FAILED:
        raise StepFailedError(str(events[-1].task))
    return events[-1].task.id


def explain(error: Exception) -> str:
    """The model reads the class and the text of the exception."""
    return f"{type(error).__name__}: {_deepest(error)}"


def _deepest(error: BaseException) -> BaseException:
    """Return the failure inside the groups that task groups make."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


AGENT = Agent("plain clients", ask, order, tool, menu, explain)
