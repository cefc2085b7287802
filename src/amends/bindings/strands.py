"""
Strands Agents: a tool's failure becomes a text that the model can act on, and does not end the run.

    from strands import Agent
    from amends.bindings.strands import Failures

    agent = Agent(model=model, tools=[search, pay], plugins=[Failures(read_only=["search"])])

Strands alone shows the model the text of the exception. What a tool streams is passed on when the tool has ended.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Unpack

try:
    from strands import Agent
    from strands.middleware import (
        ExecuteToolContext,
        ExecuteToolStage,
        InvokeModelContext,
        InvokeModelStage,
        ToolResultEvent,
        TypedEvent,
    )
    from strands.plugins import Plugin
    from strands.types.exceptions import ModelThrottledException
except ImportError as missing:
    raise ImportError(
        "amends.bindings.strands needs Strands Agents: pip install 'strands-agents>=1.62'"
    ) from missing

from amends.bindings.tool_arguments import by_schema, only_reads
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
    unknown_tool_text,
)
from amends.core.wrong_calls import refuse_unknown
from amends.errors import RateLimitedError, ValidationError
from amends.errors.base import FaultError
from amends.foreign import from_exception
from amends.serving.server_errors import modules_of

__all__ = ["Failures"]

_RUN = "amends.run"
"""The member of the invocation's state that identifies a run."""


class Failures(Plugin):
    """
    The plugin. It covers all tools of an agent.

    The options are those of `amends.bindings.tool_calls.ToolCalls`.
    """

    name = "amends"

    def __init__(self, **options: Unpack[Options]) -> None:
        refuse_unknown(type(self).__name__, options, Options.__annotations__)
        super().__init__()
        self.calls = ToolCalls(**options, names_conversations=True)

    def init_agent(self, agent: Agent) -> None:
        """
        Add the middleware to an agent.

        Raises:
            TypeError: there is a ledger, and neither a session manager nor `scope=` separates conversations.

        """
        if self.calls.effects is not None and self.calls.scope is None and _session(agent) is None:
            raise TypeError(
                "a ledger needs scope=, which separates the calls of users and conversations, or an agent with a session manager: "
                "Agent(session_manager=FileSessionManager(session_id=...))"
            )
        agent.add_middleware(ExecuteToolStage, self._call_tool)
        agent.add_middleware(InvokeModelStage, self._call_model)

    async def _call_model(
        self,
        context: InvokeModelContext,
        call_next: Callable[[InvokeModelContext], AsyncIterator[TypedEvent]],
    ) -> AsyncIterator[TypedEvent]:
        """
        Call the model, with recovery, and with the tools that find out about calls in doubt.

        Raises:
            FaultError: the model throttled the last try. Strands repeats its own exception for it, and tries would multiply.

        """
        run, added = self._run(context), []
        for tool in context.tool_specs:
            name = tool["name"]
            if self.calls.can_check(name):
                check = self.calls.offer_check(name)
                if run.in_doubt(name):
                    added.append({**tool, "name": check, "description": check_description(name)})
        if added:
            context = context.replace(tool_specs=[*context.tool_specs, *added])
        asked = context
        try:
            async for event in self.calls.models.astream(
                context.model, lambda model: call_next(asked.replace(model=model))
            ):
                yield event
        except ModelThrottledException as error:
            cause = error.__cause__ if isinstance(error.__cause__, Exception) else None
            fault = from_exception(RateLimitedError("The model is throttled") if cause is None else cause)
            raise FaultError.from_fault(fault) from error

    async def _call_tool(
        self,
        context: ExecuteToolContext,
        call_next: Callable[[ExecuteToolContext], AsyncIterator[TypedEvent]],
    ) -> AsyncIterator[TypedEvent]:
        """Yield the events of a call; the result is one of them."""
        asked = context.tool_use
        checked = asked["name"].removeprefix(CHECK)
        if context.tool is None and checked != asked["name"] and self.calls.can_check(checked):
            declared = context.agent.tool_registry.registry.get(checked)
            received = _received(declared, asked.get("input") or {})
            text = await self._run(context).acheck(checked, received)
            yield ToolResultEvent(_tool_result(text, asked.get("toolUseId")))
            return
        if context.tool is None:
            text = unknown_tool_text(context.agent.tool_names)
            unknown = _tool_result({"status": "error", "content": [{"text": text}]}, asked.get("toolUseId"))
            # Strands runs nothing. Middleware of others sees the call as it does without us.
            async for event in call_next(context):
                yield event if not isinstance(event, ToolResultEvent) else ToolResultEvent(unknown)
            return
        events: list[TypedEvent] = []

        async def call() -> object:
            # A tool that is recovered streams its events once, those of the last attempt.
            events[:] = [event async for event in call_next(context)]
            return _result(events)

        given = asked.get("input")
        received = _received(context.tool, given if isinstance(given, Mapping) else {})
        try:
            result = await self._run(context).acall(
                asked["name"],
                received,
                call,
                asking=(_Interrupted,),
                restore=_restored,
                failure_of=_returned_error,
                read_only=_only_reads(context.tool),
                directs=_is_agent(context.tool),
                takes_again=AGAIN in received,
            )
        except _Interrupted:
            result = None
        for event in events:
            if result is None or not isinstance(event, ToolResultEvent):
                yield event
        if result is not None:
            yield ToolResultEvent(_tool_result(result, asked.get("toolUseId")), exception=_error(result))

    def _run(self, context: ExecuteToolContext | InvokeModelContext) -> Run:
        run = context.invocation_state.setdefault(_RUN, object())
        return self.calls.run(run, caller=Caller(run=run, session=_session(context.agent), context=context))


def _session(agent: Agent) -> str | None:
    """Return the id of the agent's session. Without a session manager, `agent.session_id` is made anew in each process."""
    manager = getattr(agent, "_session_manager", None)
    session = None if manager is None else getattr(manager, "session_id", None)
    return session if isinstance(session, str) and session else None


def _only_reads(tool: object) -> bool:
    """Return whether an MCP server says that the tool only reads."""
    specification = getattr(tool, "tool_spec", None)
    return isinstance(specification, Mapping) and only_reads(specification.get("annotations"))


def _received(tool: object, arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments that the tool receives."""
    specification = getattr(tool, "tool_spec", None)
    declared = specification.get("inputSchema") if isinstance(specification, Mapping) else None
    return by_schema(declared.get("json") if isinstance(declared, Mapping) else None, arguments)


def _is_agent(tool: object) -> bool:
    """Return whether a tool is another agent, or hands over to one in a Swarm."""
    return (
        getattr(tool, "tool_type", None) == "agent" or getattr(tool, "tool_name", None) == "handoff_to_agent"
    )


def _returned_error(result: object) -> Exception | None:
    """Return the failure that a result says."""
    return ReturnedError() if isinstance(result, Mapping) and result.get("status") == "error" else None


class _Interrupted(Exception):
    """The tool asks a person, and is called anew with the answer."""


def _result(events: list[TypedEvent]) -> object:
    """Return the result among the events of a call. Raises what the tool raised."""
    found = next((event for event in reversed(events) if isinstance(event, ToolResultEvent)), None)
    if found is None:
        raise _Interrupted
    if found.exception is not None:
        if _is_refused(found.exception):
            raise ValidationError("The arguments do not fit", executed="no") from found.exception
        raise found.exception
    return found.tool_result


def _is_refused(error: BaseException) -> bool:
    """Return whether Strands refused the arguments, so that the tool did not run: it raised the error itself."""
    return isinstance(error, ValueError) and modules_of(error)[-1:] == ["strands.tools.decorator"]


def _restored(value: object) -> dict[str, object]:
    """Return the result of a call whose outcome the ledger has: a stored result, or a value that a person gave."""
    if isinstance(value, Mapping) and "content" in value and "status" in value:
        return dict(value)
    text = value if isinstance(value, str) else json.dumps(value)
    return {"status": "success", "content": [{"text": text}]}


def _tool_result(result: object, asked: object) -> dict[str, object]:
    if isinstance(result, ToolFailure):
        result = {"status": "error", "content": [{"text": result.text}]}
    return {**(result if isinstance(result, Mapping) else _restored(result)), "toolUseId": str(asked)}


def _error(result: object) -> Exception | None:
    return result.error if isinstance(result, ToolFailure) else None
