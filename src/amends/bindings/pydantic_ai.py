"""
pydantic-ai: a tool's failure becomes a text that the model can act on, and does not end the run.

    from pydantic_ai import Agent
    from amends.bindings.pydantic_ai import Failures

    agent = Agent(model, capabilities=[Failures(read_only=["search"])])

If the request has to change, the binding raises pydantic-ai's own `ModelRetry`, as long as the tool has retries left; otherwise
it raises `ToolFailed`. Failures of MCP servers, which pydantic-ai's MCP toolsets would show the model as they were received, are
read and formatted in the same way.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tools import RunContext, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

try:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import (
        ApprovalRequired,
        CallDeferred,
        ModelRetry,
        RunCancelled,
        SkipToolExecution,
        ToolFailed,
        ToolFailedError,
        ToolRetryError,
        UsageLimitExceeded,
        UserError,
    )
    from pydantic_ai.messages import ModelResponse, ToolReturn
    from pydantic_ai.models import Model, StreamedResponse
    from pydantic_ai.models.wrapper import WrapperModel
    from pydantic_ai.toolsets import WrapperToolset
except ImportError as missing:
    raise ImportError(
        "amends.bindings.pydantic_ai needs pydantic-ai: pip install 'pydantic-ai-slim>=2.60'"
    ) from missing

from amends.bindings.tool_arguments import by_schema, only_reads
from amends.bindings.tool_calls import (
    AGAIN,
    CHECK,
    Caller,
    Options,
    Run,
    ToolCalls,
    ToolFailure,
    check_description,
)
from amends.carriers.extraction import extract
from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.wire import Unreadable, read_strict
from amends.core.wrong_calls import refuse_unknown
from amends.errors import TimeoutError as TimedOutError
from amends.errors.base import FaultError
from amends.foreign import from_exception
from amends.serving.server_errors import modules_of

__all__ = ["Failures"]

_PROGRAM = (UserError, UsageLimitExceeded, RunCancelled)
"""Exceptions for the program that runs the agent, not for its model."""
_PASSING = (*_PROGRAM, ToolFailed, ToolFailedError, ToolRetryError)
"""Those, and texts that the tool's author wrote for the model."""
_ASKING = (ModelRetry, ApprovalRequired, CallDeferred, SkipToolExecution)
"""Exceptions with which a tool asks to be called anew, or not at all."""
_MCP, _FUNCTIONS = "pydantic_ai.mcp", "pydantic_ai.toolsets.function"


class Failures(AbstractCapability[object]):
    """
    The capability. It covers all tools of an agent: its own and those of its toolsets.

    The options are those of `amends.bindings.tool_calls.ToolCalls`. An MCP tool whose annotations say `readOnlyHint: true` only reads.

        agent = Agent(model, capabilities=[Failures(read_only=["search"], timeout=30)])
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        refuse_unknown(type(self).__name__, options, Options.__annotations__)
        super().__init__()
        self.calls = ToolCalls(**options)

    def get_wrapper_toolset(self, toolset: AbstractToolset[object]) -> AbstractToolset[object]:
        """Return the agent's toolset, wrapped so that its failures are texts."""
        return _Guarded(toolset, self.calls)

    def get_wrapper_model(self, model: Model) -> Model:
        """Return the agent's model, whose requests are recovered."""
        return _Recovered(model, self.calls)

    async def on_tool_execute_error(
        self,
        ctx: RunContext[object],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: Mapping[str, object],
        error: Exception,
    ) -> NoReturn:
        """
        Raise the exception with which the model gets a failure of another capability's toolset.

        Raises:
            ModelRetry: if the request has to change and the tool has retries left.
            ToolFailed: in all other cases.

        """
        if isinstance(error, _PROGRAM):
            raise error
        raise _for_model(_run(self.calls, ctx).failed(call.tool_name, args, error), ctx) from error

    async def on_tool_validate_error(
        self,
        ctx: RunContext[object],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: str | dict[str, object],
        error: ValidationError | ModelRetry,
    ) -> NoReturn:
        """
        Raise the error of wrong arguments. The last one that the tool's retries allow would end the run.

        Raises:
            ModelRetry, ValidationError: as pydantic-ai raised it, if the tool has retries left.
            ToolFailed: otherwise.

        """
        if ctx.retry < ctx.max_retries:
            raise error
        if isinstance(error, ModelRetry):
            raise ToolFailed(error.message) from error
        names = args if isinstance(args, Mapping) else {}
        failure = _run(self.calls, ctx).failed(call.tool_name, names, error, ran=False)
        raise _for_model(failure, ctx) from error


class _Recovered(WrapperModel):
    """A model whose requests are recovered. A stream is begun anew only if it could not be opened."""

    def __init__(self, wrapped: Model, calls: ToolCalls) -> None:
        super().__init__(wrapped)
        self._calls = calls

    async def request(self, *args: Any, **options: Any) -> ModelResponse:
        """Make a request."""
        return await self._calls.models.acall(self.wrapped, lambda model: model.request(*args, **options))

    @asynccontextmanager
    async def request_stream(self, *args: Any, **options: Any) -> AsyncIterator[StreamedResponse]:
        """Open a stream."""
        async with AsyncExitStack() as stack:

            async def begin(model: Model) -> StreamedResponse:
                return await stack.enter_async_context(model.request_stream(*args, **options))

            yield await self._calls.models.acall(self.wrapped, begin)


@dataclass
class _Guarded(WrapperToolset[object]):
    """A toolset that calls the tools of another one, MCP toolsets at any depth among them."""

    calls: ToolCalls

    async def get_tools(self, ctx: RunContext[object]) -> dict[str, ToolsetTool[object]]:
        """Return the tools, with those that find out about calls in doubt."""
        tools = await super().get_tools(ctx)
        added = {}
        for name, tool in tools.items():
            if self.calls.can_check(name):
                check = self.calls.offer_check(name)
                if _run(self.calls, ctx).in_doubt(name) and check not in tools:
                    described = check_description(name)
                    added[check] = replace(
                        tool, toolset=self, tool_def=replace(tool.tool_def, name=check, description=described)
                    )
        return {**tools, **added}

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, object],
        ctx: RunContext[object],
        tool: ToolsetTool[object],
    ) -> object:
        """
        Call a tool.

        Raises:
            ModelRetry, ToolFailed: with the text of a failure.

        """
        checked = name.removeprefix(CHECK)
        if checked != name and tool.toolset is self and self.calls.can_check(checked):
            asked = by_schema(tool.tool_def.parameters_json_schema, tool_args)
            return await _run(self.calls, ctx).acheck(checked, asked)

        async def call() -> object:
            try:
                return await self.wrapped.call_tool(name, tool_args, ctx, tool)
            except (ModelRetry, ToolFailed) as error:
                failure = _failure_behind(error)
                if failure is None:
                    raise
                raise failure from error

        received = by_schema(tool.tool_def.parameters_json_schema, tool_args)
        result = await _run(self.calls, ctx).acall(
            name,
            received,
            call,
            takes_again=AGAIN in received,
            read_only=_only_reads(tool.tool_def),
            passing=_PASSING,
            asking=_ASKING,
            restore=_restored,
        )
        if isinstance(result, ToolFailure):
            raise _for_model(result, ctx) from result.error
        return result


def _run(calls: ToolCalls, ctx: RunContext[object]) -> Run:
    if ctx.run_id is not None:
        return calls.run(ctx.run_id, caller=Caller(run=ctx.run_id, thread=ctx.conversation_id, context=ctx))
    return calls.run(id(ctx.usage), owner=ctx.usage, caller=Caller(run=id(ctx.usage), context=ctx))


def _only_reads(definition: ToolDefinition) -> bool:
    return only_reads((definition.metadata or {}).get("annotations"))


def _restored(value: object) -> object:
    """Return the result of a call whose outcome the ledger has: a stored result, or a value that a person gave."""
    if not isinstance(value, Mapping) or value.get("kind") != "tool-return" or "return_value" not in value:
        return value
    return ToolReturn(
        return_value=value["return_value"], content=value.get("content"), metadata=value.get("metadata")
    )


def _for_model(failure: ToolFailure, ctx: RunContext[object]) -> ModelRetry | ToolFailed:
    """Return the exception with which the model gets the text of a failure."""
    # A ModelRetry beyond `max_retries` ends the whole run.
    correctable = failure.fault.recovery is Recovery.CORRECTABLE and not failure.closed
    return (
        ModelRetry(failure.text) if correctable and ctx.retry < ctx.max_retries else ToolFailed(failure.text)
    )


def _failure_behind(error: ModelRetry | ToolFailed) -> Exception | None:
    """Return the failure that a toolset of pydantic-ai made a text of; None if the tool's author wrote the text."""
    raised_in = modules_of(error)[-1:]
    if raised_in == [_FUNCTIONS]:
        return TimedOutError("The tool did not answer in time")
    return FaultError.from_fault(_received(error)) if raised_in == [_MCP] else None


def _received(error: ModelRetry | ToolFailed) -> Fault:
    """Return the fault of what an MCP server answered."""
    cause = error.__cause__
    if isinstance(cause, Exception):
        # A JSON-RPC error, or the exception of a failed result.
        return from_exception(cause)
    document = {"isError": True, **_content(error.message)}
    return extract(document, "mcp", native=True) or Fault(code="INTERNAL_ERROR")


def _content(message: str) -> dict[str, object]:
    """Return the structured content or the text items that pydantic-ai made a message of."""
    try:
        parsed = read_strict(message) if message[:1] in {"{", "["} else None
    except Unreadable:
        parsed = None
    if isinstance(parsed, dict):
        return {"structuredContent": parsed, "content": []}
    if not isinstance(parsed, list):
        return {"content": [{"type": "text", "text": message}]}
    texts = (item if isinstance(item, str) else json.dumps(item) for item in parsed)
    return {"content": [{"type": "text", "text": text} for text in texts]}
