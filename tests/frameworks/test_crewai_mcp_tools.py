"""Tools of a real MCP server in LangChain and Strands, whose adapters need version 1 of the MCP SDK here."""

import asyncio
import sys

import pytest
from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langchain_mcp_adapters.client import MultiServerMCPClient
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from strands import Agent
from strands.tools.mcp import MCPClient

from amends.bindings import langchain, strands
from amends.effects import Effects
from tests.frameworks.matrix import Call, driver

PROGRAM = """
import pathlib, sys
from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

server, calls = FastMCP("shop"), pathlib.Path(sys.argv[1])


def note(name):
    with calls.open("a") as file:
        file.write(name + " ")


@server.tool()
def pay(order: int, currency: str = "EUR") -> str:
    "Pay an order."
    note("pay")
    return f"receipt {order}"


@server.tool()
def decline(order: int) -> str:
    "Decline an order."
    note("decline")
    raise ValueError("declined")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def look(order: int) -> str:
    "Look an order up."
    note("look")
    return f"order {order} is open"


server.run()
"""


class Script:
    """A model that makes each call twice, and answers."""

    def __init__(self, name, second):
        self.steps, self.read = [[Call(name, {"order": 17})], [Call(name, second)]], []

    def step(self, read):
        self.read = read
        return self.steps.pop(0) if self.steps else "the end"


def with_langchain(script, arguments, effects):
    async def work():
        server = {"command": sys.executable, "args": arguments, "transport": "stdio"}
        tools = await MultiServerMCPClient({"shop": server}).get_tools()
        middleware = langchain.Failures(effects=effects, scope="task")
        agent = create_agent(driver("langchain").Scripted(model=script), tools, middleware=[middleware])
        state = await agent.ainvoke({"messages": [{"role": "user", "content": "pay"}]})
        return [str(each.content) for each in state["messages"] if isinstance(each, ToolMessage)]

    return asyncio.run(work())


def with_strands(script, arguments, effects):
    parameters = StdioServerParameters(command=sys.executable, args=arguments)
    with MCPClient(lambda: stdio_client(parameters)) as client:
        agent = Agent(
            model=driver("strands").Scripted(script),
            tools=client.list_tools_sync(),
            plugins=[strands.Failures(effects=effects, scope="task")],
            callback_handler=None,
        )
        agent("pay")
    return script.read


@pytest.mark.parametrize("run", [with_langchain, with_strands])
def test_tools_of_an_mcp_server(run, tmp_path):
    """A payment is made once, one that the server reports as failed is in doubt, and a tool that only reads is called again."""
    program = tmp_path / "server.py"
    program.write_text(PROGRAM)
    cases = {
        "pay": ({"order": "17", "currency": "EUR"}, 1, "ALREADY_DONE", ["done"]),
        "decline": ({"order": 17}, 1, "EFFECT_UNKNOWN", ["doubt"]),
        "look": ({"order": 17}, 2, "is open", []),
    }
    for name, (second, times, says, states) in cases.items():
        noted = tmp_path / name
        with Effects("memory:") as effects:
            texts = run(Script(name, second), [str(program), str(noted)], effects)
            assert [each.state for each in effects.list()] == states, (name, texts)
        assert noted.read_text().split() == [name] * times, texts
        assert says in texts[1], (name, texts)
