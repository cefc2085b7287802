"""
The client: `mcp.Client` with typed errors and bounded recovery.

A call is repeated if it surely had no effect, if the tool's annotations say that it is read-only or idempotent, or if it
has an idempotency key. A lost connection is opened again if that is possible: for a URL, a command, a server in this
process, or a function that returns a new transport.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import httpx2
import mcp
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    CallToolResult,
    CompleteResult,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PromptReference,
    ReadResourceResult,
    ResourceTemplateReference,
)

from amends.bindings.mcp.callbacks import guard_callback
from amends.bindings.mcp.calls import CONNECT, READ, Calls, trace_meta
from amends.bindings.mcp.client_errors import (
    check_text,
    error_of,
    failed_result,
    not_connected,
)
from amends.bindings.mcp.connection_task import ConnectionTask
from amends.bindings.mcp.sdk_internals import is_closed
from amends.bindings.mcp.tool_effects import META_KEY, changes_something, restore
from amends.bindings.mcp.tool_options import check_tools
from amends.bindings.mcp.tools import ToolOperations, list_all_tools, operations_of
from amends.bindings.mcp.transport import Target, cache_for
from amends.core.enums import Executed, Recovery
from amends.core.fault import Fault, Origin
from amends.core.operation import Operation
from amends.core.policy import Policy
from amends.core.wrong_calls import explains_wrong_calls
from amends.errors.base import FaultError
from amends.foreign.trust import is_own_address, trusted
from amends.http.raising import check_raises, return_or_raise
from amends.recovery.effect_context import current_key, request_key
from amends.recovery.incoming import MEMBER as LEFT
from amends.recovery.incoming import NOTHING, left, new_left
from amends.recovery.origins import PER_ORIGIN, PerOrigin
from amends.recovery.policies import TOOL
from amends.recovery.scope import SCOPE, time_left, tries_left
from amends.recovery.upstream import Upstream
from amends.serving.deadlines import Deadlines, Limit
from amends.serving.tracing import incoming

if TYPE_CHECKING:
    from amends.effects import Effects

__all__ = ["Client"]

P = ParamSpec("P")
T = TypeVar("T")

_SIGN_IN = 300.0
"""Seconds that an interactive sign-in may take, without a limit of the client."""
_CALLBACKS = ("sampling_callback", "elicitation_callback", "list_roots_callback")


@explains_wrong_calls
@dataclass
class Client(mcp.Client):
    """
    A client to use in place of `mcp.Client`: it takes the same arguments, and those below.

    Every failed call raises the typed error of its fault, with `.fault`, `.decision` and `.history`; the error of a
    failed tool has the `.result` that was received. With `raises="nothing"` the result is returned instead, as
    `mcp.Client` does.

        async with Client("https://seats.example/mcp", policy=Policy(deadline=30)) as client:
            result = await client.call_tool("free_seats", {"train": 2})
    """

    policy: Policy = field(default=TOOL, kw_only=True)
    """The bounds of recovery; its `deadline` limits each call, whatever the server does."""
    upstream: Upstream | PerOrigin | None = field(default=PER_ORIGIN, kw_only=True)
    """
    The state shared with other callers of the same server. By default all clients of one URL share it, with a scope per tool; a
    client with an `http_client` or `refresh` of its own, and so with credentials of its own, has its own. None turns it off.
    """
    own: bool = field(default=False, kw_only=True)
    """The server is part of our own system: a server that calls it passes its failures on as they were read."""
    raises: str = field(default="fault", kw_only=True)
    """
    What a failure raises: "fault", our typed error; "original", the SDK's exception with the fault attached (a failed result
    has none, so it raises the typed error); "nothing", a failed result is returned, and other failures raise the SDK's own.
    """
    refresh: Callable[..., object] | None = field(default=None, kw_only=True)
    """Renews credentials that were refused, as in `recover`."""
    verify: Callable[..., object] | None = field(default=None, kw_only=True)
    """Finds out whether a call had its effect, as in `recover`; its result is a CallToolResult."""
    limit: float | None = field(default=300.0, kw_only=True)
    """Seconds that one attempt may take, if neither the policy nor `read_timeout_seconds` is shorter."""
    connecting: float = field(default=30.0, kw_only=True)
    """Seconds that opening a connection may take; with an HTTP client that signs a user in (OAuth), at least `limit`."""
    closing: float = field(default=5.0, kw_only=True)
    """Seconds that closing a connection may take before it is cancelled."""
    effects: Effects | None = field(default=None, kw_only=True)
    """The ledger that makes calls once: of all tools that do not say in the server's listing that they only read."""
    effect_tools: Collection[str] = field(default=(), kw_only=True)
    """The names of tools that the ledger covers whatever the listing says."""
    http_client: httpx2.AsyncClient | None = field(default=None, kw_only=True)
    """For a URL: the `httpx2.AsyncClient` to use. It is not closed."""

    _connection: ConnectionTask | None = field(init=False, default=None, repr=False, compare=False)
    _calls: Calls = field(init=False, repr=False, compare=False)
    _target: Target = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_raises(self.raises)
        self._covered = set(check_tools(self.effect_tools) or ())
        self._calls = Calls(
            policy=self.policy,
            upstream=self.upstream,
            address=self.server,
            shared=self.http_client is None,
            refresh=self.refresh,
            verify=self.verify,
            limit=self.limit,
        )
        self._target = Target.of(self.server, self.http_client)
        self.cache = cache_for(self.server, self.cache)
        self._lock = asyncio.Lock()
        self._deadlines = Deadlines()
        self._entered = self._closed = False
        super().__post_init__()

    # ---------------------------------------------------------------------------------------------- connections
    #
    # Each connection has a plain `mcp.Client` of its own, because that one can be entered once. The methods that are not
    # overridden here use `session`, which is the session of the current connection.

    async def __aenter__(self) -> Self:
        """Connect, with recovery."""
        if self._entered:
            raise RuntimeError("Client is already entered; cannot reenter")
        self._entered = True
        try:
            await self._calls.run(self._connect_again, operation=CONNECT)
        except BaseException:
            self._entered = False
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Disconnect, within a bounded time."""
        # With the lock, because a call that is reconnecting would leave its connection open.
        async with self._lock:
            self._closed = True
            connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
        # A server in this process does not end the calls of a client that has left.
        self._deadlines.close()

    @property
    def session(self) -> ClientSession:
        """The session of the current connection. Raises RuntimeError outside of `async with`."""
        return self._current().client.session

    def listen(self, *args: Any, **options: Any) -> Any:
        """As `mcp.Client.listen`, on the current connection."""
        return self._current().client.listen(*args, **options)

    def _current(self) -> ConnectionTask:
        if self._connection is None:
            raise _not_entered()
        return self._connection

    async def _connect_again(self) -> ConnectionTask:
        """Open a connection in place of a lost one; one call at a time does so, and the others wait for it."""
        async with self._lock:
            if self._closed:
                raise FaultError.from_fault(_CLOSED)
            connection = self._connection
            if connection is not None:
                if connection.alive:
                    return connection
                if not self._target.renewable:
                    raise not_connected(ConnectionResetError())
                await connection.close()
            self._connection = await self._open_connection()
            return self._connection

    async def _open_connection(self) -> ConnectionTask:
        # A new session has no listing; if it is made before a call, the SDK does not make it after the call.
        self._calls.forget()
        options = {
            each.name: getattr(self, each.name)
            for each in fields(mcp.Client)
            if each.init and each.name != "server"
        }
        for name in _CALLBACKS:
            if options[name] is not None:
                options[name] = guard_callback(options[name], name)
        left = self._calls.seconds_left()
        limit = self._connecting_limit()
        try:
            connection = ConnectionTask(mcp.Client(self._target.transport(), **options), self.closing)
            await connection.wait_open(limit if left is None else min(limit, left))
        except Exception as exc:
            raise not_connected(exc) from exc
        return connection

    def _connecting_limit(self) -> float:
        """Return the seconds for opening a connection: a person who signs in needs more than a server."""
        if isinstance(getattr(self.http_client, "auth", None), OAuthClientProvider):
            return max(self.connecting, _SIGN_IN if self.limit is None else self.limit)
        return self.connecting

    # ---------------------------------------------------------------------------------------------------- calls

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: float | None = None,
        progress_callback: ProgressFnT | None = None,
        *,
        operation: Operation | None = None,
        policy: Policy | None = None,
        raises: str | None = None,
        key: str | None = None,
        again: str | None = None,
        **options: Any,
    ) -> CallToolResult:
        """
        As `mcp.Client.call_tool`, with recovery.

        Args:
            name: the tool.
            arguments: its arguments.
            read_timeout_seconds: for each round of an attempt.
            progress_callback: called with progress, in each attempt.
            operation: whether a repeat is safe; replaces what the tool's annotations say.
            policy: replaces the client's policy.
            raises: replaces the client's setting.
            key: with a ledger, the key of this call; it is sent in `_meta["amends/key"]`.
            again: with a ledger, the reason for making the same call once more.
            options: the SDK's other arguments: `meta`, `input_responses`, `request_state`.

        Raises:
            FaultError: the typed error.

        """
        if self._connection is None:
            raise _not_entered()
        if operation is None:
            operation = self._calls.operation_of(name, arguments) or await self._calls.list_operation(
                name, arguments, self._list_operations, policy
            )
        covered = self.effects is not None and (
            key is not None or name in self._covered or not await self._only_reads(name, arguments, policy)
        )
        # Inside an effect of the caller, the server gets a key of that effect.
        sent_key = None if covered else request_key("tools/call", name)
        if sent_key is not None:
            options = _with_meta(options, {META_KEY: sent_key})

        if operation.trace_id or incoming() is not None:
            operation = self._calls.traced(operation)
            options = _with_meta(options, trace_meta(operation))

        request = name, arguments, read_timeout_seconds, progress_callback
        try:
            if self.effects is not None and covered:
                run = partial(self._run_keyed, request, options, operation, policy)
                made = await self.effects.acall(name, run, arguments or {}, key=key, again=again, direct=True)
                result: Any = restore(made)
            else:
                attempt = partial(self._attempt, mcp.Client.call_tool, request, options, policy)
                result = await self._calls.run(attempt, operation=operation, policy=policy)
        except FaultError as error:
            return self._give_up(error, raises or self.raises)  # type: ignore[no-any-return]
        return result  # type: ignore[no-any-return]

    def _run_keyed(
        self,
        request: tuple[object, ...],
        options: dict[str, Any],
        operation: Operation,
        policy: Policy | None,
    ) -> Awaitable[object]:
        """Call a tool inside an effect, with the key of the effect."""
        key = current_key()
        keyed = options if key is None else _with_meta(options, {META_KEY: key})
        attempt = partial(self._attempt, mcp.Client.call_tool, request, keyed, policy)
        return self._calls.run(attempt, operation=operation, policy=policy)

    async def _only_reads(self, name: str, arguments: dict[str, Any] | None, policy: Policy | None) -> bool:
        """Return whether a tool's annotations say that it only reads; lists the tools if that was not done."""
        listed = self._calls.operation_of(name, arguments)
        if listed is None:
            # The caller gave the operation.
            try:
                listed = await self._calls.list_operation(name, arguments, self._list_operations, policy)
            except FaultError:
                return False
        return listed.read_only

    async def _list_operations(self) -> ToolOperations:
        async def list_operations(client: mcp.Client) -> ToolOperations:
            tools = await list_all_tools(client.list_tools)
            self._covered.update(tool.name for tool in tools if changes_something(tool))
            return operations_of(tools)

        return await self._attempt(list_operations, (), {})

    async def list_tools(self, **options: Any) -> ListToolsResult:
        """As `mcp.Client.list_tools`, with recovery."""
        result = await self._read(mcp.Client.list_tools, **options)
        self._covered.update(tool.name for tool in result.tools if changes_something(tool))
        self._calls.add(operations_of(result.tools))
        return result

    async def list_resources(self, **options: Any) -> ListResourcesResult:
        """As `mcp.Client.list_resources`, with recovery."""
        return await self._read(mcp.Client.list_resources, **options)

    async def list_resource_templates(self, **options: Any) -> ListResourceTemplatesResult:
        """As `mcp.Client.list_resource_templates`, with recovery."""
        return await self._read(mcp.Client.list_resource_templates, **options)

    async def list_prompts(self, **options: Any) -> ListPromptsResult:
        """As `mcp.Client.list_prompts`, with recovery."""
        return await self._read(mcp.Client.list_prompts, **options)

    async def read_resource(self, uri: str, **options: Any) -> ReadResourceResult:
        """As `mcp.Client.read_resource`, with recovery."""
        return await self._read(mcp.Client.read_resource, uri, **options)

    async def get_prompt(
        self, name: str, arguments: dict[str, str] | None = None, **options: Any
    ) -> GetPromptResult:
        """As `mcp.Client.get_prompt`, with recovery."""
        return await self._read(mcp.Client.get_prompt, name, arguments, **options)

    async def complete(
        self,
        ref: ResourceTemplateReference | PromptReference,
        argument: dict[str, str],
        context_arguments: dict[str, str] | None = None,
    ) -> CompleteResult:
        """As `mcp.Client.complete`, with recovery."""
        return await self._read(mcp.Client.complete, ref, argument, context_arguments)

    async def _read(
        self, method: Callable[Concatenate[mcp.Client, P], Awaitable[T]], *args: P.args, **options: P.kwargs
    ) -> T:
        self._current()
        operation, sent = self._calls.traced(READ), dict[str, Any](options)
        if operation.trace_id and (method in _CALLING or method in _READING):
            sent = _with_meta(sent, trace_meta(operation))
        try:
            result: T = await self._calls.run(partial(self._attempt, method, args, sent), operation=operation)
        except FaultError as error:
            return self._give_up(error, self.raises)  # type: ignore[no-any-return]
        return result

    @property
    def _is_own(self) -> bool:
        return self.own or is_own_address(self.server)

    @property
    def _vendor(self) -> str | None:
        return self.upstream.vendor if isinstance(self.upstream, Upstream) else None

    def _give_up(self, error: FaultError, raises: str) -> Any:
        """Return the failed result, or raise, as the option says."""
        if raises == "nothing" and hasattr(error, "result"):
            return error.result
        return return_or_raise(error, raises)

    async def _attempt(
        self,
        method: Callable[..., Awaitable[T]],
        args: tuple[object, ...],
        options: dict[str, Any],
        policy: Policy | None = None,
    ) -> T:
        """
        Make one attempt, on an open connection and within its time: `method(client, *args, **options)`.

        `policy` replaces the client's; the attempt states how many calls it leaves.

        Raises:
            FaultError: the attempt failed.

        """
        connection = self._connection
        if connection is None or connection.broken or is_closed(connection.session):
            connection = await self._connect_again()
        seconds, call = self._calls.seconds_left(), None
        if method in _CALLING or (method in _READING and _is_limited()):
            stated, call = new_left(tries_left((policy or self.policy).attempts), time_left())
            if stated is not None:
                options = {**options, "meta": {**(options.get("meta") or {}), LEFT: stated}}
        try:
            if not self._target.in_process:
                check_text(args, options)
            with Limit(self._deadlines, seconds):
                result = await method(connection.client, *args, **options)
        except Exception as exc:  # noqa: BLE001 - every failure gets a typed error
            ended = self._closed and isinstance(exc, TimeoutError)
            error, expired = error_of(ConnectionResetError() if ended else exc, self._vendor)
            if expired or (
                not self._target.http and isinstance(exc, MCPError) and exc.code == CONNECTION_CLOSED
            ):
                connection.broken = True
            error = trusted(error, own=error.own or self._is_own, call=call)
            raise error from error.__cause__
        if isinstance(result, CallToolResult) and result.is_error:
            failure = failed_result(result, self._vendor)
            raise trusted(failure, own=self._is_own, call=call)
        return result


_CALLING = frozenset({mcp.Client.call_tool, mcp.Client.get_prompt})
_READING = frozenset({mcp.Client.read_resource})
"""The SDK answers these from its cache only if the request has no `_meta`, so that is sent only where the caller is limited."""


def _is_limited() -> bool:
    """Return whether a caller, or an operation that makes a repeat, has limited tries or time."""
    scope = SCOPE.get()
    return (scope is not None and scope.tries is not None) or left() is not NOTHING


_CLOSED = Fault(
    code="SERVICE_UNAVAILABLE",
    message="The client was closed while the call was waiting for its repeat",
    recovery=Recovery.TERMINAL,
    executed=Executed.MAYBE,
    origin=Origin("mcp", None, "transport"),
)
"""No attempt was made, but an earlier one of the same call may have had its effect."""


def _not_entered() -> RuntimeError:
    return RuntimeError("Client must be used within an async context manager")


def _with_meta(options: dict[str, Any], members: dict[str, str]) -> dict[str, Any]:
    """Return the options of a call with these members in its `_meta`, except those that the caller chose."""
    return {**options, "meta": {**members, **(options.get("meta") or {})}}
