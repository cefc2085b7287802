"""LangChain's create_agent; the handoff is a Command in a graph of two agents."""

from typing import Annotated, Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import InjectedToolCallId, StructuredTool, ToolException
from langgraph.graph import MessagesState, StateGraph
from langgraph.types import Command

from amends.bindings.langchain import Failures
from tests.frameworks.matrix import HANDOFF, Case, Model

NAME = "LangChain, LangGraph"
REFUSED: frozenset[str] = frozenset()


class Scripted(BaseChatModel):
    """Asks the model of the case."""

    model: Any

    def _generate(self, messages: Any, *args: Any, **options: Any) -> ChatResult:
        step = self.model.step([str(each.content) for each in messages if isinstance(each, ToolMessage)])
        if isinstance(step, str):
            message = AIMessage(step)
        else:
            number = len(messages)
            calls = [
                {"name": call.tool.replace(" ", "_"), "args": call.arguments, "id": f"call-{number}-{index}"}
                for index, call in enumerate(step)
            ]
            message = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    @property
    def _llm_type(self) -> str:
        return "scripted"


def returned_error() -> object:
    raise ToolException("declined")


def run(case: Case) -> None:
    pay = StructuredTool.from_function(case.pay, name="pay", handle_tool_error=True)

    def hand_over(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Hand over."""
        told = ToolMessage("over to you", tool_call_id=tool_call_id)
        return Command(goto="helper", graph=Command.PARENT, update={"messages": [told]})

    def agent(model: Model, tools: list[Any]) -> Any:
        middleware = [] if case.alone else [failures]
        return create_agent(Scripted(model=model), tools, middleware=middleware)

    failures = None if case.alone else Failures(**case.options())
    config = {"configurable": {"thread_id": case.session, "user_id": case.user}}
    question: Any = {"messages": [{"role": "user", "content": "pay order 17"}]}
    if case.helper is None:
        agent(case.model, [pay]).invoke(question, config)
        return
    first = agent(case.model, [pay, StructuredTool.from_function(hand_over, name=HANDOFF.replace(" ", "_"))])
    graph = StateGraph(MessagesState)
    graph.add_node("first", first, destinations=("helper",))
    graph.add_node("helper", agent(case.helper, [pay]))
    graph.set_entry_point("first")
    graph.compile().invoke(question, config)
