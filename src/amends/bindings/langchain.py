"""
LangChain and LangGraph: a tool's failure becomes a text that the model can act on, and does not end the run.

    from langchain.agents import create_agent
    from amends.bindings.langchain import Failures

    agent = create_agent(model, tools, middleware=[Failures(read_only=["search"])])

In a graph of your own: `ToolNode(tools, wrap_tool_call=failures.wrap_tool_call, awrap_tool_call=failures.awrap_tool_call)`.
The message for the model is a `ToolMessage` with status "error". Its `artifact` is the fault as plain values, which a checkpointer
can store; `amends.extract(message.artifact)` returns the fault.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Unpack

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ToolCallRequest
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_core.tools import BaseTool, StructuredTool
    from langgraph.config import get_config
    from langgraph.errors import GraphBubbleUp
    from langgraph.types import Command
except ImportError as missing:
    raise ImportError(
        "amends.bindings.langchain needs LangChain 1.x: pip install 'langchain>=1.0' 'langgraph>=1.0'"
    ) from missing

from amends.bindings.tool_arguments import by_model, by_schema, only_reads, refuses
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
from amends.dialects import encode
from amends.errors import InternalError

__all__ = ["Failures"]


class Failures(AgentMiddleware[object, object]):
    """
    The middleware. It covers all tools of an agent.

    The options are those of `amends.bindings.tool_calls.ToolCalls`: `effects`, `scope`, `read_only`, `policy`, `hosts`,
    `on_failure`, `timeout`.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        refuse_unknown(type(self).__name__, options, Options.__annotations__)
        super().__init__()
        self.calls = ToolCalls(**options, names_conversations=True)
        self._verified: dict[str, BaseTool] = {}
        """The tools whose effects can be verified."""

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], object]
    ) -> object:
        """Call a tool."""
        call = request.tool_call
        checked = self._checks(request)
        if checked is not None:
            text = self._run(request).check(checked, self._fitted(checked, call["args"]))
            return ToolMessage(content=text, tool_call_id=call["id"], name=call["name"])
        received = _received(request.tool, call["args"])
        try:
            result = self._run(request).call(
                call["name"],
                received,
                lambda: self._checked(call["name"], handler(request)),
                asking=(GraphBubbleUp, _HandedOver),
                restore=lambda value: _restored(value, call),
                read_only=_only_reads(request.tool),
                failure_of=lambda message: _returned_error(request.tool, call["args"], message),
                takes_again=AGAIN in received,
                stored=_stored,
            )
        except _HandedOver as handed:
            return handed.command
        return _message(result, call)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[object]]
    ) -> object:
        """Call a tool in an event loop."""
        call = request.tool_call
        checked = self._checks(request)
        if checked is not None:
            text = await self._run(request).acheck(checked, self._fitted(checked, call["args"]))
            return ToolMessage(content=text, tool_call_id=call["id"], name=call["name"])
        received = _received(request.tool, call["args"])

        async def handle() -> object:
            return self._checked(call["name"], await handler(request))

        try:
            result = await self._run(request).acall(
                call["name"],
                received,
                handle,
                asking=(GraphBubbleUp, _HandedOver),
                restore=lambda value: _restored(value, call),
                read_only=_only_reads(request.tool),
                failure_of=lambda message: _returned_error(request.tool, call["args"], message),
                takes_again=AGAIN in received,
                stored=_stored,
            )
        except _HandedOver as handed:
            return handed.command
        return _message(result, call)

    def wrap_model_call(
        self, request: ModelRequest[object], handler: Callable[[ModelRequest[object]], object]
    ) -> object:
        """Call the model, with recovery, and with the tools that find out about calls in doubt."""
        request = self._with_checks(request)
        return self.calls.models.call(
            request.model, lambda model: _complete(handler(request.override(model=model)))
        )

    async def awrap_model_call(
        self, request: ModelRequest[object], handler: Callable[[ModelRequest[object]], Awaitable[object]]
    ) -> object:
        """Do the same in an event loop."""
        request = self._with_checks(request)

        async def ask(model: BaseChatModel) -> object:
            return _complete(await handler(request.override(model=model)))

        return await self.calls.models.acall(request.model, ask)

    def _with_checks(self, request: ModelRequest[object]) -> ModelRequest[object]:
        """
        Return the request with a tool for each one that is in doubt in this run and can be verified.

        Raises:
            TypeError: a tool goes through the ledger, and the run has no thread that separates it from those of other users.

        """
        if any(self._covers(each) for each in request.tools):
            self._run(request).require_scope()
        tools = [
            each for each in request.tools if isinstance(each, BaseTool) and self.calls.can_check(each.name)
        ]
        if not tools:
            return request
        run, added = self._run(request), []
        for tool in tools:
            name = self.calls.offer_check(tool.name)
            self._verified[tool.name] = tool
            if run.in_doubt(tool.name):
                schema = tool.tool_call_schema
                added.append(
                    StructuredTool.from_function(
                        _never, name=name, description=check_description(tool.name), args_schema=schema
                    )
                )
        return request.override(tools=[*request.tools, *added]) if added else request

    def _covers(self, tool: object) -> bool:
        return isinstance(tool, BaseTool) and self.calls.covers(tool.name, read_only=_only_reads(tool))

    def _fitted(self, name: str, arguments: Mapping[str, object]) -> dict[str, object]:
        return _received(self._verified.get(name), arguments)

    def _checks(self, request: ToolCallRequest) -> str | None:
        """Return the tool about which a call of the model wants to find out, if it is such a call."""
        name = request.tool_call["name"]
        if request.tool is not None or not name.startswith(CHECK):
            return None
        checked = name.removeprefix(CHECK)
        return checked if self.calls.can_check(checked) else None

    def _checked(self, name: str, result: object) -> object:
        """Return a result. Raises the Command with which an undeclared tool hands over to another node: it is done anew each time."""
        if isinstance(result, Command) and result.goto and name not in self.calls.declared:
            raise _HandedOver(result)
        return result

    def _run(self, request: ToolCallRequest | ModelRequest[object]) -> Run:
        """Return the run: everything since the last message of a person."""
        state = request.state
        messages = state.get("messages", ()) if isinstance(state, Mapping) else getattr(state, "messages", ())
        asked = [message for message in messages or () if isinstance(message, HumanMessage)]
        thread = _thread(request)
        turn = (len(asked), getattr(asked[-1], "id", None)) if asked else None
        user = _configurable(request).get("user_id")
        user = user if isinstance(user, str) else None
        caller = Caller(run=turn, thread=thread, user=user, context=request.runtime)
        return self.calls.run((thread, turn), caller=caller)


class _HandedOver(Exception):
    """The tool hands over to another node of the graph."""

    def __init__(self, command: Command[object]) -> None:
        super().__init__()
        self.command = command


def _stored(result: object) -> object:
    """Return what the ledger records of a result: of a Command that updates the state, what the model reads."""
    if not isinstance(result, Command):
        return result
    update = result.update if isinstance(result.update, Mapping) else {}
    messages = update.get("messages", ())
    texts = [str(each.content) for each in messages if isinstance(each, ToolMessage)] if messages else []
    return "\n".join(texts)


def _complete(response: object) -> object:
    """
    Return the answer of a model.

    Raises:
        InternalError: its tool calls were cut, and LangChain would end the run with an empty text.

    """
    messages = getattr(response, "result", None)
    last = messages[-1] if isinstance(messages, list) and messages else response
    cut = getattr(last, "invalid_tool_calls", None)
    if cut and not getattr(last, "tool_calls", None) and not getattr(last, "text", ""):
        names = sorted({str(call.get("name"))[:64] for call in cut})
        raise InternalError(
            f"The model's call of {', '.join(names)} was cut or is not valid JSON",
            recovery="transient",
            executed="no",
        )
    return response


def _never(**_: object) -> str:
    """Do nothing: the middleware answers the calls of this tool."""
    return ""


def _configurable(request: ToolCallRequest | ModelRequest[object]) -> Mapping[str, object]:
    config: object = getattr(request.runtime, "config", None)
    if config is None:
        with suppress(RuntimeError):
            config = get_config()
    members = config.get("configurable") if isinstance(config, Mapping) else None
    return members if isinstance(members, Mapping) else {}


def _thread(request: ToolCallRequest | ModelRequest[object]) -> str | None:
    """Return the id of the thread, which the application gives and a checkpointer keeps."""
    thread = _configurable(request).get("thread_id")
    return None if thread is None else str(thread)


def _received(tool: object, arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments that the tool receives, without those that LangChain injects."""
    schema = getattr(tool, "tool_call_schema", None)
    return by_schema(schema, arguments) if isinstance(schema, Mapping) else by_model(schema, arguments)


def _only_reads(tool: object) -> bool:
    """Return whether an MCP server says that the tool only reads."""
    metadata = getattr(tool, "metadata", None)
    return only_reads(metadata)


def _returned_error(tool: object, arguments: Mapping[str, object], result: object) -> Exception | None:
    """Return the failure that a message says. The tool did not run if its schema refuses the arguments."""
    if not isinstance(result, ToolMessage) or result.status != "error":
        return None
    return ReturnedError(
        ran=tool is not None and not refuses(getattr(tool, "tool_call_schema", None), arguments)
    )


def _restored(value: object, call: Mapping[str, object]) -> ToolMessage:
    """Return the message of a call whose outcome the ledger has: a stored message, or a value that a person gave."""
    if isinstance(value, Mapping) and value.get("type") == "tool":
        value = value.get("content")
    content = value if isinstance(value, str | list) else json.dumps(value)
    return ToolMessage(content=content, tool_call_id=call["id"], name=call["name"])


def _message(result: object, call: Mapping[str, object]) -> object:
    if not isinstance(result, ToolFailure):
        return result
    return ToolMessage(
        content=result.text,
        tool_call_id=call["id"],
        name=call["name"],
        status="error",
        artifact=encode(result.fault, "envelope"),
    )
