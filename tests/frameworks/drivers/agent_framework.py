"""Microsoft Agent Framework's agent; the handoff is an agent as a tool."""

import asyncio
from typing import Any

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)

from amends.bindings.agent_framework import Failures
from tests.frameworks.matrix import HANDOFF, Case, Model

NAME = "Microsoft Agent Framework"
REFUSED: frozenset[str] = frozenset()


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):  # type: ignore[misc]
    """Asks the model of the case."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.scripted = model

    def _inner_get_response(self, *, messages: Any, stream: Any, options: Any, **more: Any) -> Any:
        if stream:
            return self._build_response_stream(self._streamed(messages))
        return self._answered(messages)

    async def _streamed(self, messages: Any) -> Any:
        response = await self._answered(messages)
        yield ChatResponseUpdate(contents=response.messages[0].contents, role="assistant")

    async def _answered(self, messages: Any) -> Any:
        parts = [part for message in messages for part in message.contents if part.type == "function_result"]
        step = self.scripted.step([str(part.result) for part in parts])
        if isinstance(step, str):
            contents = [Content.from_text(step)]
        else:
            contents = [
                Content.from_function_call(
                    f"call-{len(parts)}-{index}",
                    "helper" if call.tool == HANDOFF else call.tool,
                    arguments={"task": "pay order 17"} if call.tool == HANDOFF else call.arguments,
                )
                for index, call in enumerate(step)
            ]
        return ChatResponse(messages=[Message("assistant", contents)], response_id=str(len(messages)))


def returned_error() -> object:
    raise RuntimeError("declined")


def run(case: Case) -> None:
    @tool(approval_mode="never_require")
    def pay(order: int, currency: str = "EUR") -> Any:
        """Pay an order."""
        return case.pay(order, currency)

    middleware: list[Any] = [] if case.alone else [Failures(**case.options(lambda caller: caller.session))]
    tools: list[Any] = [pay]
    if case.helper is not None:
        helper = Agent(client=Scripted(case.helper), name="helper", tools=[pay], middleware=middleware)
        tools.append(helper.as_tool(name="helper", propagate_session=True))
    agent = Agent(client=Scripted(case.model), tools=tools, middleware=middleware)
    session = AgentSession(session_id=f"{case.user}/{case.session}")
    asyncio.run(agent.run("pay order 17", session=session))
