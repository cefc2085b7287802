"""
Google ADK: a tool's failure becomes a text that the model can act on, and does not end the run.

    from google.adk.runners import InMemoryRunner
    from amends.bindings.google_adk import Failures

    runner = InMemoryRunner(agent=agent, plugins=[Failures(read_only=["search"])])

The plugin answers no callback, so ADK asks every other plugin, the callbacks of the agent and the confirmation of the tool as
it does without the plugin. The tool then runs inside the plugin: one that only reads may be repeated, and the others go through
the ledger. The callbacks for errors of tools see the failure before the model does, and an answer of theirs is what the model
reads. Long-running tools are left to ADK; their failures become text, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Unpack
from weakref import WeakKeyDictionary, WeakSet

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
        self._own: WeakSet[ToolContext] = WeakSet()
        """Calls whose failure the plugin answers itself, after the other callbacks."""

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, object], tool_context: ToolContext
    ) -> None:
        """Cover the call that may follow. It answers nothing, so every callback after it is asked, too."""
        if not getattr(tool, "is_long_running", False):
            _CoveredRun.of(tool).plugins[tool_context] = self

    async def run_tool(
        self,
        tool: BaseTool,
        arguments: dict[str, object],
        context: ToolContext,
        run: Callable[[], Awaitable[object]],
    ) -> object:
        """Run a tool that every callback let pass, and return its result, or the text of its failure."""
        result = await self._run(context).acall(tool.name, arguments, run)
        if not isinstance(result, ToolFailure):
            return result
        if result.error is not None:
            self._own.add(context)
            answer = await _ask_error_callbacks(tool, arguments, context, result.error)
            if answer is not None:
                return answer
        return _answer(result)

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, object], tool_context: ToolContext, error: BaseException
    ) -> dict[str, object] | None:
        """Return the text of a failure of a tool that ADK ran. A cancellation stays one."""
        if not isinstance(error, Exception) or tool_context in self._own:
            return None
        if type(tool) is BaseTool:
            return None  # no such tool: ADK answers with the names of the tools
        return _answer(self._run(tool_context).failed(tool.name, tool_args, error))

    def _run(self, tool_context: ToolContext) -> Run:
        return self.calls.run(tool_context.invocation_id)


class _CoveredRun:
    """
    The `run_async` of a tool: the plugin of the call runs it. Calls without a plugin are as before.

    ADK looks up `run_async` after all callbacks, so this is where a tool can be repeated or left out without leaving out a
    callback. A copy of the tool has the attribute of its original, which is replaced.
    """

    def __init__(self, tool: BaseTool, run: Callable[..., Awaitable[object]]) -> None:
        self.tool, self.run = tool, run
        self.plugins: WeakKeyDictionary[ToolContext, Failures] = WeakKeyDictionary()

    @classmethod
    def of(cls, tool: BaseTool) -> _CoveredRun:
        current = vars(tool).get("run_async")
        if isinstance(current, cls) and current.tool is tool:
            return current
        run = type(tool).run_async.__get__(tool) if isinstance(current, cls) else tool.run_async
        covered = cls(tool, run)
        tool.run_async = covered
        return covered

    async def __call__(self, *, args: dict[str, object], tool_context: ToolContext) -> object:
        plugin = self.plugins.pop(tool_context, None)
        if plugin is None:
            return await self.run(args=args, tool_context=tool_context)
        return await plugin.run_tool(
            self.tool, args, tool_context, lambda: self.run(args=args, tool_context=tool_context)
        )


async def _ask_error_callbacks(
    tool: BaseTool, arguments: dict[str, object], context: ToolContext, error: Exception
) -> Mapping[str, object] | None:
    """Return the first answer of the other plugins and of the agent to a failed tool, as ADK does."""
    invocation = context.get_invocation_context()
    answer: Mapping[str, object] | None = await invocation.plugin_manager.run_on_tool_error_callback(
        tool=tool, tool_args=arguments, tool_context=context, error=error
    )
    callbacks = getattr(invocation.agent, "on_tool_error_callback", None) or ()
    for callback in callbacks if isinstance(callbacks, list) else [callbacks] if callbacks else []:
        if answer is not None:
            break
        said = callback(tool=tool, args=arguments, tool_context=context, error=error)
        answer = await said if inspect.isawaitable(said) else said
    return answer


def _answer(failure: ToolFailure) -> dict[str, object]:
    return {"status": "error", "error": failure.text}
