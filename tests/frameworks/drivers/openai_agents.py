"""The OpenAI Agents SDK with its own handoff."""

import asyncio
import json
from typing import Any

from agents import Agent, FunctionTool, RunConfig, Runner, function_tool, set_tracing_disabled
from agents.items import ModelResponse
from agents.models.interface import Model as AgentsModel
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from amends.bindings.openai_agents import Failures
from tests.frameworks.matrix import HANDOFF, Case, Model

set_tracing_disabled(disabled=True)
NAME = "OpenAI Agents SDK"
REFUSED: frozenset[str] = frozenset()


class Scripted(AgentsModel):
    """Asks the model of the case."""

    def __init__(self, model: Model) -> None:
        self.model = model

    async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
        given = options["input"]
        read = [
            str(each["output"])
            for each in (given if isinstance(given, list) else [])
            if each.get("type") == "function_call_output" and "assistant" not in str(each["output"])
        ]
        step = self.model.step(read)
        output: list[Any]
        if isinstance(step, str):
            text = ResponseOutputText(text=step, type="output_text", annotations=[])
            message = ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
            output = [message]
        else:
            output = [
                ResponseFunctionToolCall(
                    name="transfer_to_helper" if call.tool == HANDOFF else call.tool,
                    arguments=json.dumps(call.arguments),
                    call_id=f"c{len(given)}-{index}",
                    type="function_call",
                )
                for index, call in enumerate(step)
            ]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError


def returned_error() -> object:
    raise RuntimeError("declined")


def run(case: Case) -> None:
    pay: FunctionTool = function_tool(case.pay, name_override="pay", strict_mode=False)
    checks: list[FunctionTool] = []
    if not case.alone:
        failures = Failures(**case.options(lambda caller: caller.thread))
        checks = [failures.check(pay)] if case.checks else []
        pay = failures.guard(pay)

    def model(scripted: Model) -> AgentsModel:
        return Scripted(scripted) if case.alone else failures.model(Scripted(scripted))

    helper = [] if case.helper is None else [Agent(name="helper", tools=[pay], model=model(case.helper))]
    agent = Agent(name="first", tools=[pay, *checks], model=model(case.model), handoffs=[*helper])
    config = RunConfig(group_id=f"{case.user}/{case.session}")
    if not case.alone:
        config = failures.run_config(config)
    asyncio.run(Runner.run(agent, "pay order 17", run_config=config))
