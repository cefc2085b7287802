"""LlamaIndex with a function agent."""

import asyncio

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI
from tools import MODEL, PROMPT, WITH_AMENDS, create_order, finish

tools = [create_order]
if WITH_AMENDS:
    from amends.bindings.llama_index import Failures

    tools = [Failures().guard(create_order)]


async def main() -> None:
    """Run the agent."""
    agent = FunctionAgent(tools=tools, llm=OpenAI(model=MODEL))
    print(await agent.run(PROMPT))


asyncio.run(main())
finish()
