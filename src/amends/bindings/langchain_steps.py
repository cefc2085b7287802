"""
LangChain and LangGraph: an agent that continues where its process died.

    from langchain.agents import create_agent
    from amends.bindings.langchain_steps import Durability

    agent = create_agent(model, [pay], middleware=[Durability()])

    @runtime.register_agent("checkout", repeatable=True)
    async def checkout(order, ctx):
        state = await agent.ainvoke({"messages": [("user", f"Pay order {order}")]})
        return state["messages"][-1].text

Model calls and tool calls are durable steps of the job or task. Put it before `Failures`, so that texts of failures are stored too.
In a graph of your own: `ToolNode(tools, awrap_tool_call=durability.awrap_tool_call)`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import timedelta
from typing import Any, NoReturn

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse, ToolCallRequest
    from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage, messages_from_dict
    from langchain_core.messages.base import message_to_dict
    from langgraph.errors import GraphBubbleUp
    from langgraph.types import Command
    from pydantic import TypeAdapter
except ImportError as missing:
    raise ImportError(
        "amends.bindings.langchain_steps needs LangChain 1.x: pip install 'langchain>=1.0' 'langgraph>=1.0'"
    ) from missing

from amends.bindings.agent_steps import AgentSteps
from amends.core.json_value import json_value

__all__ = ["Durability"]


class Durability(AgentMiddleware[Any, Any]):
    """
    The middleware, for `ainvoke` and `astream`.

    The options are those of `amends.bindings.agent_steps.AgentSteps`: `name`, `repeat`, `verify`, `timeout`.
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        repeat: Collection[str] = (),
        verify: Mapping[str, Callable[..., object]] | None = None,
        timeout: float | timedelta | None = None,
    ) -> None:
        super().__init__()
        self.steps = AgentSteps(name=name, repeat=repeat, verify=verify, timeout=timeout)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Any]) -> NoReturn:
        """Refuse a synchronous call, whose steps could not be stored."""
        raise TypeError("durable steps are stored by coroutines: call the agent with ainvoke or astream")

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Any]) -> NoReturn:
        """Refuse a synchronous call, whose steps could not be stored."""
        raise TypeError("durable steps are stored by coroutines: call the agent with ainvoke or astream")

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Call the model, or return its stored response."""
        system = request.system_message
        form = {
            "system": None if system is None else _form(system),
            "messages": [_form(message) for message in request.messages],
            "tools": sorted(_name(tool) for tool in request.tools),
        }
        schema = getattr(request.response_format, "schema", request.response_format)

        async def call() -> object:
            response = await handler(request)
            found: dict[str, object] = {"messages": [message_to_dict(each) for each in response.result]}
            if response.structured_response is not None:
                structured = response.structured_response
                adapter: TypeAdapter[Any] = TypeAdapter(Any if isinstance(schema, dict) else schema)
                found["structured"] = adapter.dump_python(structured, mode="json")
            return json_value(found)

        stored = await self.steps.model(form, call)
        assert isinstance(stored, dict)
        structured = stored.get("structured")
        if structured is not None and not isinstance(schema, dict):
            structured = TypeAdapter(schema).validate_python(structured)
        return ModelResponse(result=messages_from_dict(stored["messages"]), structured_response=structured)

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Call a tool, or return its stored result."""
        call = request.tool_call

        async def execute() -> object:
            return _stored(await handler(request))

        stored = await self.steps.tool(
            call["name"],
            call["id"],
            call["args"],
            execute,
            found=lambda value: _stored(_message(call, value)),
            asking=(GraphBubbleUp,),
        )
        return _restored(stored)


def _form(message: BaseMessage) -> dict[str, object]:
    """Return what a model gets of a message: without the ids, times and counts of the message."""
    form: dict[str, object] = {"type": message.type, "content": message.content, "name": message.name}
    if isinstance(message, AIMessage):
        form["tool_calls"] = [
            {"name": call["name"], "args": call["args"], "id": call["id"]} for call in message.tool_calls
        ]
    if isinstance(message, ToolMessage):
        form |= {"tool_call_id": message.tool_call_id, "status": message.status}
    return form


def _name(tool: object) -> str:
    if isinstance(tool, Mapping):
        function = tool.get("function")
        return str((function if isinstance(function, Mapping) else tool).get("name"))
    return str(getattr(tool, "name", ""))


def _message(call: ToolCall, value: object) -> ToolMessage:
    """Return the message for a result that was found."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return ToolMessage(text, tool_call_id=call["id"], name=call["name"])


def _stored(result: ToolMessage | Command[Any]) -> dict[str, object]:
    if isinstance(result, ToolMessage):
        return {"message": json_value(message_to_dict(result))}
    update = result.update if isinstance(result.update, dict) else {}
    messages = [message_to_dict(each) for each in update.get("messages", ()) if isinstance(each, BaseMessage)]
    others = {name: value for name, value in update.items() if name != "messages"}
    goto = list(result.goto) if isinstance(result.goto, list | tuple) else [result.goto]
    if (result.update and not isinstance(result.update, dict)) or not all(
        isinstance(each, str) for each in goto
    ):
        raise TypeError(
            "this Command of a tool cannot be stored: give it a dict as update=, and names as goto="
        )
    return {
        "messages": json_value(messages),
        "update": json_value(others),
        "goto": goto,
        "graph": result.graph,
    }


def _restored(stored: dict[str, Any]) -> ToolMessage | Command[Any]:
    if "message" in stored:
        [message] = messages_from_dict([stored["message"]])
        assert isinstance(message, ToolMessage)
        return message
    update = dict(stored["update"])
    if stored["messages"]:
        update["messages"] = messages_from_dict(stored["messages"])
    return Command(graph=stored["graph"], update=update or None, goto=stored["goto"])
