"""Strands Agents."""

from strands import Agent, tool
from strands.models.openai import OpenAIModel
from tools import MODEL, PROMPT, WITH_AMENDS, create_order, finish

plugins = []
if WITH_AMENDS:
    from amends.bindings.strands import Failures

    plugins = [Failures()]
agent = Agent(
    model=OpenAIModel(model_id=MODEL), tools=[tool(create_order)], plugins=plugins, callback_handler=None
)
print(agent(PROMPT))
finish()
