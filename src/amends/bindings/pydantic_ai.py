"""
pydantic-ai: a tool's failure becomes a text that the model can act on, and does not end the run.

    from pydantic_ai import Agent
    from amends.bindings.pydantic_ai import Failures

    agent = Agent(model, capabilities=[Failures()])

The model gets a tool's exception as `amends.for_llm` text. If the request has to change, the binding raises pydantic-ai's
own `ModelRetry`, as long as the tool has retries left; otherwise it raises `ToolFailed`. Failures of MCP servers, which
pydantic-ai's MCP toolsets would show the model as they were received, are read and formatted in the same way.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tools import RunContext, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

try:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ModelRetry, RunCancelled, ToolFailed, UsageLimitExceeded, UserError
    from pydantic_ai.toolsets import WrapperToolset
except ImportError as missing:
    raise ImportError(
        "amends.bindings.pydantic_ai needs pydantic-ai: pip install 'pydantic-ai-slim>=2.60'"
    ) from missing

from amends.carriers.extraction import extract
from amends.core.enums import Recovery
from amends.core.fault import Fault
from amends.core.wire import Unreadable, read_strict
from amends.errors.base import FaultError
from amends.foreign import from_exception
from amends.serving.server_errors import modules_of
from amends.tools import log_and_describe

__all__ = ["Failures"]

# Exceptions of the framework for the program that runs the agent, not for its model.
_NOT_FOR_THE_MODEL = (UserError, UsageLimitExceeded, RunCancelled)
_MCP = "pydantic_ai.mcp"


class Failures(AbstractCapability[Any]):
    """
    The capability. It covers all tools of an agent: its own and those of its toolsets.

    `hosts` are the domains of the services that the tools call; a set-up page on one of them is shown to the model.
    """

    def __init__(self, *, hosts: Collection[str] = ()) -> None:
        super().__init__()
        self.hosts = tuple(hosts)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Return the agent's toolset, wrapped so that failures of MCP servers are read."""
        return _McpFailures(toolset, self.hosts)

    async def on_tool_execute_error(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        error: Exception,
    ) -> NoReturn:
        """
        Raise the exception with which the model gets the failure's text.

        Raises:
            ModelRetry: if the request has to change and the tool has retries left.
            ToolFailed: in all other cases.

        """
        if isinstance(error, _NOT_FOR_THE_MODEL):
            raise error
        raise _for_model(error, call.tool_name, args, ctx, self.hosts) from error


@dataclass
class _McpFailures(WrapperToolset[Any]):
    """A toolset that replaces what an MCP toolset says about a failure. It covers MCP toolsets at any depth."""

    hosts: tuple[str, ...] = ()

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call a tool. A failed result of an MCP server becomes the text of its fault."""
        try:
            return await super().call_tool(name, tool_args, ctx, tool)
        except (ModelRetry, ToolFailed) as error:
            # An exception that other code raised has the text that its author meant for the model.
            if modules_of(error)[-1:] != [_MCP]:
                raise
            failure = FaultError.from_fault(_received(error))
        raise _for_model(failure, name, tool_args, ctx, self.hosts)


def _received(error: ModelRetry | ToolFailed) -> Fault:
    """Return the fault of what an MCP server answered."""
    cause = error.__cause__
    if isinstance(cause, Exception):
        # A JSON-RPC error, or the exception of a failed result.
        return from_exception(cause)
    document = {"isError": True, **_content(error.message)}
    return extract(document, "mcp", native=True) or Fault(code="INTERNAL_ERROR")


def _content(message: str) -> dict[str, Any]:
    """Return the structured content or the text items that pydantic-ai made a message of."""
    try:
        parsed = read_strict(message) if message[:1] in {"{", "["} else None
    except Unreadable:
        parsed = None
    if isinstance(parsed, dict):
        return {"structuredContent": parsed, "content": []}
    if not isinstance(parsed, list):
        return {"content": [{"type": "text", "text": message}]}
    from json import dumps

    texts = (item if isinstance(item, str) else dumps(item) for item in parsed)
    return {"content": [{"type": "text", "text": text} for text in texts]}


def _for_model(
    error: Exception, name: str, args: dict[str, Any], ctx: RunContext[Any], hosts: tuple[str, ...]
) -> ModelRetry | ToolFailed:
    """Log a failure, and return the exception with which the model gets its text."""
    text = log_and_describe(error, name, tuple(args), repeats=ctx.retry + 1, hosts=hosts)
    # A ModelRetry beyond `max_retries` ends the whole run.
    retry = from_exception(error).recovery is Recovery.CORRECTABLE and ctx.retry < ctx.max_retries
    return ModelRetry(text) if retry else ToolFailed(text)
