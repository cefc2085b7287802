"""smolagents with a tool-calling agent."""

from smolagents import OpenAIServerModel, ToolCallingAgent, tool
from tools import MODEL, PROMPT, WITH_AMENDS, create_order, finish

made = tool(create_order)
if WITH_AMENDS:
    from amends.bindings.smolagents import Failures

    made = Failures().guard(made)
agent = ToolCallingAgent(tools=[made], model=OpenAIServerModel(MODEL), max_steps=6)
print(agent.run(PROMPT))
finish()
