"""In-process MCP tools of the Claude Agent SDK, called through the server that the SDK makes of them."""

import asyncio
from inspect import isawaitable

from claude_agent_sdk import create_sdk_mcp_server, tool
from mcp import Client

from amends.bindings.claude_agent_sdk import Failures
from tests.frameworks import catalogue


def runner(failures=None):
    async def work(function, times):
        made = failures or Failures()

        @made.guard
        @tool("act", "Act on an order", {"order": int})
        async def act(arguments):
            text = function(arguments["order"])
            return {"content": [{"type": "text", "text": await text if isawaitable(text) else text}]}

        server = create_sdk_mcp_server("shop", tools=[act])["instance"]
        async with Client(server) as client:
            results = [await client.call_tool("act", {"order": 17}) for _ in range(times)]
        texts = [result.content[0].text for result in results]
        return texts, True

    return lambda function, times: asyncio.run(work(function, times))


def test_the_catalogue():
    """The model reads the same facts as everywhere."""
    catalogue.check(runner())


def test_loops_and_success():
    """Loops are broken; results pass."""
    catalogue.check_loop(runner())
    catalogue.check_success(runner())


def test_recovery_and_ledger():
    """A tool that only reads is repeated; another one has its effect once."""
    catalogue.check_recovery_and_ledger(lambda **options: runner(Failures(**options)))


def test_a_tool_that_hangs():
    """The run goes on when the time of the tool is over."""
    catalogue.check_hang(lambda **options: runner(Failures(**options)))
