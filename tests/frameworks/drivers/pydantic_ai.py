"""pydantic-ai's Agent; the handoff is an agent in a tool."""

import asyncio
from typing import Any

from pydantic_ai import Agent, RunContext, Tool, ToolFailed
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from amends.bindings.pydantic_ai import Failures
from tests.frameworks.matrix import Case, Model

NAME = "pydantic-ai"
REFUSED = frozenset({"extra"})


def scripted(model: Model) -> FunctionModel:
    """Return a model that asks the model of the case."""

    def answer(messages: Any, info: Any) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        read = [str(part.content) for part in parts if part.part_kind in {"tool-return", "retry-prompt"}]
        step = model.step(read)
        if isinstance(step, str):
            return ModelResponse([TextPart(step)])
        return ModelResponse([ToolCallPart(call.tool.replace(" ", "_"), call.arguments) for call in step])

    return FunctionModel(answer)


def returned_error() -> object:
    raise ToolFailed("declined")


def run(case: Case) -> None:
    pay = Tool(case.pay, name="pay")
    capabilities = [] if case.alone else [Failures(**case.options(lambda caller: caller.thread))]

    async def hand_over(ctx: RunContext[None]) -> str:
        """Hand over."""
        assert case.helper is not None
        helper = Agent(scripted(case.helper), tools=[pay], capabilities=capabilities)
        result = await helper.run("pay order 17", usage=ctx.usage, conversation_id=ctx.conversation_id)
        return str(result.output)

    tools: list[Any] = [pay] if case.helper is None else [pay, hand_over]
    agent = Agent(scripted(case.model), tools=tools, capabilities=capabilities)
    asyncio.run(agent.run("pay order 17", conversation_id=f"{case.user}/{case.session}"))
