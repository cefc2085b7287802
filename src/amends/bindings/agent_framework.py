"""
Microsoft Agent Framework: a tool's failure becomes a text that the model can act on, and does not end the run.

    from agent_framework import Agent
    from amends.bindings.agent_framework import Failures

    agent = Agent(client=client, tools=[search, pay], middleware=[Failures(read_only=["search"])])

The framework alone shows the model "Error: Function failed." and ends the loop after three errors in a row.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Unpack
from weakref import WeakSet

try:
    from agent_framework import (
        BaseChatClient,
        ChatResponse,
        FunctionInvocationContext,
        FunctionMiddleware,
        FunctionTool,
        Message,
        ResponseStream,
    )
    from agent_framework.exceptions import MiddlewareException, UserInputRequiredException
except ImportError as missing:
    raise ImportError(
        "amends.bindings.agent_framework needs the Microsoft Agent Framework: pip install agent-framework-core"
    ) from missing

from amends.bindings.tool_arguments import by_function, by_schema, lacks_required
from amends.bindings.tool_calls import (
    AGAIN,
    CHECK,
    Caller,
    Options,
    Run,
    ToolCalls,
    ToolFailure,
    check_description,
)
from amends.core.wrong_calls import refuse_unknown
from amends.errors import ValidationError

__all__ = ["Failures"]


class Failures(FunctionMiddleware):
    """
    The middleware. It covers all tools of an agent.

    The options are those of `amends.bindings.tool_calls.ToolCalls`.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        refuse_unknown(type(self).__name__, options, Options.__annotations__)
        self.calls = ToolCalls(**options)
        self._checking: WeakSet[Callable[..., object]] = WeakSet()

    def model(self, client: BaseChatClient) -> BaseChatClient:
        """Return a copy of a client whose calls are recovered within bounds: `Agent(client=failures.model(client), ...)`."""
        models, recovered = self.calls.models, copy.copy(client)

        def ask(
            *, messages: Sequence[Message], stream: bool, options: Mapping[str, object], **more: object
        ) -> object:
            asked = {"messages": messages, "stream": stream, "options": options, **more}
            if not stream:
                return models.acall(client, lambda chosen: _asked(chosen, _for(chosen, client, asked)))
            begun: list[object] = []
            return ResponseStream(
                models.astream(client, lambda chosen: _streamed(chosen, _for(chosen, client, asked), begun)),
                finalizer=lambda updates: _final(begun, updates),
            )

        recovered._inner_get_response = ask  # noqa: SLF001 - what a client of the framework implements
        return recovered

    async def process(
        self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]
    ) -> None:
        """Call a tool."""
        if getattr(context.function, "func", None) in self._checking:
            await call_next()
            return
        received = _received(context)
        run, name = self._run(context), context.function.name
        offers = context.tools is not None and self.calls.can_check(name)
        if offers:
            self.calls.offer_check(name)

        async def call() -> object:
            try:
                await call_next()
            except MiddlewareException:
                raise
            except Exception as error:
                if lacks_required(_schema(context), received):
                    # The framework cannot have called the function.
                    raise ValidationError("A required argument is missing", executed="no") from error
                raise
            return _plain(context.result)

        result = await run.acall(
            name,
            received,
            call,
            takes_again=AGAIN in received,
            passing=(MiddlewareException,),
            directs=_is_agent(context.function),
            asking=(UserInputRequiredException,),
        )
        context.result = result.text if isinstance(result, ToolFailure) else result
        if offers and run.in_doubt(name):
            self._offer(context, run)

    def _offer(self, context: FunctionInvocationContext, run: Run) -> None:
        """Give the model a tool that finds out about calls of this one, from its next request on."""
        checked = context.function
        if context.tools is None or any(
            getattr(each, "name", "") == CHECK + checked.name for each in context.tools
        ):
            return

        async def find_out(**arguments: object) -> str:
            return await run.acheck(checked.name, _fitted(checked, arguments))

        self._checking.add(find_out)
        tool = FunctionTool(
            name=CHECK + checked.name,
            description=check_description(checked.name),
            func=find_out,
            input_model=checked.parameters(),
            approval_mode="never_require",
        )
        context.tools.append(tool)

    def _run(self, context: FunctionInvocationContext) -> Run:
        tools = context.tools  # one list for all calls of a run
        session = getattr(getattr(context, "session", None), "session_id", None)
        session = session if isinstance(session, str) else None
        caller = Caller(run=id(tools), session=session, context=context)
        return self.calls.run(id(tools), owner=tools, caller=caller)


def _asked(client: BaseChatClient, asked: dict[str, object]) -> Awaitable[object]:
    answer: Awaitable[object] = client._inner_get_response(**asked)  # noqa: SLF001
    return answer


def _for(chosen: object, client: object, asked: dict[str, object]) -> dict[str, object]:
    """Return the arguments of a request for another client: an agent names the model of its own client in the options."""
    options, own, other = asked["options"], getattr(client, "model", None), getattr(chosen, "model", None)
    if own == other or not isinstance(options, Mapping) or options.get("model") != own:
        return asked
    changed = {name: value for name, value in options.items() if name != "model"}
    return {**asked, "options": changed if other is None else {**changed, "model": other}}


async def _streamed(
    client: BaseChatClient, asked: dict[str, object], begun: list[object]
) -> AsyncIterator[object]:
    events = client._inner_get_response(**asked)  # noqa: SLF001
    if not isinstance(events, ResponseStream) and inspect.isawaitable(events):
        events = await events
    begun[:] = [events]
    async for event in events:
        yield event


async def _final(begun: list[object], updates: Sequence[object]) -> object:
    """Return the whole answer of a stream: what the client itself makes of it."""
    if begun and isinstance(begun[0], ResponseStream):
        return await begun[0].get_final_response()
    return ChatResponse.from_updates(updates)


def _is_agent(function: object) -> bool:
    """Return whether a tool is another agent, made with `Agent.as_tool`."""
    called = getattr(function, "func", None)
    return getattr(called, "__qualname__", "").endswith("as_tool.<locals>._agent_wrapper")


def _arguments(given: object) -> dict[str, object]:
    dump = getattr(given, "model_dump", None)
    plain = dump() if callable(dump) else given
    return dict(plain) if isinstance(plain, Mapping) else {}


def _received(context: FunctionInvocationContext) -> dict[str, object]:
    """Return the arguments that the tool receives; those of the framework are none of the model's."""
    return _fitted(context.function, _arguments(context.arguments))


def _fitted(tool: FunctionTool, arguments: dict[str, object]) -> dict[str, object]:
    schema = tool.parameters()
    if not isinstance(schema, Mapping):
        return arguments
    received = by_schema(schema, arguments)
    function = getattr(tool, "func", None)
    if not callable(function):
        return received
    names = schema.get("properties", {})
    return {name: value for name, value in by_function(function, received).items() if name in names}


def _schema(context: FunctionInvocationContext) -> object:
    parameters = getattr(context.function, "parameters", None)
    return parameters() if callable(parameters) else None


def _plain(result: object) -> object:
    """Return the text of a result that is only text, so that the ledger can store it."""
    if not isinstance(result, list) or any(getattr(part, "type", "") != "text" for part in result):
        return result
    return "\n".join(str(part.text) for part in result)
