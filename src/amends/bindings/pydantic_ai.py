"""
pydantic-ai: a failed tool is something the model can act on, and never the end of the run.

    from pydantic_ai import Agent
    from amends.bindings.pydantic_ai import Failures

    agent = Agent(model, capabilities=[Failures()])

What a tool raises reaches the model as `amends.for_llm` text. A request that has to change is pydantic-ai's own retry, as
long as the tool has retries left; everything else is a tool result that failed.
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
from amends.tools import answered

__all__ = ["Failures"]

# The framework's own words to whoever runs the agent, not to its model.
_NOT_FOR_THE_MODEL = (UserError, UsageLimitExceeded, RunCancelled)


class Failures(AbstractCapability[Any]):
    """Every tool of an agent, its own and those of its toolsets."""

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
        Tell the model.

        Raises:
            ModelRetry: where the request has to change, and may be made once more.
            ToolFailed: in every other case.

        """
        if isinstance(error, _NOT_FOR_THE_MODEL):
            raise error
        text = answered(error, call.tool_name)
        # One retry too many ends the whole run.
        if from_exception(error).recovery is Recovery.CORRECTABLE and ctx.retry < ctx.max_retries:
            raise ModelRetry(text) from error
        raise ToolFailed(text) from error
