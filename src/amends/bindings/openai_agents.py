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

import copy
import dataclasses
import inspect
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import ContextVar
from typing import Any, Unpack, overload

try:
    from agents import (
        FunctionTool,
        Model,
        ModelProvider,
        ModelResponse,
        RunConfig,
        RunContextWrapper,
        default_tool_error_function,
    )
    from agents import function_tool as sdk_function_tool
    from agents.exceptions import AgentsException, ModelBehaviorError
    from agents.run_config import ToolErrorFormatterArgs
    from agents.tool import (
        resolve_function_tool_failure_error_function,
        set_function_tool_failure_error_function,
    )
    from agents.tool_context import ToolContext
except ImportError as missing:
    raise ImportError(
        "amends.bindings.openai_agents needs the OpenAI Agents SDK: pip install openai-agents"
    ) from missing

from amends.bindings.model_calls import ModelCalls
from amends.bindings.tool_arguments import by_function, by_schema
from amends.bindings.tool_calls import (
    AGAIN,
    Caller,
    Options,
    Run,
    ToolCalls,
    ToolFailure,
    check_description,
    unknown_tool_text,
)
from amends.core.wrong_calls import refuse_unknown
from amends.errors import ValidationError
from amends.serving.server_errors import modules_of

__all__ = ["Failures"]


class Failures:
    """
    Makes tools whose failures are texts for the model.

    The options are those of `amends.bindings.tool_calls.ToolCalls`.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        refuse_unknown(type(self).__name__, options, Options.__annotations__)
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
        """
        Return the tool as one that returns the text of its failures.

        A `failure_error_function` of the tool's author is asked for the text; that of the SDK is not, because the ledger would
        take its text for a result.
        """
        return self._guarded(tool, lambda arguments: by_schema(tool.params_json_schema, arguments))

    def model(self, model: Model) -> Model:
        """Return a model whose calls are recovered within bounds: `Agent(model=failures.model(model), ...)`."""
        return _Recovered(model, self.calls.models)

    def run_config(self, config: RunConfig | None = None) -> RunConfig:
        """
        Return a copy of the configuration of a run: `Runner.run(agent, question, run_config=failures.run_config())`.

        Models that agents name are recovered, and the model reads which tools there are if it calls one that does not exist; the
        SDK alone ends the run then.
        """
        changed = copy.copy(RunConfig() if config is None else config)
        changed.model_provider = _Provider(changed.model_provider, self.calls.models)
        if isinstance(changed.model, Model):
            changed.model = self.model(changed.model)
        changed.tool_not_found_behavior = "return_error_to_model"
        if changed.tool_error_formatter is None:
            changed.tool_error_formatter = self._unknown_tool
        return changed

    def _unknown_tool(self, problem: ToolErrorFormatterArgs[object]) -> str | None:
        """Return what the model reads about a tool that does not exist."""
        if problem.kind != "tool_not_found":
            return None
        return unknown_tool_text(_TOOLS.get())

    def check(self, tool: FunctionTool) -> FunctionTool:
        """
        Return a tool that finds out whether an earlier call of `tool` happened: `Agent(tools=[pay, failures.check(pay)])`.

        The model sees it while a call is in doubt. The effect of the tool is declared with a verification.
        """
        name, schema = self.calls.offer_check(tool.name), tool.params_json_schema

        async def find_out(context: ToolContext, arguments: str) -> str:
            return await self._run(context).acheck(tool.name, by_schema(schema, _arguments(arguments)))

        return FunctionTool(
            name=name,
            description=check_description(tool.name),
            params_json_schema=schema,
            on_invoke_tool=find_out,
            strict_json_schema=tool.strict_json_schema,
            is_enabled=lambda context, agent: self._is_in_doubt(context, tool.name),
        )

    def _is_in_doubt(self, context: RunContextWrapper[object], name: str) -> bool:
        usage = getattr(context, "usage", None)
        run = self.calls.find(id(usage), owner=usage)
        return run is not None and run.in_doubt(name)

    def _guarded(
        self, tool: FunctionTool, received: Callable[[dict[str, object]], dict[str, object]]
    ) -> FunctionTool:
        raising = set_function_tool_failure_error_function(dataclasses.replace(tool), None)
        invoke = raising.on_invoke_tool

        async def on_invoke_tool(context: ToolContext, arguments: str) -> object:
            named = received(_arguments(arguments))

            async def call() -> object:
                try:
                    return await invoke(context, arguments)
                except ModelBehaviorError as error:
                    if not "".join(modules_of(error)[-1:]).startswith("agents."):
                        raise
                    # The SDK could not read the arguments, so it did not call the function.
                    raise ValidationError("The arguments do not fit", executed="no") from error

            result = await self._run(context).acall(
                tool.name,
                named,
                call,
                passing=_not_for_the_model(),
                directs=_is_agent(tool),
                takes_again=AGAIN in named,
            )
            if not isinstance(result, ToolFailure):
                return result
            explain = resolve_function_tool_failure_error_function(tool, context)
            if explain is None or explain is default_tool_error_function or result.error is None:
                return result.text
            said = explain(context, result.error)
            return await said if inspect.isawaitable(said) else said

        return dataclasses.replace(tool, on_invoke_tool=on_invoke_tool)

    def error_text(self, context: ToolContext, error: Exception) -> str:
        """Return the text of a failure, as `failure_error_function` of the SDK's own decorator."""
        name = str(getattr(context, "tool_name", "tool"))
        return self._run(context).failed(name, _arguments(getattr(context, "tool_arguments", "")), error).text

    def _run(self, context: RunContextWrapper[object]) -> Run:
        usage = getattr(context, "usage", None)  # one object for all calls of a run
        config = getattr(context, "run_config", None)
        group = getattr(config, "group_id", None)
        thread = group if isinstance(group, str) else None
        caller = Caller(run=id(usage), thread=thread, context=context)
        return self.calls.run(id(usage), owner=usage, caller=caller)


_TOOLS: ContextVar[tuple[str, ...]] = ContextVar("amends_openai_tools", default=())
"""The names of the tools in the last request to the model."""


class _Recovered(Model):
    """A model whose calls are recovered. A stream is begun anew only before its first event."""

    def __init__(self, model: Model, models: ModelCalls) -> None:
        self._model, self._models = model, models

    async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
        _note_tools(args, options)
        return await self._models.acall(self._model, lambda model: model.get_response(*args, **options))

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        _note_tools(args, options)
        return self._models.astream(self._model, lambda model: model.stream_response(*args, **options))

    async def close(self) -> None:
        await self._model.close()


class _Provider(ModelProvider):
    """Recovers the calls of the models of another provider."""

    def __init__(self, provider: ModelProvider, models: ModelCalls) -> None:
        self._provider, self._models = provider, models
        self._made: dict[int, tuple[Model, Model]] = {}

    def get_model(self, model_name: str | None) -> Model:
        model = self._provider.get_model(model_name)
        if id(model) not in self._made:
            self._made[id(model)] = model, _Recovered(model, self._models)
        return self._made[id(model)][1]

    async def aclose(self) -> None:
        await self._provider.aclose()


def _note_tools(args: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    tools = options.get("tools", args[3] if len(args) > 3 else ())
    _TOOLS.set(tuple(str(each.name) for each in tools if hasattr(each, "name")))


def _is_agent(tool: FunctionTool) -> bool:
    """Return whether a tool is another agent, made with `Agent.as_tool`."""
    return getattr(tool, "_is_agent_tool", False) is True


def _not_for_the_model() -> tuple[type[BaseException], ...]:
    """Exceptions that end a run on purpose: tripwires, the limit of turns, wrong use of the SDK."""
    # A ModelBehaviorError is about the model's arguments, so the model gets it.
    return tuple(each for each in AgentsException.__subclasses__() if each is not ModelBehaviorError)


def _arguments(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
