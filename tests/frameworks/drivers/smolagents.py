"""smolagents' ToolCallingAgent; the handoff is a managed agent."""

from typing import Any

from smolagents import ChatMessage, LogLevel, Tool, ToolCallingAgent
from smolagents import Model as SmolModel
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole

from amends.bindings.smolagents import Failures
from tests.frameworks.matrix import HANDOFF, Call, Case, Model

NAME = "smolagents"
REFUSED = frozenset({"extra", "type changed"})


class Pay(Tool):
    """The tool."""

    name, description, output_type = "pay", "Pays an order.", "string"
    inputs = {
        "order": {"type": "integer", "description": "the order"},
        "currency": {"type": "string", "description": "the currency", "nullable": True, "default": "EUR"},
    }

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, order: int, currency: str = "EUR") -> str:
        return self.function(order, currency)


class Scripted(SmolModel):
    """Asks the model of the case."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def generate(self, messages: Any, **options: Any) -> ChatMessage:
        texts = [
            part["text"]
            for each in messages
            if each.role in {MessageRole.TOOL_RESPONSE, MessageRole.USER} and isinstance(each.content, list)
            for part in each.content
            if part.get("type") == "text" and part["text"].startswith(("Observation:", "Call id", "Error:"))
        ]
        step = self.model.step(texts)
        calls = [Call("final_answer", {"answer": step})] if isinstance(step, str) else step
        return ChatMessage(
            role=MessageRole.ASSISTANT,
            content="",
            tool_calls=[
                ChatMessageToolCall(
                    id=f"call-{len(messages)}-{index}",
                    type="function",
                    function=ChatMessageToolCallFunction(
                        name="helper" if call.tool == HANDOFF else call.tool,
                        arguments={"task": "pay order 17"} if call.tool == HANDOFF else call.arguments,
                    ),
                )
                for index, call in enumerate(calls)
            ],
        )


def returned_error() -> object:
    raise RuntimeError("declined")


def run(case: Case) -> None:
    pay: Tool = Pay(case.pay)
    checks: list[Tool] = []
    if not case.alone:
        failures = Failures(**case.options(f"{case.user}/{case.session}"))
        pay = failures.guard(pay)
        checks = [failures.check(pay)] if case.checks else []
    helpers = []
    if case.helper is not None:
        helpers.append(
            ToolCallingAgent(
                tools=[pay],
                model=Scripted(case.helper),
                name="helper",
                description="Helps",
                verbosity_level=LogLevel.OFF,
            )
        )
    agent = ToolCallingAgent(
        tools=[pay, *checks], model=Scripted(case.model), managed_agents=helpers, verbosity_level=LogLevel.OFF
    )
    agent.run("pay order 17")
