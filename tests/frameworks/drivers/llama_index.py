"""LlamaIndex's FunctionAgent, and its AgentWorkflow for the handoff."""

import asyncio
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, MessageRole
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools import FunctionTool, ToolOutput

from amends.bindings.llama_index import Failures
from tests.frameworks.matrix import HANDOFF, Case

NAME = "LlamaIndex"
REFUSED = frozenset({"extra"})


class Scripted(FunctionCallingLLM):
    """Asks the model of the case."""

    model: Any

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True)

    def _response(self, messages: Any) -> ChatResponse:
        read = [str(each.content) for each in messages if each.role == MessageRole.TOOL]
        step = self.model.step([each for each in read if "handling the request" not in each])
        if isinstance(step, str):
            return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=step))
        more = {"step": step, "number": len(messages)}
        return ChatResponse(
            message=ChatMessage(role=MessageRole.ASSISTANT, content="", additional_kwargs=more)
        )

    async def astream_chat_with_tools(
        self, tools: Any, *args: Any, chat_history: Any = (), **options: Any
    ) -> Any:
        async def once() -> Any:
            yield self._response(chat_history)

        return once()

    async def achat_with_tools(
        self, tools: Any, *args: Any, chat_history: Any = (), **options: Any
    ) -> ChatResponse:
        return self._response(chat_history)

    def get_tool_calls_from_response(self, response: ChatResponse, **options: Any) -> list[ToolSelection]:
        step = response.message.additional_kwargs.get("step", ())
        number = response.message.additional_kwargs.get("number")
        handoff = {"to_agent": "helper", "reason": "none"}
        return [
            ToolSelection(
                tool_id=f"call-{number}-{index}",
                tool_name="handoff" if call.tool == HANDOFF else call.tool,
                tool_kwargs=handoff if call.tool == HANDOFF else call.arguments,
            )
            for index, call in enumerate(step)
        ]

    def _prepare_chat_with_tools(self, *args: Any, **options: Any) -> dict[str, Any]:
        return {}

    def chat(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError

    stream_chat = complete = stream_complete = chat

    async def acomplete(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError

    achat = astream_chat = astream_complete = acomplete


def returned_error() -> object:
    return ToolOutput(tool_name="pay", content="declined", raw_input={}, raw_output="declined", is_error=True)


class Returning(FunctionTool):
    """A tool whose result may be a whole ToolOutput, as tools of a class of their own return it."""

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        output = super().call(*args, **kwargs)
        return output.raw_output if isinstance(output.raw_output, ToolOutput) else output

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        output = await super().acall(*args, **kwargs)
        return output.raw_output if isinstance(output.raw_output, ToolOutput) else output


def run(case: Case) -> None:
    plain = FunctionTool.from_defaults(fn=case.pay, name="pay")
    pay: FunctionTool = Returning(fn=case.pay, metadata=plain.metadata)
    checks: list[FunctionTool] = []
    if not case.alone:
        failures = Failures(**case.options(f"{case.user}/{case.session}"))
        checks = [failures.check(pay)] if case.checks else []
        pay = failures.guard(pay)
    agents = [
        FunctionAgent(name="first", description="Pays", tools=[pay, *checks], llm=Scripted(model=case.model))
    ]
    if case.helper is not None:
        helper = FunctionAgent(
            name="helper", description="Helps", tools=[pay], llm=Scripted(model=case.helper)
        )
        agents.append(helper)

    async def work() -> None:
        if case.helper is None:
            await agents[0].run("pay order 17")
        else:
            await AgentWorkflow(agents=[*agents], root_agent="first").run("pay order 17")

    asyncio.run(work())
