"""
OpenAI Agents SDK: a tool's failure becomes a text that the model can act on, and does not end the run.

    from agents import Agent
    from amends.bindings.openai_agents import Failures

    failures = Failures(read_only=["search"])

    @failures.function_tool
    def search(query: str) -> str: ...

    agent = Agent(name="helper", tools=[search])

Tools made with the SDK's own decorator turn exceptions into text before anything else sees them; give those
`failure_error_function=failures.error_text`. They get the text, but neither recovery nor the ledger.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Unpack, overload

try:
    from agents import FunctionTool
    from agents import function_tool as sdk_function_tool
    from agents.exceptions import AgentsException
    from agents.tool_context import ToolContext
except ImportError as missing:
    raise ImportError(
        "amends.bindings.openai_agents needs the OpenAI Agents SDK: pip install openai-agents"
    ) from missing

from amends.bindings.tool_arguments import by_function, by_schema
from amends.bindings.tool_calls import AGAIN, Caller, Options, Run, ToolCalls, ToolFailure

__all__ = ["Failures"]


class Failures:
    """
    Makes tools whose failures are texts for the model.

    The options are those of `amends.bindings.tool_calls.ToolCalls`.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        self.calls = ToolCalls(**options)

    @overload
    def function_tool(self, function: Callable[..., object], **options: object) -> FunctionTool: ...

    @overload
    def function_tool(
        self, function: None = None, **options: object
    ) -> Callable[[Callable[..., object]], FunctionTool]: ...

    def function_tool(
        self, function: Callable[..., object] | None = None, **options: object
    ) -> FunctionTool | Callable[[Callable[..., object]], FunctionTool]:
        """Decorate a function as the SDK's `function_tool` does; `options` are those of the SDK."""

        def decorate(decorated: Callable[..., object]) -> FunctionTool:
            tool = sdk_function_tool(decorated, **{**options, "failure_error_function": None})
            names = {*tool.params_json_schema.get("properties", {})}

            def received(arguments: dict[str, object]) -> dict[str, object]:
                filled = by_function(decorated, arguments)  # the SDK fills in the context itself
                return {name: value for name, value in filled.items() if name in names}

            return self._guarded(tool, received)

        return decorate if function is None else decorate(function)

    def guard(self, tool: FunctionTool) -> FunctionTool:
        """Return a tool that raises its failures, with `failure_error_function=None`, as one that returns their text."""
        return self._guarded(tool, lambda arguments: by_schema(tool.params_json_schema, arguments))

    def _guarded(
        self, tool: FunctionTool, received: Callable[[dict[str, object]], dict[str, object]]
    ) -> FunctionTool:
        invoke = tool.on_invoke_tool

        async def on_invoke_tool(context: ToolContext, arguments: str) -> object:
            named = received(_arguments(arguments))
            result = await self._run(context).acall(
                tool.name,
                named,
                lambda: invoke(context, arguments),
                passing=_not_for_the_model(),
                takes_again=AGAIN in named,
            )
            return result.text if isinstance(result, ToolFailure) else result

        return dataclasses.replace(tool, on_invoke_tool=on_invoke_tool)

    def error_text(self, context: ToolContext, error: Exception) -> str:
        """Return the text of a failure, as `failure_error_function` of the SDK's own decorator."""
        name = str(getattr(context, "tool_name", "tool"))
        return self._run(context).failed(name, _arguments(getattr(context, "tool_arguments", "")), error).text

    def _run(self, context: ToolContext) -> Run:
        usage = getattr(context, "usage", None)  # one object for all calls of a run
        config = getattr(context, "run_config", None)
        group = getattr(config, "group_id", None)
        caller = Caller(run=id(usage), thread=group if isinstance(group, str) else None)
        return self.calls.run(id(usage), owner=usage, caller=caller)


def _not_for_the_model() -> tuple[type[BaseException], ...]:
    """Exceptions that end a run on purpose: tripwires, the limit of turns, wrong use of the SDK."""
    from agents.exceptions import ModelBehaviorError

    # A ModelBehaviorError is about the model's arguments, so the model gets it.
    return tuple(each for each in AgentsException.__subclasses__() if each is not ModelBehaviorError)


def _arguments(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
