"""pydantic-ai."""

import openai
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from tools import MODEL, PROMPT, WITH_AMENDS, async_openai_options, create_order, finish

options = {}
if WITH_AMENDS:
    from amends.bindings.pydantic_ai import Failures

    options = {"capabilities": [Failures()]}
provider = OpenAIProvider(openai_client=openai.AsyncOpenAI(**async_openai_options()))
agent = Agent(OpenAIChatModel(MODEL, provider=provider), tools=[create_order], **options)
print(agent.run_sync(PROMPT).output)
finish()
