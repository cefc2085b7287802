"""
Google ADK: a tool's failure becomes a text that the model can act on, and does not end the run.

    from google.adk.runners import InMemoryRunner
    from amends.bindings.google_adk import Failures

    runner = InMemoryRunner(agent=agent, plugins=[Failures(read_only=["search"])])

The plugin runs the tools itself (ADK's `before_tool_callback` may answer for a tool), so that it can repeat a tool that only
reads and use the ledger for the others. Long-running tools are left to ADK; their failures become text, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

try:
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext
except ImportError as missing:
    raise ImportError("amends.bindings.google_adk needs Google ADK: pip install google-adk") from missing

from amends.bindings.tool_calls import Options, Run, ToolCalls, ToolFailure

__all__ = ["Failures"]


class Failures(BasePlugin):
    """
    The plugin. It covers all tools of a runner.

    Args:
        name: the plugin's name.
        options: those of `amends.bindings.tool_calls.ToolCalls`.

    """

    def __init__(self, name: str = "amends", **options: Unpack[Options]) -> None:
        super().__init__(name=name)
        self.calls = ToolCalls(**options)

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, object], tool_context: ToolContext
    ) -> dict[str, object] | None:
        """Run the tool, and return its result or the text of its failure."""
        if getattr(tool, "is_long_running", False):
            return None
        result = await self._run(tool_context).acall(
            tool.name, tool_args, lambda: tool.run_async(args=tool_args, tool_context=tool_context)
        )
        if isinstance(result, ToolFailure):
            return _answer(result)
        return dict(result) if isinstance(result, Mapping) else {"result": result}

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, object], tool_context: ToolContext, error: BaseException
    ) -> dict[str, object] | None:
        """Return the text of a failure of a tool that ADK ran. A cancellation stays one."""
        if not isinstance(error, Exception):
            return None
        return _answer(self._run(tool_context).failed(tool.name, tool_args, error))

    def _run(self, tool_context: ToolContext) -> Run:
        return self.calls.run(tool_context.invocation_id)


def _answer(failure: ToolFailure) -> dict[str, object]:
    return {"status": "error", "error": failure.text}
