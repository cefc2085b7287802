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
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Unpack
from weakref import WeakKeyDictionary, WeakSet

try:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.models import BaseLlm, LLMRegistry
    from google.adk.models.llm_request import LlmRequest
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.agent_tool import AgentTool
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.exit_loop_tool import exit_loop
    from google.adk.tools.openapi_tool.openapi_spec_parser.rest_api_tool import RestApiTool
    from google.adk.tools.tool_context import ToolContext
    from google.adk.tools.transfer_to_agent_tool import transfer_to_agent
    from pydantic import PrivateAttr
except ImportError as missing:
    raise ImportError("amends.bindings.google_adk needs Google ADK: pip install google-adk") from missing

from amends.bindings.model_calls import ModelCalls
from amends.bindings.tool_arguments import by_function, by_schema, only_reads
from amends.bindings.tool_calls import (
    AGAIN,
    CHECK,
    Caller,
    Options,
    ReturnedError,
    Run,
    ToolCalls,
    ToolFailure,
    check_description,
)
from amends.core.wrong_calls import refuse_unknown

__all__ = ["Failures"]


class Failures(BasePlugin):
    """
    The plugin. It covers all tools of a runner.

    Args:
        name: the plugin's name.
        options: those of `amends.bindings.tool_calls.ToolCalls`.

    """

    def __init__(self, name: str = "amends", **options: Unpack[Options]) -> None:
        refuse_unknown(type(self).__name__, options, (*Options.__annotations__, "name"))
        super().__init__(name=name)
        self.calls = ToolCalls(**options, names_conversations=True)
        self._own: WeakSet[ToolContext] = WeakSet()
        """Calls whose failure the plugin answers itself, after the other callbacks."""

    def model(self, model: BaseLlm | str) -> BaseLlm:
        """Return a model whose calls are recovered within bounds: `LlmAgent(model=failures.model("gemini-2.5-flash"))`."""
        llm = LLMRegistry.new_llm(model) if isinstance(model, str) else model
        return _Recovered.around(llm, self.calls.models)

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, object], tool_context: ToolContext
    ) -> None:
        """Cover the call that may follow. It answers nothing, so every callback after it is asked, too."""
        if not _is_left_to_adk(tool):
            _CoveredRun.of(tool).plugins[tool_context] = self

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> None:
        """Offer the model the tools that find out about calls in doubt. It answers nothing."""
        tools = [each for name, each in llm_request.tools_dict.items() if self.calls.can_check(name)]
        if not tools:
            return
        run, added = self._run(callback_context), []
        for tool in tools:
            check = self.calls.offer_check(tool.name)
            if run.in_doubt(tool.name) and check not in llm_request.tools_dict:
                added.append(_Check(tool, self))
        llm_request.append_tools([*added])

    async def check_tool(self, tool: BaseTool, arguments: dict[str, object], context: ToolContext) -> str:
        """Find out whether an earlier call of a tool happened, and return a text for the model."""
        return await self._run(context).acheck(tool.name, _received(tool, arguments))

    async def run_tool(
        self,
        tool: BaseTool,
        arguments: dict[str, object],
        context: ToolContext,
        run: Callable[[], Awaitable[object]],
    ) -> object:
        """Run a tool that every callback let pass, and return its result, or the text of its failure."""
        received = _received(tool, arguments)

        def failure_of(answer: object) -> Exception | None:
            return _returned_error(tool, arguments, context, answer)

        async def run_and_see() -> object:
            answer = await run()
            if _asks(context):
                raise _Asking(answer)
            return answer

        try:
            result = await self._run(context).acall(
                tool.name,
                received,
                run_and_see,
                read_only=_only_reads(tool),
                directs=isinstance(tool, AgentTool),
                asking=(_Asking,),
                failure_of=failure_of,
                takes_again=AGAIN in received,
            )
        except _Asking as asked:
            return asked.answer
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

    def _run(self, tool_context: ToolContext | CallbackContext) -> Run:
        session = tool_context.session
        caller = Caller(
            run=tool_context.invocation_id,
            session=f"{session.app_name}/{session.id}",
            user=session.user_id,
            context=tool_context,
        )
        return self.calls.run(tool_context.invocation_id, caller=caller)


class _Recovered(BaseLlm):
    """A model whose calls are recovered. A stream is begun anew only before its first event."""

    _llm: BaseLlm = PrivateAttr()
    _models: ModelCalls = PrivateAttr()

    @classmethod
    def around(cls, llm: BaseLlm, models: ModelCalls) -> _Recovered:
        recovered = cls(model=llm.model)
        recovered._llm, recovered._models = llm, models
        return recovered

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncIterator[object]:
        async for response in self._models.astream(
            self._llm, lambda llm: llm.generate_content_async(llm_request, stream)
        ):
            yield response

    def connect(self, llm_request: LlmRequest) -> object:
        return self._llm.connect(llm_request)


class _Check(BaseTool):
    """A tool that finds out whether an earlier call of another one happened."""

    def __init__(self, tool: BaseTool, plugin: Failures) -> None:
        super().__init__(name=CHECK + tool.name, description=check_description(tool.name))
        self._tool, self._plugin = tool, plugin

    def _get_declaration(self) -> object:
        declared = self._tool._get_declaration()  # noqa: SLF001 - how ADK's tools of tools describe themselves
        if declared is None:
            return None
        return declared.model_copy(update={"name": self.name, "description": self.description})

    async def run_async(self, *, args: dict[str, object], tool_context: ToolContext) -> object:
        return {"result": await self._plugin.check_tool(self._tool, args, tool_context)}


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


class _Asking(Exception):
    """The tool asks a person, and is called anew with the answer."""

    def __init__(self, answer: object) -> None:
        super().__init__()
        self.answer = answer


def _received(tool: BaseTool, arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments that the tool receives."""
    function = getattr(tool, "func", None)
    if callable(function):
        received = by_function(function, arguments)
        return {name: value for name, value in received.items() if name not in _INJECTED or name in arguments}
    return by_schema(_mcp_schema(tool), arguments)


def _mcp_schema(tool: BaseTool) -> object:
    declared = getattr(tool, "raw_mcp_tool", None)
    return getattr(declared, "inputSchema", None) or getattr(declared, "input_schema", None)


def _only_reads(tool: BaseTool) -> bool:
    """Return whether an MCP server says that the tool only reads, or its HTTP method does."""
    method = getattr(getattr(tool, "endpoint", None), "method", None)
    if isinstance(tool, RestApiTool) and isinstance(method, str):
        return method.upper() in _READING
    return only_reads(getattr(getattr(tool, "raw_mcp_tool", None), "annotations", None))


def _is_left_to_adk(tool: BaseTool) -> bool:
    """Return whether the tool directs the run: it has no effect outside, and ADK has to see each of its calls."""
    if isinstance(tool, _Check):
        return True
    return bool(getattr(tool, "is_long_running", False)) or getattr(tool, "func", None) in {
        transfer_to_agent,
        exit_loop,
    }


def _asks(context: ToolContext) -> bool:
    """Return whether the tool asked for a confirmation or a credential; ADK calls it anew with the answer."""
    actions, call = context.actions, context.function_call_id
    return call in actions.requested_tool_confirmations or call in actions.requested_auth_configs


_INJECTED = frozenset({"tool_context", "input_stream"})
_READING = frozenset({"GET", "HEAD", "OPTIONS"})


def _returned_error(
    tool: BaseTool, arguments: Mapping[str, object], context: ToolContext, answer: object
) -> Exception | None:
    """Return the failure that an answer says. Without a mandatory argument, ADK does not call the function."""
    if not isinstance(answer, Mapping):
        return None
    failed = answer.get("status") == "error" or bool(answer.get("error")) or answer.get("isError") is True
    return ReturnedError(ran=not _is_refused(tool, arguments, answer)) if failed else None


def _is_refused(tool: BaseTool, arguments: Mapping[str, object], answer: Mapping[str, object]) -> bool:
    function = getattr(tool, "func", None)
    if not callable(function) or set(answer) != {"error"}:
        return False
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(function).parameters.values()
    needed = {each.name for each in parameters if each.default is each.empty and each.kind in named}
    return bool(needed - _INJECTED - set(arguments))


def _answer(failure: ToolFailure) -> dict[str, object]:
    return {"status": "error", "error": failure.text}
