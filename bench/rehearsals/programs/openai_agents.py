"""The OpenAI Agents SDK."""

import agents
import openai
from tools import MODEL, PROMPT, WITH_AMENDS, async_openai_options, create_order, finish

agents.set_tracing_disabled(True)
model = agents.OpenAIChatCompletionsModel(MODEL, openai.AsyncOpenAI(**async_openai_options()))
if WITH_AMENDS:
    from amends.bindings.openai_agents import Failures

    tool = Failures().function_tool(create_order)
else:
    tool = agents.function_tool(create_order)
agent = agents.Agent(name="orders", model=model, tools=[tool])
print(agents.Runner.run_sync(agent, PROMPT).final_output)
finish()
