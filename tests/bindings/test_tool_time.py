"""A tool whose service is down answers within a minute, with a wait, in every tool binding."""

import asyncio

import httpx2
import mcp
from mcp.server.mcpserver import MCPServer

from amends import Policy, extract
from amends.bindings.httpx import AsyncTransport, Transport
from amends.bindings.mcp import guard
from amends.bindings.tool_calls import ToolCalls, ToolFailure
from amends.gateway.config import UpstreamConfig
from amends.recovery import TOOL
from amends.testing import FakeClock

BOUND = 60.0


def down(clock, seconds=0.0, calls=None):
    """A service that cannot be reached, which is known after so many seconds."""

    def refuse(request):
        if calls is not None:
            calls.append(clock.now())
        clock.advance(seconds)
        raise httpx2.ConnectError("refused")

    return httpx2.MockTransport(refuse)


def test_a_tool_of_an_mcp_server():
    """The tool reads from an API that is down, three times; the answer has a wait."""
    server, calls = MCPServer("shop"), []
    with FakeClock() as clock:

        @server.tool()
        async def prices() -> str:
            async with httpx2.AsyncClient(transport=AsyncTransport(down(clock, 1.0, calls))) as client:
                for path in ("a", "b", "c"):
                    await client.get(f"https://api.example/{path}")
            return "never"

        async def main():
            async with mcp.Client(guard(server)) as client:
                return await client.call_tool("prices", {})

        began = clock.now()
        result = asyncio.run(main())
        assert clock.now() - began < BOUND
    assert result.is_error
    assert len(calls) == TOOL.attempts
    assert extract(result).retry_after >= 1


def test_a_tool_of_an_agent_framework():
    """The same through the calls that all frameworks share; a failure of several services ends in time, too."""
    calls = []
    with FakeClock() as clock:

        def prices():
            with httpx2.Client(transport=Transport(down(clock, 4.0, calls))) as client:
                for number in range(9):
                    try:
                        client.get(f"https://api{number}.example/")
                    except Exception:
                        continue
            raise TimeoutError

        began = clock.now()
        failure = ToolCalls(read_only=["prices"]).run("run").call("prices", {}, prices)
        assert isinstance(failure, ToolFailure)
        assert clock.now() - began < BOUND + 9 * 4.0  # past the bound, each service is called once
    assert failure.fault.retry_after is not None


def test_a_policy_of_the_tools_author_wins():
    """What the author of the tool gave is not replaced."""
    calls = []
    with FakeClock() as clock:

        def prices():
            transport = Transport(down(clock, 0.0, calls), policy=Policy(attempts=4, max_wait=400))
            with httpx2.Client(transport=transport) as client:
                client.get("https://api.example/")

        ToolCalls().run("run").call("prices", {}, prices)
    assert len(calls) == 4


def test_the_gateway_has_the_same_policy():
    """A gateway's upstream without a policy of its own."""
    assert UpstreamConfig(name="shop", kind="http").policy == TOOL
