"""CrewAI's Crew; the handoff is the delegation to a coworker."""

import json
import os
from typing import Any

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false", OTEL_SDK_DISABLED="true")

from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool
from crewai.tools.tool_failure import ToolFailure, ToolFailureReason
from pydantic import PrivateAttr

from amends.bindings.crewai import Failures
from tests.frameworks.matrix import HANDOFF, Case, Model

NAME = "CrewAI"
REFUSED: frozenset[str] = frozenset()
FORKS = False


class Scripted(BaseLLM):
    """Asks the model of the case."""

    _model: Any = PrivateAttr()

    @classmethod
    def of(cls, model: Model) -> "Scripted":
        made = cls(model="scripted")
        made._model = model
        return made

    def call(self, messages: Any, *args: Any, **options: Any) -> Any:
        step = self._model.step([str(each["content"]) for each in messages if each.get("role") == "tool"])
        if isinstance(step, str):
            return step
        delegation = {"task": "pay order 17", "context": "none", "coworker": "helper"}
        return [
            {
                "id": f"call-{len(messages)}-{index}",
                "type": "function",
                "function": {
                    "name": "delegate_work_to_coworker" if call.tool == HANDOFF else call.tool,
                    "arguments": json.dumps(delegation if call.tool == HANDOFF else call.arguments),
                },
            }
            for index, call in enumerate(step)
        ]

    def supports_function_calling(self) -> bool:
        return True


def returned_error() -> object:
    return ToolFailure(message="declined", reason=ToolFailureReason.EXCEPTION, retryable=False)


def run(case: Case) -> None:
    def pay(order: int, currency: str = "EUR") -> Any:
        """Pay an order."""
        return case.pay(order, currency)

    pay_tool = tool("pay")(pay)
    checks: list[Any] = []
    if not case.alone:
        failures = Failures(**case.options(f"{case.user}/{case.session}"))
        checks = [failures.check(pay_tool)] if case.checks else []
        pay_tool = failures.guard(pay_tool)

    def agent(role: str, model: Model, **options: Any) -> Agent:
        return Agent(
            role=role,
            goal="pay",
            backstory="none",
            llm=Scripted.of(model),
            tools=[pay_tool, *checks],
            **options,
        )

    first = agent("first", case.model, allow_delegation=case.helper is not None)
    helpers = [] if case.helper is None else [agent("helper", case.helper)]
    task = Task(description="pay order 17", expected_output="text", agent=first)
    Crew(agents=[first, *helpers], tasks=[task], cache=False, tracing=False).kickoff()
