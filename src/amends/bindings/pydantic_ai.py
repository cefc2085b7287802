"""
pydantic-ai: a tool's failure becomes a text that the model can act on, and does not end the run.

    from pydantic_ai import Agent
    from amends.bindings.pydantic_ai import Failures

    agent = Agent(model, capabilities=[Failures()])

The model gets a tool's exception as `amends.for_llm` text. If the request has to change, the binding raises pydantic-ai's
own `ModelRetry`, as long as the tool has retries left; otherwise it raises `ToolFailed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tools import RunContext, ToolDefinition

try:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ModelRetry, RunCancelled, ToolFailed, UsageLimitExceeded, UserError
except ImportError as missing:
    raise ImportError(
        "amends.bindings.pydantic_ai needs pydantic-ai: pip install 'pydantic-ai-slim>=2.60'"
    ) from missing

from amends.core.enums import Recovery
from amends.foreign import from_exception
from amends.tools import log_and_describe

__all__ = ["Failures"]

# Exceptions of the framework for the program that runs the agent, not for its model.
_NOT_FOR_THE_MODEL = (UserError, UsageLimitExceeded, RunCancelled)


class Failures(AbstractCapability[Any]):
    """The capability. It covers all tools of an agent: its own and those of its toolsets."""

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
        text = log_and_describe(error, call.tool_name)
        # A ModelRetry beyond `max_retries` ends the whole run.
        if from_exception(error).recovery is Recovery.CORRECTABLE and ctx.retry < ctx.max_retries:
            raise ModelRetry(text) from error
        raise ToolFailed(text) from error
