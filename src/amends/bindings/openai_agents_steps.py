"""
OpenAI Agents SDK: an agent that continues where its process died.

    from agents import Agent
    from amends.bindings.openai_agents_steps import run

    agent = Agent(name="checkout", tools=[pay])

    @runtime.register_agent("checkout", repeatable=True)
    async def checkout(order, ctx):
        return (await run(agent, f"Pay order {order}")).final_output

`run` is `Runner.run` with the agent and the run configuration that `Durability` makes: model calls and tool calls, also of agents to
which it hands off, are durable steps of the job or task. The SDK has no place in the run configuration for tools, so that the
agent is copied: `Runner.run(durability.agent(agent), text, run_config=durability.run_config())` is the same.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from datetime import timedelta
from typing import Any

try:
    from agents import Agent, FunctionTool, Handoff, Model, ModelProvider, RunConfig, Runner, RunResult
    from agents.items import ModelResponse
    from agents.tool_context import ToolContext
    from pydantic import TypeAdapter
except ImportError as missing:
    raise ImportError(
        "amends.bindings.openai_agents_steps needs the OpenAI Agents SDK: pip install openai-agents"
    ) from missing

from amends.bindings.agent_steps import AgentSteps, without
from amends.core.json_value import json_value

__all__ = ["Durability", "run"]

_NOT_STABLE = frozenset(
    {"id", "status", "created_at", "created_by", "logprobs", "annotations", "provider_data"}
)
"""Members of items that differ between two starts, or that a model does not need. `call_id` is the model's, and stored."""
_RESPONSE: TypeAdapter[ModelResponse] = TypeAdapter(ModelResponse)


async def run(
    agent: Agent[Any], input: Any, *, run_config: RunConfig | None = None, **options: Any
) -> RunResult:
    """Run an agent as `Runner.run` does, with durable steps; `options` are those of `Runner.run`."""
    durability = Durability()
    return await Runner.run(
        durability.agent(agent), input, run_config=durability.run_config(run_config), **options
    )


class Durability:
    """
    Makes agents and run configurations with durable steps.

    The options are those of `amends.bindings.agent_steps.AgentSteps`: `name`, `repeat`, `verify`, `timeout`.
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        repeat: Collection[str] = (),
        verify: Mapping[str, Callable[..., object]] | None = None,
        timeout: float | timedelta | None = None,
    ) -> None:
        self.steps = AgentSteps(name=name, repeat=repeat, verify=verify, timeout=timeout)

    def run_config(self, config: RunConfig | None = None) -> RunConfig:
        """Return a run configuration whose models are called in steps."""
        config = config or RunConfig()
        model = _Model(self.steps, config.model) if isinstance(config.model, Model) else config.model
        provider = _Provider(self.steps, config.model_provider)
        return dataclasses.replace(config, model=model, model_provider=provider)

    def agent(self, agent: Agent[Any]) -> Agent[Any]:
        """Return a copy of an agent, and of those it hands off to, whose tools are called in steps."""
        return self._agent(agent, {})

    def _agent(self, agent: Agent[Any], copies: dict[int, Agent[Any]]) -> Agent[Any]:
        if id(agent) in copies:
            return copies[id(agent)]
        tools = [self._tool(tool) if isinstance(tool, FunctionTool) else tool for tool in agent.tools]
        copy = copies[id(agent)] = agent.clone(tools=tools)
        if isinstance(agent.model, Model):
            copy.model = _Model(self.steps, agent.model)
        copy.handoffs = [
            self._handoff(each, copies) if isinstance(each, Handoff) else self._agent(each, copies)
            for each in agent.handoffs
        ]
        return copy

    def _handoff(self, handoff: Handoff[Any, Any], copies: dict[int, Agent[Any]]) -> Handoff[Any, Any]:
        invoke = handoff.on_invoke_handoff

        async def on_invoke_handoff(context: Any, arguments: str) -> Agent[Any]:
            return self._agent(await invoke(context, arguments), copies)

        return dataclasses.replace(handoff, on_invoke_handoff=on_invoke_handoff)

    def _tool(self, tool: FunctionTool) -> FunctionTool:
        invoke = tool.on_invoke_tool

        async def on_invoke_tool(context: ToolContext[Any], arguments: str) -> object:
            async def call() -> object:
                result = invoke(context, arguments)
                result = await result if inspect.isawaitable(result) else result
                dump = getattr(result, "model_dump", None)
                return json_value(dump(mode="json") if callable(dump) else result)

            named, same = _named(arguments), lambda value: value
            return await self.steps.tool(tool.name, context.tool_call_id, named, call, found=same)

        return dataclasses.replace(tool, on_invoke_tool=on_invoke_tool)


class _Provider(ModelProvider):
    """Provides the models of another provider, which are called in steps."""

    def __init__(self, steps: AgentSteps, provider: ModelProvider) -> None:
        self._steps, self._provider = steps, provider

    def get_model(self, model_name: str | None) -> Model:
        """Return a model by its name."""
        return _Model(self._steps, self._provider.get_model(model_name))

    async def aclose(self) -> None:
        """Close the provider."""
        await self._provider.aclose()


class _Model(Model):
    """A model that is called in steps."""

    def __init__(self, steps: AgentSteps, model: Model) -> None:
        self._steps, self._model = steps, model

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: Any,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: Any,
        **options: Any,
    ) -> ModelResponse:
        """Call the model, or return its stored response."""
        form = {
            "instructions": system_instructions,
            "input": without(json_value(input), _NOT_STABLE),
            "tools": sorted(str(getattr(tool, "name", "")) for tool in tools),
            "handoffs": sorted(handoff.tool_name for handoff in handoffs),
        }

        async def call() -> object:
            response = await self._model.get_response(
                system_instructions,
                input,
                model_settings,
                tools,
                output_schema,
                handoffs,
                tracing,
                **options,
            )
            return _RESPONSE.dump_python(response, mode="json")

        return _RESPONSE.validate_python(await self._steps.model(form, call))

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        """
        Refuse to stream, because a stream cannot be replayed.

        Raises:
            TypeError: always.

        """
        raise TypeError("a streamed run cannot be replayed: use run, not Runner.run_streamed")

    async def close(self) -> None:
        """Close the model."""
        await self._model.close()

    def get_retry_advice(self, request: Any) -> Any:
        """Return the advice of the model."""
        return self._model.get_retry_advice(request)


def _named(arguments: str) -> dict[str, object]:
    """Return the arguments by name; a text that is no JSON object as it is, under an empty name."""
    try:
        value = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return {"": arguments}
    return value if isinstance(value, dict) else {"": arguments}
