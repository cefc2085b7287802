"""
Servers and clients on version 1 of the MCP SDK, which CrewAI and LangChain's MCP adapters need.

`guard` answers failures of a `FastMCP` or a low-level `Server` with AdCP errors, and no text of a foreign exception is sent. `Client`
has typed errors and bounded recovery. Both use the modules for version 2 for everything but the SDK's own classes.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import partial
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from amends.bindings.mcp.calls import CONNECT, READ, Calls, trace_meta
from amends.bindings.mcp.client_errors import check_text, error_of, failed_result, not_connected
from amends.bindings.mcp.connection_task import ConnectionTask
from amends.bindings.mcp.handler_errors import Translate, classify, not_found, raised_by_client, unwrap
from amends.bindings.mcp.http_recorder import HttpRecorder
from amends.bindings.mcp.responses import LOG, may_be_structured, report, rpc_error, tool_result
from amends.bindings.mcp.sdk_types import MCPError, is_failed
from amends.bindings.mcp.tool_options import Wrappers, check_tools
from amends.bindings.mcp.tools import ToolOperations, list_all_tools, operations_of
from amends.core.operation import Operation
from amends.core.policy import Policy
from amends.errors.base import FaultError
from amends.foreign.trust import is_own_address, trusted
from amends.http.raising import check_raises, return_or_raise
from amends.recovery.clock import CLOCK
from amends.recovery.effect_context import current_key, request_key
from amends.recovery.incoming import MEMBER as LEFT
from amends.recovery.origins import PER_ORIGIN, PerOrigin
from amends.recovery.policies import TOOL
from amends.recovery.scope import tool_call
from amends.recovery.upstream import Upstream
from amends.serving import tracing
from amends.serving.deadlines import Deadlines, Limit
from amends.serving.server_errors import Failure, OwnErrors, classify_safely, fault_for, with_executed

if TYPE_CHECKING:
    from amends.effects import Effects

__all__ = ["Client", "guard"]

S = TypeVar("S")

_types: Any = import_module("mcp.types")
_lowlevel: Any = import_module("mcp.server.lowlevel.server")
_fastmcp: Any = import_module("mcp.server.fastmcp")
_session: Any = import_module("mcp.client.session")
_stdio: Any = import_module("mcp.client.stdio")
_http: Any = import_module("mcp.client.streamable_http")
_memory: Any = import_module("mcp.shared.memory")
_httpx: Any = import_module("httpx")

_McpError: Any = MCPError

_PROTOCOL = "2025-11-25"
_VERSIONS: Collection[object] = import_module("mcp.shared.version").SUPPORTED_PROTOCOL_VERSIONS
_META_KEY = "amends/key"
_MARK = "_amends_guard"
_FIRST_ERROR = 400
_TIME_OUT, _CLOSED = 408, -32000
"""Numbers of the SDK's own errors: an answer that did not come in time, and a connection that ended."""


# Servers ----------------------------------------------------------------------------------------------------------


class _Call:
    """One request that the guarded server is handling."""

    def __init__(self, meta: Mapping[str, object]) -> None:
        self.meta, self.arrived = meta, CLOCK.now()
        self.error: BaseException | None = None


_CALL: ContextVar[_Call | None] = ContextVar("amends_mcp_1_call", default=None)
tracing.add_source(
    _CALL,
    lambda call: call.meta.get("traceparent"),
    left=lambda call: (call.meta.get(LEFT), call.arrived),
    first=True,
)


def guard(
    server: S,
    *,
    show: bool = True,
    translate: Translate = fault_for,
    errors: Mapping[type[BaseException], str] | None = None,
    code_prefix: str | None = None,
    effects: Effects | None = None,
    tools: Collection[str] | None = None,
    scope: Callable[[Any], str] | None = None,
    wrapper: Collection[str] = (),
) -> S:
    """
    Guard a server of version 1 of the SDK and return it. Tools may be registered before or after.

        server = guard(FastMCP("seats"))

    Args:
        server: a `FastMCP` of the official SDK, or a low-level `Server`.
        show: whether the text of a ToolError or ResourceError that an author raised on purpose is sent to the caller.
        translate: returns the fault for any other exception.
        errors: exception classes of yours with the code that each means, for this server alone.
        code_prefix: your vendor name, for codes of your own.
        effects: needs version 2 of the SDK, and so do `tools` and `scope`; decorate the functions with `effects.once`.
        tools: as `effects`.
        scope: as `effects`.
        wrapper: the names of tools that make one call of another service and do nothing else.

    Raises:
        TypeError: `server` is neither, or an option needs version 2.

    """
    if effects is not None or tools is not None or scope is not None:
        raise TypeError(
            "effects=, tools= and scope= need version 2 of the MCP SDK: decorate the functions with @effects.once(...)"
        )
    own_errors = OwnErrors.of(errors, code_prefix)
    wrapping = check_tools(wrapper, "wrapper")
    framework = server if isinstance(server, _fastmcp.FastMCP) else None
    # FastMCP's low-level server is a private attribute in version 1; there is no public way to its handlers.
    lowlevel: Any = server if framework is None else framework._mcp_server  # noqa: SLF001
    if not isinstance(lowlevel, _lowlevel.Server):
        raise TypeError(
            f"guard takes a FastMCP or a low-level Server of the MCP SDK, not {type(server).__name__}"
        )
    if getattr(lowlevel, _MARK, None) is None:
        classifier = partial(classify, show=show, translate=translate, own_errors=own_errors)
        setattr(lowlevel, _MARK, _Guard(lowlevel, classifier, Wrappers(wrapping)))
    return server


class _Guard:
    """The guard of one low-level server."""

    def __init__(
        self, server: Any, classifier: Callable[[BaseException], Failure], wrappers: Wrappers
    ) -> None:
        self._server, self._classifier, self._wrappers = server, classifier, wrappers
        self._make_result = server._make_error_result  # noqa: SLF001
        # The SDK makes a result of what a tool raised with this method, inside the `except`.
        server._make_error_result = self._make_error_result  # noqa: SLF001
        server.request_handlers = _Handlers(server.request_handlers, self._guarded)

    def _make_error_result(self, message: str) -> object:
        call = _CALL.get()
        if call is not None:
            call.error = sys.exception()
        return self._make_result(message)

    def _guarded(
        self, kind: type, handler: Callable[[Any], Awaitable[Any]]
    ) -> Callable[[Any], Awaitable[Any]]:
        if kind is _types.PingRequest:
            return handler
        is_tool = kind is _types.CallToolRequest

        async def guarded(request: Any) -> Any:
            if request is None:
                return await handler(request)  # the SDK lists the tools for itself
            params = getattr(request, "params", None)
            meta = getattr(params, "meta", None)
            call = _Call({} if meta is None else {**meta.model_dump(), **(meta.model_extra or {})})
            token = _CALL.set(call)
            try:
                with tool_call():
                    result = await handler(request)
            except asyncio.CancelledError:
                raise
            except Exception as exc:  # noqa: BLE001 - the guard answers failures of any kind
                first = unwrap(exc)
                if isinstance(first, MCPError) and not raised_by_client(first):
                    raise first from None  # the author, or the protocol, chose this answer
                return await self._answer(await self._classify(exc, params), request, params, call, is_tool)
            finally:
                _CALL.reset(token)
            if is_tool and call.error is not None and is_failed(getattr(result, "root", None)):
                return await self._answer(
                    await self._classify(call.error, params), request, params, call, is_tool
                )
            return result

        return guarded

    async def _classify(self, exc: BaseException, params: object) -> Failure:
        tool = await self._tool(getattr(params, "name", None))
        if exc.__cause__ is None and tool is None and type(exc).__name__ == "ToolError":
            return Failure(not_found("tool"), exc, expected=True)
        return classify_safely(exc, log=LOG, classifier=self._classifier)

    async def _tool(self, name: object) -> object:
        """Return a tool of the server's listing."""
        listing = dict.get(self._server.request_handlers, _types.ListToolsRequest)
        if listing is None or not isinstance(name, str):
            return None
        try:
            listed = await listing(_types.ListToolsRequest(method="tools/list"))
        except Exception:  # noqa: BLE001 - listing is the application's code; its failure is not the call's
            return None
        return next((each for each in listed.root.tools if each.name == name), None)

    def _peer(self) -> tuple[str, object]:
        """Return the version of the protocol that was agreed on, and the client's `Implementation`, if it said who it is."""
        try:
            params = self._server.request_context.session.client_params
        except LookupError:  # called without a session
            params = None
        asked = getattr(params, "protocolVersion", None)
        # The SDK answers a client that asks for a version that it does not know with its newest.
        return str(asked) if asked in _VERSIONS else _PROTOCOL, getattr(params, "clientInfo", None)

    async def _answer(
        self, failure: Failure, request: Any, params: object, call: _Call, is_tool: bool
    ) -> object:
        with tracing.handling(None, call.meta.get(LEFT)):
            if not is_tool:
                fault = report(
                    with_executed(failure, read_only=True), request.method, params, dict(call.meta)
                )
                number, message, data = rpc_error(fault, params)
                raise _McpError(_types.ErrorData(code=number, message=message, data=data)) from None
            tool = await self._tool(getattr(params, "name", None))
            hints = getattr(tool, "annotations", None)
            told = self._wrappers.told(
                failure,
                getattr(params, "name", None),
                read_only=getattr(hints, "readOnlyHint", None) is True,
                repeatable=getattr(hints, "idempotentHint", None) is True,
            )
            fault = report(told, request.method, params, dict(call.meta))
            protocol, client = self._peer()
            structured = getattr(tool, "outputSchema", None) is None or may_be_structured(protocol, client)
            answer = tool_result(fault, protocol, structured=structured)
            return _types.ServerResult(_types.CallToolResult.model_validate(answer))


class _Handlers(dict[type, Any]):
    """The handlers of a server: those that the SDK looks up are guarded, also if they are registered later."""

    def __init__(self, handlers: Mapping[type, Any], guarded: Callable[[type, Any], Any]) -> None:
        super().__init__(handlers)
        self._guarded = guarded

    def get(self, kind: type, default: Any = None) -> Any:
        handler = super().get(kind)
        return default if handler is None else self._guarded(kind, handler)


# Clients ----------------------------------------------------------------------------------------------------------


class Client:
    """
    A client on version 1 of the SDK: every failed call raises the typed error of its fault, and recovery is bounded.

        async with Client("https://seats.example/mcp", policy=Policy(deadline=30)) as client:
            result = await client.call_tool("free_seats", {"train": 2})

    Args:
        server: a URL, a `StdioServerParameters`, a server in this process, or a function that returns a new transport.
        policy: the bounds of recovery.
        upstream: the state shared with other callers of the same server.
        own: the server is part of our own system.
        raises: "fault", "original", or "nothing" for the failed result.
        refresh: renews credentials that were refused.
        verify: finds out whether a call had its effect.
        limit: seconds that one attempt may take.
        connecting: seconds that opening a connection may take.
        closing: seconds that closing one may take.
        effects: the ledger that makes calls once: of all tools that do not say that they only read.
        effect_tools: the names of tools that it covers whatever the listing says.
        headers: headers of each request, for a URL.
        session_options: options of the SDK's `ClientSession`, such as its callbacks.

    """

    def __init__(
        self,
        server: object,
        *,
        policy: Policy = TOOL,
        upstream: Upstream | PerOrigin | None = PER_ORIGIN,
        own: bool = False,
        raises: str = "fault",
        refresh: Callable[..., object] | None = None,
        verify: Callable[..., object] | None = None,
        limit: float | None = 300.0,
        connecting: float = 30.0,
        closing: float = 5.0,
        effects: Effects | None = None,
        effect_tools: Collection[str] = (),
        headers: Mapping[str, str] | None = None,
        **session_options: Any,
    ) -> None:
        check_raises(raises)
        self._server, self._raises, self._effects = server, raises, effects
        self._own = own or is_own_address(server)
        self._covered = frozenset(effect_tools)
        self._connecting, self._closing = connecting, closing
        self._headers, self._options = dict(headers or {}), session_options
        self._calls = Calls(
            policy=policy,
            upstream=upstream,
            address=server,
            shared=not headers,
            refresh=refresh,
            verify=verify,
            limit=limit,
        )
        self._connection: ConnectionTask | None = None
        self._deadlines = Deadlines()
        self._lock = asyncio.Lock()
        self._entered = self._closed = False

    async def __aenter__(self) -> Self:
        """Connect, with recovery."""
        if self._entered:
            raise RuntimeError("Client is already entered; cannot reenter")
        self._entered = True
        try:
            await self._calls.run(self._connect, operation=CONNECT)
        except BaseException:
            self._entered = False
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect, within a bounded time."""
        async with self._lock:
            self._closed = True
            connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
        self._deadlines.close()

    @property
    def session(self) -> Any:
        """The `ClientSession` of the current connection. Raises RuntimeError outside of `async with`."""
        if self._connection is None:
            raise RuntimeError("Client must be used within an async context manager")
        return self._connection.session

    async def _connect(self) -> ConnectionTask:
        async with self._lock:
            if self._closed:
                raise RuntimeError("Client is closed")
            connection = self._connection
            if connection is not None:
                if not connection.broken:
                    return connection
                await connection.close()
            self._calls.forget()
            left = self._calls.seconds_left()
            opened: Any = _Opened(self._transport, self._options)
            connection = ConnectionTask(opened, self._closing)
            try:
                await connection.wait_open(self._connecting if left is None else min(self._connecting, left))
            except Exception as exc:
                raise not_connected(exc) from exc
            self._connection = connection
            return connection

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[tuple[Any, ...]]:
        """Open a new transport, and yield its two streams."""
        async with AsyncExitStack() as stack:
            server = self._server
            if isinstance(server, str):
                client = await stack.enter_async_context(_recording_client(self._headers))
                transport = _http.streamable_http_client(server, http_client=client)
            elif isinstance(server, _stdio.StdioServerParameters):
                transport = _stdio.stdio_client(server)
            elif isinstance(server, _fastmcp.FastMCP | _lowlevel.Server):
                lowlevel = server._mcp_server if isinstance(server, _fastmcp.FastMCP) else server  # noqa: SLF001
                theirs, ours = await stack.enter_async_context(_memory.create_client_server_memory_streams())
                running = asyncio.create_task(
                    lowlevel.run(*ours, lowlevel.create_initialization_options(), raise_exceptions=False)
                )
                stack.callback(running.cancel)
                yield theirs
                return
            elif callable(server):
                transport = server()
            else:
                raise TypeError(
                    f"server is a URL, StdioServerParameters, a server or a function, not {type(server).__name__}"
                )
            yield await stack.enter_async_context(transport)

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        operation: Operation | None = None,
        policy: Policy | None = None,
        raises: str | None = None,
        key: str | None = None,
        again: str | None = None,
        meta: dict[str, Any] | None = None,
        progress_callback: Any = None,
    ) -> Any:
        """
        Call a tool, with recovery; returns the SDK's `CallToolResult`.

        Args:
            name: the tool.
            arguments: its arguments.
            operation: whether a repeat is safe; replaces what the tool's annotations say.
            policy: replaces the client's policy.
            raises: replaces the client's setting.
            key: with a ledger, the key of this call; it is sent in `_meta["amends/key"]`.
            again: with a ledger, the reason for making the same call once more.
            meta: the `_meta` of the request.
            progress_callback: called with progress, in each attempt.

        Raises:
            FaultError: the typed error.

        """
        _ = self.session
        if operation is None:
            operation = self._calls.operation_of(name, arguments) or await self._calls.list_operation(
                name, arguments, self._list_operations, policy
            )
        operation = self._calls.traced(operation)
        covered = self._effects is not None and (
            key is not None or name in self._covered or not operation.read_only
        )
        sent = {**trace_meta(operation), **(meta or {})}
        inside = None if covered else request_key("tools/call", name)
        if inside is not None:
            sent.setdefault(_META_KEY, inside)

        async def call(session: Any, more: Mapping[str, object]) -> Any:
            given = {**sent, **more} or None
            return await session.call_tool(
                name, arguments, _delta(self._calls.seconds_left()), progress_callback, meta=given
            )

        async def run() -> Any:
            own_key = current_key() if covered else None
            more = {} if own_key is None else {_META_KEY: own_key}
            attempt = partial(self._attempt, lambda session: call(session, more), (arguments, sent))
            return await self._calls.run(attempt, operation=operation, policy=policy)

        async def run_plain() -> object:
            result = await run()
            return result.model_dump(mode="json", by_alias=True, exclude_none=True)

        try:
            if self._effects is None or not covered:
                return await run()
            made = await self._effects.acall(
                name, run_plain, arguments or {}, key=key, again=again, direct=True
            )
            return _types.CallToolResult.model_validate(made)
        except FaultError as error:
            chosen = raises or self._raises
            if chosen == "nothing" and hasattr(error, "result"):
                return error.result
            return return_or_raise(error, chosen)

    async def list_tools(self, cursor: str | None = None) -> Any:
        """List the tools, with recovery."""
        return await self._read(lambda session: session.list_tools(cursor))

    async def list_resources(self, cursor: str | None = None) -> Any:
        """List the resources, with recovery."""
        return await self._read(lambda session: session.list_resources(cursor))

    async def list_prompts(self, cursor: str | None = None) -> Any:
        """List the prompts, with recovery."""
        return await self._read(lambda session: session.list_prompts(cursor))

    async def read_resource(self, uri: Any) -> Any:
        """Read a resource, with recovery."""
        return await self._read(lambda session: session.read_resource(uri))

    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None) -> Any:
        """Get a prompt, with recovery."""
        return await self._read(lambda session: session.get_prompt(name, arguments))

    async def _read(self, call: Callable[[Any], Awaitable[Any]]) -> Any:
        _ = self.session
        try:
            return await self._calls.run(partial(self._attempt, call, ()), operation=self._calls.traced(READ))
        except FaultError as error:
            return return_or_raise(error, self._raises)

    async def _list_operations(self) -> ToolOperations:
        async def listed(session: Any) -> ToolOperations:
            async def page(cursor: str | None = None) -> Any:
                return await session.list_tools(cursor)

            return operations_of(await list_all_tools(page))

        operations: ToolOperations = await self._attempt(listed, ())
        return operations

    async def _attempt(self, call: Callable[[Any], Awaitable[Any]], sent: tuple[object, ...]) -> Any:
        """Make one attempt, on an open connection and within its time."""
        connection = self._connection
        if connection is None or connection.broken:
            connection = await self._connect()
        try:
            check_text(*sent)
            with Limit(self._deadlines, self._calls.seconds_left()):
                result = await call(connection.session)
        except Exception as exc:  # noqa: BLE001 - every failure gets a typed error
            if _is_time_out(exc):
                exc = TimeoutError()
            error, expired = error_of(exc)
            if expired or _is_closed(exc):
                connection.broken = True
            error = trusted(error, own=error.own or self._own)
            raise error from error.__cause__
        if isinstance(result, _types.CallToolResult) and is_failed(result):
            raise trusted(failed_result(result), own=self._own)
        return result


class _Opened:
    """A transport and the session on it, as one client that is entered once."""

    def __init__(self, transport: Callable[[], Any], options: dict[str, Any]) -> None:
        self._transport, self._options = transport, options
        self._stack = AsyncExitStack()
        self.session: Any = None

    async def __aenter__(self) -> Self:
        streams = await self._stack.enter_async_context(self._transport())
        try:
            session = _session.ClientSession(streams[0], streams[1], **self._options)
            self.session = await self._stack.enter_async_context(session)
            await self.session.initialize()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)


def _recording_client(headers: Mapping[str, str]) -> Any:
    """Return an HTTP client that reports a failed request to the call that it belongs to."""

    class Recording(_httpx.AsyncClient):  # type: ignore[misc]
        async def send(self, request: Any, **options: Any) -> Any:
            plain: Any = _Sender(super().send)
            response: Any = await HttpRecorder(plain).send(request, **options)
            if request.method != "POST" or response.status_code < _FIRST_ERROR:
                return response
            # Version 1 raises for an error status in a task of its own, and the call would wait for its whole time.
            headers = {"content-type": "application/json"}
            return _httpx.Response(200, headers=headers, content=response.content, request=request)

    return Recording(headers=dict(headers), timeout=_httpx.Timeout(30.0, read=300.0), follow_redirects=True)


class _Sender:
    def __init__(self, send: Callable[..., Awaitable[Any]]) -> None:
        self.send = send


def _delta(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


def _is_time_out(exc: BaseException) -> bool:
    """Whether the SDK raised this error because the answer did not come in time: it has the number of HTTP's 408."""
    return isinstance(exc, MCPError) and exc.error.code == _TIME_OUT


def _is_closed(exc: BaseException) -> bool:
    if isinstance(exc, MCPError):
        return exc.error.code == _CLOSED and exc.error.message == "Connection closed"
    return type(exc).__name__ in {"ClosedResourceError", "BrokenResourceError", "EndOfStream"}
