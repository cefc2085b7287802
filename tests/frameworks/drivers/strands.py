"""Strands' Agent; the handoff is an agent as a tool."""

import json
from typing import Any

from strands import Agent, tool
from strands.models import Model as StrandsModel

from amends.bindings.strands import Failures
from tests.frameworks.matrix import HANDOFF, Case, Model

NAME = "Strands Agents"
REFUSED: frozenset[str] = frozenset()


class Scripted(StrandsModel):
    """Asks the model of the case."""

    def __init__(self, model: Model) -> None:
        self.model = model

    async def stream(self, messages: Any, *args: Any, **options: Any) -> Any:
        results = [
            part["toolResult"] for each in messages for part in each["content"] if "toolResult" in part
        ]
        step = self.model.step([each["content"][0].get("text", "") for each in results])
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(step, str):
            yield {"contentBlockDelta": {"delta": {"text": step}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}
            return
        for index, call in enumerate(step):
            name = "helper" if call.tool == HANDOFF else call.tool
            arguments = {"input": "pay order 17"} if call.tool == HANDOFF else call.arguments
            use = {"name": name, "toolUseId": f"call-{len(messages)}-{index}"}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(arguments)}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use"}}

    def get_config(self) -> Any:
        return {}

    def update_config(self, **options: Any) -> None:
        raise NotImplementedError

    def structured_output(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError


def returned_error() -> object:
    return {"status": "error", "content": [{"text": "declined"}]}


def run(case: Case) -> None:
    pay = tool(case.pay, name="pay", description="Pay an order")

    def agent(model: Model, tools: list[Any], **options: Any) -> Agent:
        plugins = [] if failures is None else [failures]
        return Agent(model=Scripted(model), tools=tools, plugins=plugins, callback_handler=None, **options)

    failures = None if case.alone else Failures(**case.options(f"{case.user}/{case.session}"))
    tools: list[Any] = [pay]
    if case.helper is not None:
        tools.append(agent(case.helper, [pay], name="helper", description="Helps").as_tool(name="helper"))
    agent(case.model, tools)("pay order 17")
