"""
What agent frameworks do with the catalogue of failures by themselves. Run: .venv-frameworks/bin/python -m bench.frameworks;
crewai has an environment of its own: .venv-crewai/bin/python -m bench.frameworks crewai

For each framework: how many of the failures ended the run, and for the others how many texts for the model had a secret of the
exception in them, and the largest text in bytes.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any

from tests.frameworks.catalogue import CATALOGUE, SECRETS, failing

Bare = Callable[[Callable[[int], Any]], list[str]]


def langchain(tool: Callable[[int], Any]) -> list[str]:
    from langchain.agents import create_agent
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import StructuredTool
    from tests.frameworks.test_langchain import scripted

    agent = create_agent(scripted(1), [StructuredTool.from_function(tool, name="act")])
    state = agent.invoke({"messages": [{"role": "user", "content": "act"}]})
    return [str(each.content) for each in state["messages"] if isinstance(each, ToolMessage)]


def openai_agents(tool: Callable[[int], Any]) -> list[str]:
    from agents import function_tool
    from tests.frameworks.test_openai_agents import runner

    texts: list[str] = runner(None, lambda function: function_tool(function, name_override="act"))(tool, 1)[0]
    return texts


def llama_index(tool: Callable[[int], Any]) -> list[str]:
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.tools import FunctionTool
    from tests.frameworks.test_llama_index import Scripted

    async def work() -> list[str]:
        made = FunctionTool.from_defaults(fn=tool, name="act", description="Act")
        handler = FunctionAgent(tools=[made], llm=Scripted(left=1)).run("act")
        outputs = [getattr(event, "tool_output", None) async for event in handler.stream_events()]
        await handler
        return [output.content for output in outputs if output is not None]

    return asyncio.run(work())


def claude_agent_sdk(tool: Callable[[int], Any]) -> list[str]:
    from claude_agent_sdk import create_sdk_mcp_server
    from claude_agent_sdk import tool as sdk_tool
    from mcp import Client

    async def work() -> list[str]:
        @sdk_tool("act", "Act", {"order": int})
        async def act(arguments: dict[str, Any]) -> Any:
            return tool(arguments["order"])

        async with Client(create_sdk_mcp_server("shop", tools=[act])["instance"]) as client:
            result = await client.call_tool("act", {"order": 17})
        return [item.text for item in result.content]

    return asyncio.run(work())


def google_adk(tool: Callable[[int], Any]) -> list[str]:
    from google.adk.plugins.base_plugin import BasePlugin
    from tests.frameworks.test_google_adk import runner

    texts: list[str] = runner(BasePlugin(name="none"))(tool, 1)[0]
    return texts


def agent_framework(tool: Callable[[int], Any]) -> list[str]:
    from agent_framework import FunctionMiddleware
    from tests.frameworks.test_agent_framework import run_steps

    class Nothing(FunctionMiddleware):
        async def process(self, context: Any, call_next: Callable[[], Any]) -> None:
            await call_next()

    texts, finished = run_steps(tool, [[{"order": 17}]], Nothing())
    assert finished
    return texts


def smolagents(tool: Callable[[int], Any]) -> list[str]:
    from smolagents import LogLevel, ToolCallingAgent
    from tests.frameworks.test_smolagents import Act, Scripted

    agent = ToolCallingAgent(
        tools=[Act(tool)], model=Scripted([[{"order": 17}]]), verbosity_level=LogLevel.OFF
    )
    assert agent.run("act") == "the end"
    return [str(step.error) for step in agent.memory.steps if getattr(step, "error", None)]


def strands(tool: Callable[[int], Any]) -> list[str]:
    from tests.frameworks.test_strands import run_steps

    texts, finished = run_steps(tool, [[{"order": 17}]], [])
    assert finished
    return texts


def pydantic_ai(tool: Callable[[int], Any]) -> list[str]:
    from tests.frameworks.test_pydantic_ai import run_steps

    texts, finished = run_steps(tool, [[{"order": 17}]], None)
    assert finished
    return texts


def crewai(tool: Callable[[int], Any]) -> list[str]:
    from tests.frameworks.test_crewai import run_steps

    texts, finished = run_steps(tool, [[{"order": 17}]], None)
    assert finished
    return texts


FRAMEWORKS = (
    langchain,
    openai_agents,
    llama_index,
    claude_agent_sdk,
    google_adk,
    agent_framework,
    smolagents,
    strands,
    pydantic_ai,
    crewai,
)


def main() -> None:
    """Print one row per framework; names on the command line choose some."""
    logging.disable()
    warnings.simplefilter("ignore")
    chosen = sys.argv[1:] or [each.__name__ for each in FRAMEWORKS if each is not crewai]
    for bare in FRAMEWORKS:
        if bare.__name__ not in chosen:
            continue
        ended = leaked = largest = 0
        for entry in CATALOGUE:
            try:
                text = "\n".join(bare(failing(entry, [])))
            except BaseException:
                ended += 1
                continue
            leaked += any(secret in text for secret in SECRETS)
            largest = max(largest, len(text.encode("utf-8", "replace")))
        print(f"| {bare.__name__} | {ended} of {len(CATALOGUE)} | {leaked} | {largest:,} |")


if __name__ == "__main__":
    main()
