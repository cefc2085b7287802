"""
pydantic-ai: an agent that continues where its process died.

    from pydantic_ai import Agent
    from amends.bindings.pydantic_ai_steps import Durability

    agent = Agent(model, tools=[pay], capabilities=[Durability()])

    @runtime.register_agent("checkout", repeatable=True)
    async def checkout(order, ctx):
        return (await agent.run(f"Pay order {order}")).output

Model calls and tool calls are durable steps of the job or task. Put it before `Failures`, so that texts of failures are stored too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import timedelta
from typing import Any, cast

try:
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import (
        ApprovalRequired,
        CallDeferred,
        ModelRetry,
        ToolFailed,
        ToolFailedError,
        ToolRetryError,
    )
    from pydantic_ai.messages import (
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        ToolCallPart,
        ToolReturn,
        ToolReturnPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tools import ToolDefinition
except ImportError as missing:
    raise ImportError(
        "amends.bindings.pydantic_ai_steps needs pydantic-ai: pip install 'pydantic-ai-slim>=2.60'"
    ) from missing

from amends.bindings.agent_steps import AgentSteps
from amends.core.wrong_calls import explains_wrong_calls

__all__ = ["Durability"]

_CALLED = ("part_kind", "content", "tool_name", "args", "tool_call_id", "outcome")
"""What a model gets of a part of a message. Times, ids of runs and messages, and what pydantic-ai notes, differ between two starts."""
_DEFERRED = (ApprovalRequired, CallDeferred)


class Durability(AbstractCapability[object]):
    """
    The capability.

    The options are those of `amends.bindings.agent_steps.AgentSteps`: `name`, `repeat`, `verify`, `timeout`.
    """

    @explains_wrong_calls
    def __init__(
        self,
        *,
        name: str | None = None,
        repeat: Collection[str] = (),
        verify: Mapping[str, Callable[..., object]] | None = None,
        timeout: float | timedelta | None = None,
    ) -> None:
        super().__init__()
        self.steps = AgentSteps(name=name, repeat=repeat, verify=verify, timeout=timeout)

    async def wrap_model_request(
        self,
        ctx: RunContext[object],
        *,
        request_context: ModelRequestContext,
        handler: Callable[[ModelRequestContext], Awaitable[ModelResponse]],
    ) -> ModelResponse:
        """Call the model, or return its stored response."""
        parameters = request_context.model_request_parameters
        tools = sorted(tool.name for tool in (*parameters.function_tools, *parameters.output_tools))
        messages = ModelMessagesTypeAdapter.dump_python(request_context.messages, mode="json")
        form = {"messages": [_form(message) for message in messages], "tools": tools}

        async def call() -> object:
            response = await handler(request_context)
            return ModelMessagesTypeAdapter.dump_python([response], mode="json")

        stored = await self.steps.model(form, call)
        return cast("ModelResponse", ModelMessagesTypeAdapter.validate_python(stored)[0])

    async def wrap_tool_execute(
        self,
        ctx: RunContext[object],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> object:
        """
        Call a tool, or return its stored result.

        Raises:
            ModelRetry, ToolFailed: as the tool raised it, in every start.

        """

        async def execute() -> object:
            try:
                return _stored(call.tool_name, await handler(args))
            except ModelRetry as error:
                return {"retry": error.message}
            except ToolFailed as error:
                return {"failed": error.message}
            except ToolRetryError as error:
                return {"retry": str(error.tool_retry.content)}
            except ToolFailedError as error:
                return {"failed": str(error.tool_failed.content)}

        stored = await self.steps.tool(
            call.tool_name,
            call.tool_call_id,
            call.args_as_dict(),
            execute,
            found=lambda value: {"result": value},
            asking=_DEFERRED,
        )
        if "retry" in stored:
            raise ModelRetry(stored["retry"])
        if "failed" in stored:
            raise ToolFailed(stored["failed"])
        return _restored(stored)


def _form(message: dict[str, Any]) -> dict[str, object]:
    parts = [{name: part.get(name) for name in _CALLED} for part in message["parts"]]
    return {"kind": message["kind"], "instructions": message.get("instructions"), "parts": parts}


def _stored(name: str, result: object) -> dict[str, object]:
    """Return a tool's result as JSON values, as pydantic-ai stores it in its messages."""
    content, more = result, {}
    if isinstance(result, ToolReturn):
        content = result.return_value
        more = {"content": result.content, "metadata": result.metadata}
    part = ToolReturnPart(tool_name=name, content=content, tool_call_id="")
    dumped = ModelMessagesTypeAdapter.dump_python([ModelRequest(parts=[part])], mode="json")
    found: dict[str, object] = {"result": dumped[0]["parts"][0]["content"]}
    return found | ({"more": more} if more else {})


def _restored(stored: dict[str, Any]) -> object:
    part = {
        "part_kind": "tool-return",
        "tool_name": "tool",
        "content": stored["result"],
        "tool_call_id": "",
        "timestamp": "2026-01-01T00:00:00Z",
    }
    request = ModelMessagesTypeAdapter.validate_python([{"kind": "request", "parts": [part]}])[0]
    [read] = request.parts
    assert isinstance(read, ToolReturnPart)
    content = read.content
    more = stored.get("more")
    if more is None:
        return content
    return ToolReturn(return_value=content, content=more["content"], metadata=more["metadata"])
