"""In-process MCP tools of the Claude Agent SDK, called through the server that the SDK makes of them."""

import asyncio

from claude_agent_sdk import create_sdk_mcp_server, tool
from mcp import Client

from amends.bindings.claude_agent_sdk import Failures
from amends.effects import Effects
from amends.errors import ServiceUnavailableError
from amends.testing import FakeClock
from tests.frameworks import catalogue


def runner(failures=None):
    async def work(function, times):
        made = failures or Failures()

        @made.guard
        @tool("act", "Act on an order", {"order": int})
        async def act(arguments):
            return {"content": [{"type": "text", "text": function(arguments["order"])}]}

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
    outcomes = iter([ServiceUnavailableError("later", retry_after=1), "found"])

    def read(order):
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    with FakeClock():
        assert runner(Failures(read_only=["act"]))(read, 1)[0] == ["found"]
    paid = []

    def pay(order):
        paid.append(order)
        raise ConnectionResetError("db.internal")

    with Effects("memory:") as effects:
        texts, _ = runner(Failures(effects=effects, scope="task"))(pay, 3)
    assert (len(paid), len(texts)) == (1, 3)
