"""
The client: `mcp.Client`, with typed errors and recovery within bounds.

What may be repeated is decided by the tool's annotations (read-only, idempotent) or an idempotency key; what may have
happened and is neither is never repeated. A connection that died is made anew where that is possible: for a URL, a
command, a server in this process, or a function that gives a fresh transport.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import mcp
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, CallToolResult

from amends.bindings.mcp.calls import CONNECTING, READING, Calls, Passed, unpassed
from amends.bindings.mcp.client_errors import error_of, failed_result, not_connected, untouched
from amends.bindings.mcp.connection_task import Link
from amends.bindings.mcp.deadlines import Watch
from amends.bindings.mcp.tools import Promises, every_tool, promises
from amends.bindings.mcp.transport import Target, cache_for
from amends.core.operation import Operation
from amends.core.policy import Policy
from amends.errors.base import FaultError
from amends.recovery.clock import CLOCK
from amends.recovery.policies import ADCP
from amends.recovery.scope import SCOPE
from amends.recovery.upstream import Upstream

__all__ = ["Client"]


@dataclass
class Client(mcp.Client):
    """
    In place of `mcp.Client`: the same arguments, and those below.

    Every call raises the typed error of its failure, with `.fault`, `.decision`, `.history`, and for a tool that failed
    the `.result` as it came; `errors="return"` gives that back instead, as `mcp.Client` does.
    """

    policy: Policy = field(default=ADCP, kw_only=True)
    """How far recovery may go; its `deadline` bounds each call, whatever the server does."""
    upstream: Upstream | None = field(default=None, kw_only=True)
    """What is shared with the other callers of the same server."""
    errors: str = field(default="raise", kw_only=True)
    """"raise" typed errors, or "return" results that failed."""
    refresh: Callable[..., Any] | None = field(default=None, kw_only=True)
    """Renews credentials after they were refused, as in `recover`."""
    verify: Callable[..., Any] | None = field(default=None, kw_only=True)
    """Looks whether a call that may have happened did, as in `recover`; a result is a CallToolResult."""
    limit: float | None = field(default=300.0, kw_only=True)
    """Seconds one attempt may take where neither the policy nor `read_timeout_seconds` says less."""
    connecting: float = field(default=30.0, kw_only=True)
    """Seconds a connection may take to stand."""
    closing: float = field(default=5.0, kw_only=True)
    """Seconds to close a connection politely."""
    http_client: Any = field(default=None, kw_only=True)
    """For a URL: the `httpx2.AsyncClient` to use. It stays open."""

    _link: Link | None = field(init=False, default=None, repr=False, compare=False)
    _calls: Calls = field(init=False, repr=False, compare=False)
    _target: Target = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._calls = Calls(
            policy=self.policy,
            upstream=self.upstream,
            errors=self.errors,
            refresh=self.refresh,
            verify=self.verify,
            limit=self.limit,
        )
        given = self.server
        self._target = Target.of(given, self.http_client)
        self.cache = cache_for(given, self.cache)
        self.server = self._target.transport
        try:
            super().__post_init__()
        finally:
            self.server = given
        self._lock = asyncio.Lock()
        self._watch = Watch()

    # ---------------------------------------------------------------------------------------------- connections

    async def __aenter__(self) -> Self:
        """Connect, with recovery."""
        if self._entered:
            raise RuntimeError("Client is already entered; cannot reenter")

        async def attempt(left: float | None) -> None:
            await self._connected(left)

        await self._calls.run(attempt, CONNECTING)
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Disconnect, within bounds."""
        link, self._link = self._link, None
        if link is not None:
            await link.close()
        self._watch.stop()
        self._session = None

    async def _connected(self, within: float | None) -> Link:
        """The connection, made anew where it died."""
        link = self._link
        if link is not None and link.alive:
            return link
        async with self._lock:
            link = self._link
            if link is not None and link.alive:
                return link
            if link is not None:
                if not self._target.renewable:
                    raise not_connected(ConnectionResetError())
                self._link = None
                await link.close()
            return await self._connect_anew(within)

    async def _connect_anew(self, within: float | None) -> Link:
        limit = self.connecting if within is None else min(self.connecting, within)
        self._entered, self._session, self._exit_stack = False, None, None
        # The new session knows no tools; listing them before a call is what keeps it from doing so after one.
        self._calls.forget()
        link = Link(super().__aenter__, super().__aexit__, self.closing)
        try:
            await link.opened(limit)
        except Exception as exc:
            self._entered = False
            raise not_connected(exc) from exc
        link.dispatcher = getattr(self._session, "_dispatcher", None)
        self._link = link
        return link

    # -------------------------------------------------------------------------------------------------- calling

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: float | None = None,
        progress_callback: Any = None,
        *,
        operation: Operation | None = None,
        policy: Policy | None = None,
        errors: str | None = None,
        **options: Any,
    ) -> CallToolResult:
        """
        As `mcp.Client.call_tool`, with recovery.

        Args:
            name: the tool.
            arguments: its arguments.
            read_timeout_seconds: for each round of an attempt.
            progress_callback: hears of progress, in each attempt.
            operation: whether a repeat is safe, where you know better than the tool's annotations.
            policy: another one for this call.
            errors: another choice for this call.
            options: the SDK's other arguments: `meta`, `input_responses`, `request_state`.

        Raises:
            FaultError: the typed error.

        """
        calls, link = self._calls, self._link
        call, failed, sent = super().call_tool, None, 0.0
        if (
            operation is None
            and name in calls.at_once
            and policy is None
            and link is not None
            and SCOPE.get() is None
            and link.alive
        ):
            # The usual call, without anything built around it: what follows is for those that fail.
            sent, watch, limit = CLOCK.now(), self._watch, self.limit
            task = None if limit is None else watch.begin(limit)
            try:
                result = await call(name, arguments, read_timeout_seconds, progress_callback, **options)
            except BaseException as exc:  # noqa: BLE001 - what is no failure is raised again there
                failed = self._ended(exc, task, link)
            else:
                if task is not None:
                    watch.end(task, cancelled=False)
                if not result.is_error:
                    return result
                failed = failed_result(result)
        if link is None:
            _ = self.session
        if operation is None:
            operation = calls.known(name, arguments) or await calls.promised(
                name, arguments, self._listed, policy
            )
        send = partial(call, name, arguments, read_timeout_seconds, progress_callback, **options)
        first = None if failed is None else (sent, failed)
        found: CallToolResult = unpassed(
            await calls.run(self._tool(send), operation, policy=policy, errors=errors, first=first)
        )
        return found

    def _tool(self, send: Callable[[], Awaitable[Any]]) -> Callable[[float | None], Awaitable[Any]]:
        """An attempt at a tool call, which fails where its result says so."""

        async def attempt(left: float | None) -> Any:
            result = await self._sent(send, left)
            if result.__class__ is CallToolResult and result.is_error:
                raise failed_result(result)
            return result

        return attempt

    async def _listed(self, left: float | None) -> Any:
        """What the tools promise, in one attempt."""
        listing = super().list_tools

        async def tools() -> Promises:
            return promises(await every_tool(listing))

        return await self._sent(tools, left)

    async def list_tools(self, **options: Any) -> Any:
        """As `mcp.Client.list_tools`, with recovery."""
        result = await self._read(super().list_tools, **options)
        self._calls.add(promises(result.tools))
        return result

    async def list_resources(self, **options: Any) -> Any:
        """As `mcp.Client.list_resources`, with recovery."""
        return await self._read(super().list_resources, **options)

    async def list_resource_templates(self, **options: Any) -> Any:
        """As `mcp.Client.list_resource_templates`, with recovery."""
        return await self._read(super().list_resource_templates, **options)

    async def list_prompts(self, **options: Any) -> Any:
        """As `mcp.Client.list_prompts`, with recovery."""
        return await self._read(super().list_prompts, **options)

    async def read_resource(self, uri: str, **options: Any) -> Any:
        """As `mcp.Client.read_resource`, with recovery."""
        return await self._read(super().read_resource, uri, **options)

    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None, **options: Any) -> Any:
        """As `mcp.Client.get_prompt`, with recovery."""
        return await self._read(super().get_prompt, name, arguments, **options)

    async def complete(self, *args: Any, **options: Any) -> Any:
        """As `mcp.Client.complete`, with recovery."""
        return await self._read(super().complete, *args, **options)

    async def _read(self, call: Callable[..., Awaitable[Any]], *args: Any, **options: Any) -> Any:
        _ = self.session

        async def attempt(left: float | None) -> Any:
            return await self._sent(lambda: call(*args, **options), left)

        return unpassed(await self._calls.run(attempt, READING))

    async def _sent(self, call: Callable[[], Awaitable[Any]], left: float | None) -> Any:
        """One attempt, on a connection that stands."""
        link = await self._connected(left)
        try:
            return await self._limited(call(), left, link)
        except MCPError as exc:
            return Passed(exc)

    async def _limited(self, call: Awaitable[Any], left: float | None, link: Link) -> Any:
        """
        One attempt, within its time.

        Raises:
            FaultError: what it failed with.
            MCPError: what is the application's business.

        """
        task = None if left is None else self._watch.begin(left)
        try:
            result = await call
        except BaseException as exc:  # noqa: BLE001 - what is no failure is raised again there
            failed = self._ended(exc, task, link)
        else:
            if task is not None:
                self._watch.end(task, cancelled=False)
            return result
        raise failed

    def _ended(self, exc: BaseException, task: asyncio.Task[Any] | None, link: Link) -> FaultError:
        """
        The typed error of an attempt that ended with `exc`.

        Raises:
            BaseException: `exc` itself, where that is no failure of the call.

        """
        cancelled = isinstance(exc, asyncio.CancelledError)
        over = task is not None and self._watch.end(task, cancelled=cancelled)
        if cancelled and over:
            return self._failed(TimeoutError(), link)
        if not isinstance(exc, Exception) or untouched(exc):
            raise exc
        return self._failed(exc, link)

    def _failed(self, exc: Exception, link: Link) -> FaultError:
        """The typed error of a call, after the connection was given up where it is dead."""
        error, again = error_of(exc)
        if again or (not self._target.http and isinstance(exc, MCPError) and exc.code == CONNECTION_CLOSED):
            link.lost = True
        return error
