"""
Guarding a server: every failure is answered with an AdCP error, and no text of a foreign exception is sent.

The guard has to be in two places. The low-level server passes each request to a handler: wrapping the handler lets the
guard replace every answer, and the negotiated protocol version is known there. But the frameworks turn exceptions into
text before that, so the guard also wraps their public methods (`call_tool`, `read_resource`, …), and acts only while
they serve a request: other code that calls them gets the exceptions it always got. An outermost middleware answers
what other middleware raises. Progress, cancellation, elicitation and sampling are not changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec
from mcp.server import Server
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import HandlerEntry
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams, CallToolResult
from pydantic import ValidationError

from amends.bindings.mcp.handler_errors import (
    Translate,
    absent_arguments,
    classify,
    is_time_limit,
    not_found,
    raised_by_client,
    unwrap,
)
from amends.bindings.mcp.responses import LOG, client_of, may_be_structured, report, rpc_error, tool_result
from amends.bindings.mcp.sdk_internals import lowlevel_server
from amends.bindings.mcp.tool_declarations import (
    DECLARES_NOTHING,
    Declaration,
    GetTool,
    find_declaration,
    listed_by,
    tool_of,
)
from amends.bindings.mcp.tool_effects import ToolEffects
from amends.bindings.mcp.tool_options import Wrappers, check_tools
from amends.core.fault import Fault
from amends.core.wrong_calls import explains_wrong_calls
from amends.recovery.clock import CLOCK
from amends.recovery.incoming import MEMBER as LEFT
from amends.recovery.scope import tool_call
from amends.serving import tracing
from amends.serving.server_errors import (
    Failure,
    OwnErrors,
    classify_safely,
    fault_for,
    with_executed,
)

if TYPE_CHECKING:
    from amends.effects import Effects

__all__ = ["TOOL", "FindMissing", "Guard", "guard"]

S = TypeVar("S")
Context: TypeAlias = ServerRequestContext[object, object]
Handler: TypeAlias = Callable[[Context, Any], Awaitable[HandlerResult]]
"""A handler of the low-level server; the SDK knows the type of its params only where it is registered."""

FindMissing = Callable[..., Awaitable[Fault | None]]
"""
Called with an exception and the arguments of the method that raised it. Returns the fault if the request names
something unknown, else None.
"""

TOOL = "tools/call"
_MARK = "_amends_guard"
_UNGUARDED = frozenset({"ping", "server/discover", "subscriptions/listen"})
"""Methods that the protocol itself answers."""


@explains_wrong_calls
def guard(
    server: S,
    *,
    show: bool = True,
    translate: Translate = fault_for,
    errors: Mapping[type[BaseException], str] | None = None,
    code_prefix: str | None = None,
    effects: Effects | None = None,
    tools: Collection[str] | None = None,
    scope: Callable[[Context], str] | None = None,
    wrapper: Collection[str] = (),
) -> S:
    """
    Guard a server and return it. Tools may be registered before or after.

        server = guard(MCPServer("seats"))

    Args:
        server: an `MCPServer` or a low-level `Server` of the official SDK. For FastMCP use
            `amends.bindings.fastmcp.guard`.
        show: whether the text of a ToolError or ResourceError that an author raised on purpose is sent to the caller.
        translate: returns the fault for any other exception; `amends.chain.relaying(…)` builds one from rules.
        errors: exception classes of yours with the code that each means, for this server alone: `{SeatTaken: "CONFLICT"}`.
        code_prefix: your vendor name: with "ACME", your own code OUT_OF_STOCK is sent as X_ACME_OUT_OF_STOCK.
        effects: the ledger that runs tools once per key: those whose annotations say `readOnlyHint: false` or
            `destructiveHint: true`.
        tools: the names of further tools that it covers.
        scope: returns the scope of derived keys for a request context; by default the authenticated client, else the
            session.
        wrapper: the names of tools that make one call of another service and do nothing else. What that service says about the
            effect of the call is passed on, so that callers may repeat one that did not happen.

    Raises:
        TypeError: `server` is neither.
        ValueError: a code or the prefix is not valid.

    """
    own_errors = OwnErrors.of(errors, code_prefix)
    if effects is None and (tools is not None or scope is not None):
        raise TypeError(
            "tools and scope belong to a ledger: guard(server, effects=Effects(...), tools=[...])"
        )
    ledger = None if effects is None else ToolEffects(effects, tools, scope)
    wrapping = check_tools(wrapper, "wrapper")
    if isinstance(server, MCPServer):
        guarded = Guard(
            lowlevel_server(server),
            show=show,
            translate=translate,
            own_errors=own_errors,
            get_tool=tool_of(server),
            ledger=ledger,
            wrapper=wrapping,
        )
        if guarded.install():
            guarded.wrap(server, "call_tool", find_missing=_find_missing_tool(server))
            guarded.wrap(server, "read_resource")
            guarded.wrap(server, "get_prompt", find_missing=_find_missing_prompt(server))
    elif isinstance(server, Server):
        Guard(
            server, show=show, translate=translate, own_errors=own_errors, ledger=ledger, wrapper=wrapping
        ).install()
    else:
        raise TypeError(f"guard takes an MCPServer or a low-level Server, not {type(server).__name__}")
    return server


class _Call(msgspec.Struct):
    """One request that the guarded server is handling."""

    meta: Mapping[str, object] | None
    """The `_meta` of the request, which may hold a `traceparent` and what the caller has left."""
    arrived: float
    """When it arrived, on the recovery clock."""
    failure: Failure | None = None
    """What `call_tool` of the framework raised: the framework makes a result of it, which the guard replaces."""
    wrapped: bool = False
    """Whether a wrapped method of the framework is running. The author's code may call it again inside."""


_CALL: ContextVar[_Call | None] = ContextVar("amends_mcp_call", default=None)


# First, because a request over HTTP has headers of its own, which may be those of a gateway between.
tracing.add_source(
    _CALL,
    lambda call: None if call.meta is None else call.meta.get("traceparent"),
    left=lambda call: (None if call.meta is None else call.meta.get(LEFT), call.arrived),
    first=True,
)


class Guard:
    """The guard of one low-level server."""

    def __init__(
        self,
        server: Server[object],
        *,
        show: bool,
        translate: Translate,
        own_errors: OwnErrors,
        get_tool: GetTool | None = None,
        ledger: ToolEffects | None = None,
        change: Mapping[str, Callable[[Guard, HandlerResult], HandlerResult]] | None = None,
        wrapper: Collection[str] = (),
    ) -> None:
        """
        Args:
            server: the low-level server.
            show: whether the text of errors that an author raised on purpose is sent.
            translate: returns the fault for any other exception.
            own_errors: the options for errors that the author raises or has registered.
            get_tool: finds a tool by its name; by default the handler of tools/list does.
            ledger: runs covered tools once per key.
            change: functions that change the results of further methods, by method.
            wrapper: the names of tools that make one call and do nothing else.

        """
        self.wrappers = Wrappers(wrapper)
        self._server = server
        self._change = change or {}
        self._get_tool = get_tool
        self._ledger = ledger
        self._classifier = partial(classify, show=show, translate=translate, own_errors=own_errors)
        self._get_handler: Callable[[str], HandlerEntry[object] | None] = server.get_request_handler
        self._entries: dict[str, tuple[HandlerEntry[object], HandlerEntry[object]]] = {}

    def install(self) -> bool:
        """Guard the server; return False if it is guarded already."""
        if getattr(self._server, _MARK, None) is not None:
            return False
        setattr(self._server, _MARK, self)
        # The SDK looks up every handler with this method, also handlers that are registered later.
        self._server.get_request_handler = self._get_guarded  # type: ignore[method-assign]
        self._server.middleware.insert(0, self._outermost)
        return True

    # ------------------------------------------------------------------------------------------------- handlers

    def _get_guarded(self, method: str) -> HandlerEntry[object] | None:
        entry = self._get_handler(method)
        cached = self._entries.get(method)
        if cached is not None and cached[0] is entry:
            return cached[1]
        if entry is None or method in _UNGUARDED:
            return entry
        guarded = replace(entry, handler=self._guarded(method, entry.handler))
        self._entries[method] = entry, guarded
        return guarded

    def _guarded(self, method: str, handler: Handler) -> Handler:
        ledger = self._ledger if method == TOOL else None
        change = self._change.get(method)

        async def guarded(ctx: Context, params: object) -> HandlerResult:
            call = _Call(ctx.meta, CLOCK.now())
            token = _CALL.set(call)
            try:
                with tool_call():
                    if ledger is None:
                        result = await handler(ctx, params)
                    else:
                        result = await self._call_once(ledger, handler, call, ctx, params)
            except _Classified as classified:
                return await self._answer(classified.failure, method, ctx, params)
            except asyncio.CancelledError as exc:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                # The request was not cancelled, but something that its handler awaited; the caller still waits.
                return await self._answer(self.classify(exc), method, ctx, params)
            except Exception as exc:  # noqa: BLE001 - the guard answers failures of any kind
                first = unwrap(exc)
                if isinstance(first, MCPError) and is_time_limit(first):
                    first = exc = TimeoutError()
                if isinstance(first, MCPError) and not raised_by_client(first):
                    # The author, or the protocol, chose this answer.
                    raise first from None
                return await self._answer(self.classify(exc), method, ctx, params)
            finally:
                _CALL.reset(token)
            if call.failure is not None and getattr(result, "is_error", False):
                return await self._answer(call.failure, method, ctx, params)
            return result if change is None else change(self, result)

        return guarded

    async def _call_once(
        self,
        ledger: ToolEffects,
        handler: Handler,
        call: _Call,
        ctx: Context,
        params: object,
    ) -> HandlerResult:
        """Run a tool through the ledger, if the ledger covers it."""
        get_tool = self._get_tool
        if get_tool is None:
            entry = self._get_handler("tools/list")
            if entry is None:
                return await handler(ctx, params)
            get_tool = listed_by(entry, ctx)
        if not isinstance(params, CallToolRequestParams):
            return await handler(ctx, params)
        covered, tool = await ledger.covers(params.name, get_tool)
        if not covered:
            return await handler(ctx, params)

        async def run(changed: CallToolRequestParams) -> HandlerResult:
            result = await handler(ctx, changed)
            if call.failure is not None and getattr(result, "is_error", False):
                # The framework made a result of the exception; the ledger has to see the exception.
                failure, call.failure = call.failure, None
                raise failure.cause
            return result

        return await ledger.call(ctx, params, tool, run)

    async def _answer(self, failure: Failure, method: str, ctx: Context, params: object) -> HandlerResult:
        # The record is signed for this call, also after the context of the handler has ended.
        with tracing.handling(None, None if ctx.meta is None else ctx.meta.get(LEFT)):
            return await self._told(failure, method, ctx, params)

    async def _told(self, failure: Failure, method: str, ctx: Context, params: object) -> HandlerResult:
        if method != TOOL:
            # The protocol defines resources, prompts and listings as read-only.
            number, message, data = rpc_error(
                report(with_executed(failure, read_only=True), method, params, ctx.meta), params
            )
            raise MCPError(number, message, data) from None
        name = getattr(params, "name", None)
        tool = await self._find_tool(name, ctx)
        told = self.wrappers.told(failure, name, read_only=tool.read_only, repeatable=tool.repeatable)
        fault = report(told, method, params, ctx.meta)
        structured = not tool.has_output_schema or may_be_structured(ctx.protocol_version, client_of(ctx))
        return CallToolResult.model_validate(tool_result(fault, ctx.protocol_version, structured=structured))

    async def _find_tool(self, name: object, ctx: Context) -> Declaration:
        """Return what the server's listing says about a tool."""
        if self._get_tool is not None:
            return await find_declaration(self._get_tool, name)
        entry = self._get_handler("tools/list")
        return DECLARES_NOTHING if entry is None else await find_declaration(listed_by(entry, ctx), name)

    def classify(self, exc: BaseException) -> Failure:
        """Return the failure of an exception, by the options of this guard."""
        return classify_safely(exc, log=LOG, classifier=self._classifier)

    # ------------------------------------------------------------------------------------- methods of frameworks

    def wrap(
        self,
        framework: object,
        name: str,
        *,
        find_missing: FindMissing | None = None,
        error: type[Exception] = ToolError,
    ) -> None:
        """
        Wrap a public method of a framework, so that the guard sees what it raises while it serves a request.

        Args:
            framework: the server object.
            name: the method. The framework turns what `call_tool` raises into a result; the exceptions of the other
                methods reach the handler.
            find_missing: looks for an unknown name in the request.
            error: the exception class that the framework uses for expected failures.

        """
        inner = getattr(framework, name)

        @wraps(inner)
        async def method(*args: object, **kwargs: object) -> object:
            call = _CALL.get()
            if call is None or call.wrapped:
                return await inner(*args, **kwargs)
            call.wrapped = True
            try:
                return await inner(*args, **kwargs)
            except Exception as exc:  # noqa: BLE001
                first = unwrap(exc)
                if isinstance(first, MCPError):
                    # The handler decides whether it is the author's or an upstream's.
                    raise first from None
                fault = None
                if find_missing is not None:
                    with suppress(
                        Exception
                    ):  # listing is the application's code; its failure is not the call's
                        fault = await find_missing(exc, *args, **kwargs)
                failure = self.classify(exc) if fault is None else Failure(fault, exc, expected=True)
                if name != "call_tool":
                    raise _Classified(failure) from None
                call.failure = failure
                # Other middleware may read the text, so it is the fault's, not the exception's.
                raise error(failure.fault.message) from None
            finally:
                call.wrapped = False

        setattr(framework, name, method)

    # ------------------------------------------------------------------------------------------ other middleware

    async def _outermost(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        try:
            return await call_next(ctx)
        except (MCPError, ValidationError):
            # The SDK sends an MCPError unchanged, and for a ValidationError only that the params are invalid.
            raise
        except Exception as exc:  # noqa: BLE001
            number, message, data = rpc_error(report(self.classify(exc), ctx.method, None, ctx.meta))
            raise MCPError(number, message, data) from None


class _Classified(Exception):
    """Carries a failure from a wrapped method to the handler around it."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.fault.message)
        self.failure = failure


def _find_missing_tool(server: MCPServer[object]) -> FindMissing:
    async def find_missing(exc: BaseException, name: str, *_: object, **__: object) -> Fault | None:
        if exc.__cause__ is not None or any(tool.name == name for tool in await server.list_tools()):
            return None
        return not_found("tool")

    return find_missing


def _find_missing_prompt(server: MCPServer[object]) -> FindMissing:
    async def find_missing(
        exc: BaseException, name: str, arguments: Mapping[str, object] | None = None, *_: object, **__: object
    ) -> Fault | None:
        for prompt in await server.list_prompts():
            if prompt.name == name:
                return absent_arguments(prompt.arguments, arguments)
        return not_found("prompt")

    return find_missing
