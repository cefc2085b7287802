"""Google ADK's LlmAgent, which transfers to a sub-agent for the handoff."""

import asyncio
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.genai import types

from amends.bindings.google_adk import Failures
from tests.frameworks.matrix import HANDOFF, Call, Case

NAME = "Google ADK"
REFUSED: frozenset[str] = frozenset()


class Scripted(BaseLlm):
    """Asks the model of the case."""

    scripted: Any

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        answers = [
            part.function_response.response
            for content in llm_request.contents
            for part in content.parts
            if part.function_response and part.function_response.name != "transfer_to_agent"
        ]
        read = [str(answer.get("error") or answer.get("result")) for answer in answers]
        step = self.scripted.step(read)
        if isinstance(step, str):
            parts = [types.Part(text=step)]
        else:
            parts = [types.Part(function_call=_call(call)) for call in step]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def _call(call: Call) -> types.FunctionCall:
    if call.tool == HANDOFF:
        return types.FunctionCall(name="transfer_to_agent", args={"agent_name": "helper"})
    return types.FunctionCall(name=call.tool, args=call.arguments)


def returned_error() -> object:
    return {"status": "error", "error": "declined"}


def run(case: Case) -> None:
    def pay(order: int, currency: str = "EUR") -> object:
        """Pay an order."""
        return case.pay(order, currency)

    pay_tool = FunctionTool(pay)
    helpers = []
    if case.helper is not None:
        model = Scripted(model="scripted", scripted=case.helper)
        helpers = [LlmAgent(name="helper", description="Helps", model=model, tools=[pay_tool])]
    agent = LlmAgent(
        name="first",
        model=Scripted(model="scripted", scripted=case.model),
        tools=[pay_tool],
        sub_agents=helpers,
    )
    plugins = [] if case.alone else [Failures(**case.options())]

    async def work() -> None:
        runner = InMemoryRunner(agent=agent, app_name="shop", plugins=plugins)
        await runner.session_service.create_session(
            app_name="shop", user_id=case.user, session_id=case.session
        )
        message = types.Content(role="user", parts=[types.Part(text="pay order 17")])
        async for _ in runner.run_async(user_id=case.user, session_id=case.session, new_message=message):
            pass

    asyncio.run(work())
