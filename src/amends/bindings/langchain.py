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
from typing import Unpack

try:
    from langchain.agents.middleware import AgentMiddleware, ToolCallRequest
    from langchain_core.messages import HumanMessage, ToolMessage
    from langgraph.errors import GraphBubbleUp
except ImportError as missing:
    raise ImportError(
        "amends.bindings.langchain needs LangChain 1.x: pip install 'langchain>=1.0' 'langgraph>=1.0'"
    ) from missing

from amends.bindings.tool_calls import Options, Run, ToolCalls, ToolFailure
from amends.dialects import encode

__all__ = ["Failures"]


class Failures(AgentMiddleware[object, object]):
    """
    The middleware. It covers all tools of an agent.

    The options are those of `amends.bindings.tool_calls.ToolCalls`: `effects`, `scope`, `read_only`, `policy`, `hosts`,
    `on_failure`, `timeout`.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__()
        self.calls = ToolCalls(**options)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], object]
    ) -> object:
        """Call a tool."""
        call = request.tool_call
        result = self._run(request).call(
            call["name"],
            call["args"],
            lambda: handler(request),
            asking=(GraphBubbleUp,),
            restore=lambda value: _restored(value, call),
        )
        return _message(result, call)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[object]]
    ) -> object:
        """Call a tool in an event loop."""
        call = request.tool_call
        result = await self._run(request).acall(
            call["name"],
            call["args"],
            lambda: handler(request),
            asking=(GraphBubbleUp,),
            restore=lambda value: _restored(value, call),
        )
        return _message(result, call)

    def _run(self, request: ToolCallRequest) -> Run:
        """Return the run: everything since the last message of a person."""
        state = request.state
        messages = state.get("messages", ()) if isinstance(state, Mapping) else getattr(state, "messages", ())
        asked = [message for message in messages or () if isinstance(message, HumanMessage)]
        return self.calls.run((len(asked), getattr(asked[-1], "id", None)) if asked else None)


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
