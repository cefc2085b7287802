"""In-process MCP tools of the Claude Agent SDK. Its agent is a program of its own, so the calls are made by an MCP client."""

import asyncio
from typing import Any

from claude_agent_sdk import create_sdk_mcp_server, tool
from mcp import Client

from amends.bindings.claude_agent_sdk import Failures
from tests.frameworks.matrix import HANDOFF, Case, Model

NAME = "Claude Agent SDK"
REFUSED = frozenset({"type changed"})

SCHEMA = {
    "type": "object",
    "properties": {"order": {"type": "integer"}, "currency": {"type": "string", "default": "EUR"}},
    "required": ["order"],
}


def returned_error() -> object:
    return {"content": [{"type": "text", "text": "declined"}], "is_error": True}


async def drive(model: Model, client: Any) -> bool:
    """Make the calls of a model, and return whether it handed over."""
    read: list[str] = []
    while not isinstance(step := model.step(read), str):
        if step[0].tool == HANDOFF:
            return True
        answers = await asyncio.gather(*(client.call_tool(call.tool, call.arguments) for call in step))
        read += [answer.content[0].text for answer in answers]
    return False


def run(case: Case) -> None:
    @tool("pay", "Pay an order", SCHEMA)
    async def pay(arguments: dict[str, Any]) -> Any:
        answer = case.pay(arguments["order"], arguments.get("currency", "EUR"))
        return answer if isinstance(answer, dict) else {"content": [{"type": "text", "text": answer}]}

    tools = [pay]
    if not case.alone:
        failures = Failures(**case.options(f"{case.user}/{case.session}"))
        tools = [failures.guard(pay), *([failures.check(pay)] if case.checks else [])]

    async def work() -> None:
        server: Any = create_sdk_mcp_server("shop", tools=tools)["instance"]
        async with Client(server) as client:
            if await drive(case.model, client) and case.helper is not None:
                async with Client(server) as another:
                    await drive(case.helper, another)

    asyncio.run(work())
