"""
FastMCP servers and clients.

    from amends.bindings.fastmcp import guard

    guard(server)                       # a FastMCP server: failures are answered with AdCP errors

    from amends.bindings.fastmcp import Client

    async with Client(url) as client:   # in place of fastmcp.Client: typed errors, bounded recovery
        await client.call_tool("buy", {"id": 7})

For a client class of your own, put `Recovering` before its other bases.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

try:
    import fastmcp
except ImportError as missing:
    raise ImportError("amends.bindings.fastmcp needs an extra: pip install 'amends[fastmcp]'") from missing

from amends.core.wrong_calls import explains_wrong_calls
from amends.serving.versions import require

require("fastmcp", at_least=(4, 1), below=5, binding="amends.bindings.fastmcp", extra="fastmcp")

from fastmcp.client.transports import FastMCPTransport, StreamableHttpTransport  # noqa: E402
from fastmcp.exceptions import ToolError  # noqa: E402

from amends.bindings.fastmcp_background import (  # noqa: E402
    GET_TASK,
    guard_background_tools,
    without_exception_text,
)
from amends.bindings.mcp.callbacks import guard_callback  # noqa: E402
from amends.bindings.mcp.calls import CONNECT, READ, UNKNOWN, Calls, trace_meta  # noqa: E402
from amends.bindings.mcp.client_errors import (  # noqa: E402
    check_text,
    error_of,
    failed_result,
    not_connected,
)
from amends.bindings.mcp.guard import Context, FindMissing, Guard  # noqa: E402
from amends.bindings.mcp.handler_errors import Translate, absent_arguments, is_not_found, not_found  # noqa: E402
from amends.bindings.mcp.http_recorder import HttpRecorder  # noqa: E402
from amends.bindings.mcp.sdk_internals import fastmcp_server, is_closed, parse_result, session_task  # noqa: E402
from amends.bindings.mcp.tool_effects import ToolEffects  # noqa: E402
from amends.bindings.mcp.tool_options import check_tools  # noqa: E402
from amends.bindings.mcp.tools import ToolOperations, list_all_tools, operations_of  # noqa: E402
from amends.bindings.mcp.transport import default_http_client  # noqa: E402
from amends.core.fault import Fault  # noqa: E402
from amends.core.operation import Operation  # noqa: E402
from amends.core.policy import Policy  # noqa: E402
from amends.errors.base import FaultError  # noqa: E402
from amends.foreign.trust import is_own_address, trusted  # noqa: E402
from amends.recovery.incoming import MEMBER as LEFT  # noqa: E402
from amends.recovery.incoming import new_left  # noqa: E402
from amends.recovery.origins import PER_ORIGIN, PerOrigin  # noqa: E402
from amends.recovery.policies import TOOL  # noqa: E402
from amends.recovery.scope import time_left, tries_left  # noqa: E402
from amends.recovery.upstream import Upstream  # noqa: E402
from amends.serving.server_errors import OwnErrors, fault_for  # noqa: E402

if TYPE_CHECKING:
    from datetime import timedelta

    from fastmcp.client.client import CallToolResult
    from fastmcp.client.progress import ProgressHandler
    from fastmcp.utilities.versions import VersionSpec

    from amends.effects import Effects

__all__ = ["Client", "Recovering", "guard"]

T = TypeVar("T")
S = TypeVar("S", bound="fastmcp.FastMCP[object]")

_IN_ATTEMPT: ContextVar[object] = ContextVar("amends_fastmcp_attempt", default=None)
"""The client that makes an attempt now. FastMCP lists the tools to parse a result: that listing belongs to the attempt."""


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
    Guard a FastMCP server and return it. Tools may be registered before or after.

        server = guard(FastMCP("seats"))

    Args:
        server: the server; servers mounted on it are guarded too.
        show: whether the text of a ToolError, ResourceError or PromptError that an author raised on purpose is sent to
            the caller.
        translate: returns the fault for any other exception.
        errors: exception classes of yours with the code that each means, for this server alone: `{SeatTaken: "CONFLICT"}`.
        code_prefix: your vendor name: with "ACME", your own code OUT_OF_STOCK is sent as X_ACME_OUT_OF_STOCK.
        effects: the ledger that runs tools once per key, as in `amends.bindings.mcp.guard`.
        tools: the names of further tools that it covers.
        scope: returns the scope of derived keys for a request context.
        wrapper: the names of tools that make one call of another service and do nothing else, as in
            `amends.bindings.mcp.guard`.

    """
    if not isinstance(server, fastmcp.FastMCP):
        raise TypeError(f"guard takes a FastMCP server, not {type(server).__name__}")
    guarded = Guard(
        fastmcp_server(server),
        show=show,
        translate=translate,
        own_errors=OwnErrors.of(errors, code_prefix),
        get_tool=server.get_tool,
        ledger=None if effects is None else ToolEffects(effects, tools, scope),
        change={GET_TASK: without_exception_text},
        wrapper=check_tools(wrapper, "wrapper"),
    )
    if guarded.install():
        guarded.wrap(server, "call_tool", find_missing=_find_missing_tool, error=ToolError)
        guarded.wrap(server, "read_resource")
        guarded.wrap(server, "render_prompt", find_missing=_find_missing_prompt(server))
        guard_background_tools(guarded, server)
    return server


async def _find_missing_tool(exc: BaseException, *_: object, **__: object) -> Fault | None:
    return not_found("tool") if is_not_found(exc) else None


def _find_missing_prompt(server: fastmcp.FastMCP[object]) -> FindMissing:
    async def find_missing(
        exc: BaseException,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *_: object,
        version: VersionSpec | None = None,
        **__: object,
    ) -> Fault | None:
        if is_not_found(exc):
            return not_found("prompt")
        prompt = await server.get_prompt(name, version)
        return None if prompt is None else absent_arguments(prompt.arguments, arguments)

    return find_missing


class Recovering:
    """
    A mixin for classes derived from `fastmcp.Client`: calls recover, and raise typed errors.

    `call_tool_mcp` recovers and returns the last result as it was received. `call_tool` raises the typed error of a
    failed result, or returns the result with `raise_on_error=False`.

    Use it for a client class of your own; otherwise use `Client`.

        class ShopClient(Recovering, fastmcp.Client):
            async def buy(self, id: int) -> object:
                return (await self.call_tool("buy", {"id": id})).data

        async with ShopClient(url, policy=Policy(deadline=30)) as shop:
            await shop.buy(7)
    """

    def __init__(
        self,
        *args: Any,
        policy: Policy = TOOL,
        upstream: Upstream | PerOrigin | None = PER_ORIGIN,
        own: bool = False,
        refresh: Callable[..., object] | None = None,
        verify: Callable[..., object] | None = None,
        limit: float | None = 300.0,
        **options: Any,
    ) -> None:
        """
        Args:
            args: the client's own arguments.
            policy: the bounds of recovery; its `deadline` limits each call, whatever the server does.
            upstream: the state shared with other callers of the same server. By default all clients of one URL share it,
                with a scope per tool; a client with credentials of its own has its own. None turns it off.
            own: the server is part of our own system: a server that calls it passes its failures on as they were read.
            refresh: renews credentials that were refused, as in `recover`.
            verify: finds out whether a call had its effect, as in `recover`; its result is an MCP CallToolResult.
            limit: seconds that one attempt may take, if the policy's deadline is not shorter.
            options: the client's own options.

        """
        for name in ("sampling_handler", "elicitation_handler"):
            if options.get(name) is not None:
                options[name] = guard_callback(options[name], name)
        super().__init__(*args, **options)
        transport = getattr(self, "transport", None)
        self._vendor = upstream.vendor if isinstance(upstream, Upstream) else None
        self._own = own or is_own_address(getattr(transport, "url", None))
        # To a server in this process, messages are passed on as objects.
        self._encodes = not isinstance(transport, FastMCPTransport)
        self._calls = Calls(
            policy=policy,
            upstream=upstream,
            address=getattr(transport, "url", None),
            shared=not (getattr(transport, "headers", None) or getattr(transport, "auth", None)),
            refresh=refresh,
            verify=verify,
            limit=limit,
        )
        if isinstance(transport, StreamableHttpTransport):
            transport.httpx_client_factory = _recording_factory(transport)

    async def __aenter__(self) -> Any:
        """Connect, with recovery."""
        enter = super().__aenter__  # type: ignore[misc]

        async def attempt() -> Any:
            try:
                async with asyncio.timeout(self._calls.seconds_left()):
                    return await enter()
            except Exception as exc:
                raise not_connected(exc) from exc

        return await self._calls.run(attempt, operation=CONNECT)

    async def call_tool_mcp(
        self,
        name: str,
        arguments: dict[str, object],
        *args: Any,
        operation: Operation | None = None,
        policy: Policy | None = None,
        **options: Any,
    ) -> Any:
        """As `fastmcp.Client.call_tool_mcp`, with recovery; returns the last result, also a failed one."""
        return await self._call(name, arguments, args, options, operation, policy)

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, object] | None = None,
        *,
        version: str | None = None,
        timeout: timedelta | float | None = None,  # noqa: ASYNC109 - the name in fastmcp.Client
        progress_handler: ProgressHandler | None = None,
        raise_on_error: bool = True,
        meta: dict[str, object] | None = None,
        operation: Operation | None = None,
        policy: Policy | None = None,
    ) -> CallToolResult:
        """
        As `fastmcp.Client.call_tool`, with recovery.

        Raises:
            FaultError: the typed error.

        """
        request_meta = {**trace_meta(self._calls.traced(operation or UNKNOWN)), **(meta or {})}
        if version is not None:
            given = request_meta.get("fastmcp")
            request_meta["fastmcp"] = {**(given if isinstance(given, Mapping) else {}), "version": version}
        options: dict[str, object] = {
            "timeout": timeout,
            "progress_handler": progress_handler,
            "meta": request_meta or None,
        }
        result: CallToolResult = await self._call(
            name, arguments or {}, (), options, operation, policy, raises=raise_on_error, parsed=True
        )
        return result

    async def _call(
        self,
        name: str,
        arguments: dict[str, object],
        args: tuple[object, ...],
        options: dict[str, object],
        operation: Operation | None,
        policy: Policy | None,
        *,
        raises: bool = False,
        parsed: bool = False,
    ) -> Any:
        """
        Call a tool with recovery.

        Args:
            name: the tool.
            arguments: its arguments.
            args: further positional arguments of `fastmcp.Client.call_tool_mcp`.
            options: its keyword arguments.
            operation: whether a repeat is safe.
            policy: replaces the client's policy.
            raises: raise the typed error of a failed result, instead of returning the result.
            parsed: return the result as `fastmcp.Client.call_tool` does, not as it was received.

        """
        self._require_entered()
        if operation is None:
            operation = self._calls.operation_of(name, arguments) or await self._calls.list_operation(
                name, arguments, partial(self._attempt, _list_operations), policy
            )

        async def call(client: Recovering) -> object:
            sent, own_args = options, args
            stated, call_id = new_left(tries_left((policy or self._calls.policy).attempts), time_left())
            if stated is not None:
                # The meta is the third of `call_tool_mcp`'s further positional arguments.
                given = args[2] if len(args) > 2 else options.get("meta")
                meta = {**(given if isinstance(given, Mapping) else {}), LEFT: stated}
                if len(args) > 2:
                    own_args = (*args[:2], meta, *args[3:])
                else:
                    sent = {**options, "meta": meta}
            if self._encodes:
                check_text(name, arguments, own_args, sent)
            result = await _plain(client, "call_tool_mcp")(name, arguments, *own_args, **sent)
            if getattr(result, "is_error", False):
                raise trusted(failed_result(result, self._vendor), own=self._own, call=call_id)
            # Parsing may list the tools, so it is done with the session of the call.
            return await parse_result(client, name, result) if parsed else result

        try:
            traced = self._calls.traced(operation)
            result = await self._calls.run(partial(self._attempt, call), operation=traced, policy=policy)
        except FaultError as error:
            failed = getattr(error, "result", None)
            if raises or failed is None:
                raise
            return await parse_result(self, name, failed) if parsed else failed
        return result

    async def read_resource_mcp(self, *args: Any, **options: Any) -> Any:
        """As `fastmcp.Client.read_resource_mcp`, with recovery."""
        return await self._read("read_resource_mcp", *args, **options)

    async def get_prompt_mcp(self, *args: Any, **options: Any) -> Any:
        """As `fastmcp.Client.get_prompt_mcp`, with recovery."""
        return await self._read("get_prompt_mcp", *args, **options)

    async def list_tools_mcp(self, *args: Any, **options: Any) -> Any:
        """As `fastmcp.Client.list_tools_mcp`, with recovery; so is `list_tools`."""
        return await self._read("list_tools_mcp", *args, **options)

    async def list_resources_mcp(self, *args: Any, **options: Any) -> Any:
        """As `fastmcp.Client.list_resources_mcp`, with recovery; so is `list_resources`."""
        return await self._read("list_resources_mcp", *args, **options)

    async def list_resource_templates_mcp(self, *args: Any, **options: Any) -> Any:
        """As `fastmcp.Client.list_resource_templates_mcp`, with recovery; so is `list_resource_templates`."""
        return await self._read("list_resource_templates_mcp", *args, **options)

    async def list_prompts_mcp(self, *args: Any, **options: Any) -> Any:
        """As `fastmcp.Client.list_prompts_mcp`, with recovery; so is `list_prompts`."""
        return await self._read("list_prompts_mcp", *args, **options)

    async def complete_mcp(self, *args: Any, **options: Any) -> Any:
        """As `fastmcp.Client.complete_mcp`, with recovery; so is `complete`."""
        return await self._read("complete_mcp", *args, **options)

    async def _read(self, method: str, *args: object, **options: object) -> Any:
        if _IN_ATTEMPT.get() is self:
            return await _plain(self, method)(*args, **options)

        async def call(client: Recovering) -> object:
            if self._encodes:
                check_text(args, options)
            return await _plain(client, method)(*args, **options)

        self._require_entered()
        operation = self._calls.traced(READ)
        return await self._calls.run(partial(self._attempt, call), operation=operation)

    def _require_entered(self) -> None:
        if session_task(self) is None:
            # The property raises FastMCP's own RuntimeError.
            _ = self.session  # type: ignore[attr-defined]

    async def _attempt(self, call: Callable[[Recovering], Awaitable[T]]) -> T:
        """
        Make one attempt within its time, on the client's session; if it is lost, on a new one for this attempt alone.

        Raises:
            FaultError: the attempt failed.

        """
        try:
            async with asyncio.timeout(self._calls.seconds_left()):
                if not self._is_lost():
                    return await _attempt_on(self, call)
                async with self.new() as client:  # type: ignore[attr-defined]
                    return await _attempt_on(client, call)
        except Exception as exc:  # noqa: BLE001 - every failure gets a typed error
            error, _ = error_of(exc, self._vendor)
            error = trusted(error, own=error.own or self._own)
            raise error from error.__cause__

    def _is_lost(self) -> bool:
        """Whether the session has ended while the client is in use."""
        task = session_task(self)
        if task is None:
            return False
        return task.done() or (self.is_connected() and is_closed(self.session))  # type: ignore[attr-defined]


async def _attempt_on(client: Recovering, call: Callable[[Recovering], Awaitable[T]]) -> T:
    token = _IN_ATTEMPT.set(client)
    try:
        return await call(client)
    finally:
        _IN_ATTEMPT.reset(token)


def _plain(client: Recovering, method: str) -> Callable[..., Awaitable[Any]]:
    """Return a method of the client's other bases, without recovery."""
    found: Callable[..., Awaitable[Any]] = getattr(super(Recovering, client), method)
    return found


async def _list_operations(client: Recovering) -> ToolOperations:
    return operations_of(await list_all_tools(_plain(client, "list_tools_mcp")))


def _recording_factory(transport: StreamableHttpTransport) -> Any:
    """Return a factory that wraps the HTTP clients of a transport in an HttpRecorder."""
    chosen = transport.httpx_client_factory
    if chosen is None:
        verify = {} if transport.verify is None else {"verify": transport.verify}
        return lambda **options: HttpRecorder(default_http_client(**verify, **options))
    return lambda **options: HttpRecorder(chosen(**options))


class Client(Recovering, fastmcp.Client[Any]):
    """
    A client to use in place of `fastmcp.Client`: it takes the same arguments, and those of `Recovering`.

        async with Client("https://shop.example/mcp") as client:
            seats = await client.call_tool("free_seats", {"train": 2})
    """
