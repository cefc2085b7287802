"""
FastMCP, both sides.

    from amends.bindings.fastmcp import guard

    guard(server)                       # a FastMCP server: every failure leaves as S4 says

    from amends.bindings.fastmcp import Client

    async with Client(url) as client:   # in place of fastmcp.Client
        await client.call_tool("buy", {"id": 7})

For a client class of your own, put `Recovering` in front of its bases.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

try:
    import fastmcp
except ImportError as missing:
    raise ImportError("amends.bindings.fastmcp needs an extra: pip install 'amends[fastmcp]'") from missing

from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.exceptions import ToolError
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import CallToolResult as MCPResult

from amends.bindings.mcp.calls import CONNECTING, READING, Calls, Passed, unpassed
from amends.bindings.mcp.client_errors import error_of, failed_result, not_connected, untouched
from amends.bindings.mcp.guard import Guard, Missing
from amends.bindings.mcp.handler_errors import Translate, is_missing, unknown
from amends.bindings.mcp.http_recorder import HttpRecorder
from amends.bindings.mcp.tools import Promises, every_tool, promises
from amends.core.fault import Fault
from amends.core.operation import Operation
from amends.core.policy import Policy
from amends.errors.base import FaultError
from amends.recovery.policies import ADCP
from amends.recovery.upstream import Upstream
from amends.serving.server_errors import fault_for

if TYPE_CHECKING:
    from fastmcp.client.client import CallToolResult

__all__ = ["Client", "Recovering", "guard"]

S = TypeVar("S", bound="fastmcp.FastMCP[Any]")


def guard(server: S, *, show: bool = True, translate: Translate = fault_for) -> S:
    """
    The same FastMCP server, guarded: one call, before or after its tools are registered.

    Args:
        server: the server; what is mounted below it is guarded with it.
        show: whether the text of a ToolError, ResourceError or PromptError that an author raised on purpose is for
            the caller.
        translate: makes the fault of a foreign exception.

    """
    if not isinstance(server, fastmcp.FastMCP):
        raise TypeError(f"guard takes a FastMCP server, not {type(server).__name__}")
    found = Guard(server._mcp_server, show=show, translate=translate)  # noqa: SLF001 - there is no public name for it
    if found.install():
        found.seam(server, "call_tool", missing=_missing("tool"), failed=ToolError)
        found.seam(server, "read_resource")
        found.seam(server, "render_prompt", missing=_missing("prompt"))
    return server


def _missing(what: str) -> Missing:
    async def missing(exc: BaseException, *_: Any, **__: Any) -> Fault | None:
        return unknown(what) if is_missing(exc) else None

    return missing


class Recovering:
    """
    For classes derived from `fastmcp.Client`: calls recover, and raise typed errors.

    `call_tool_mcp` recovers and returns the result as it came; `call_tool` raises the typed error of one that failed, or
    returns it with `raise_on_error=False`.
    """

    def __init__(
        self,
        *args: Any,
        policy: Policy = ADCP,
        upstream: Upstream | None = None,
        refresh: Callable[..., Any] | None = None,
        verify: Callable[..., Any] | None = None,
        limit: float | None = 300.0,
        **options: Any,
    ) -> None:
        """
        Args:
            args: the client's own.
            policy: how far recovery may go; its `deadline` bounds each call, whatever the server does.
            upstream: what is shared with the other callers of the same server.
            refresh: renews credentials after they were refused, as in `recover`.
            verify: looks whether a call that may have happened did, as in `recover`; a result is an MCP one.
            limit: seconds one attempt may take where the policy does not say less.
            options: the client's own.

        """
        super().__init__(*args, **options)
        self._calls = Calls(policy=policy, upstream=upstream, refresh=refresh, verify=verify, limit=limit)
        transport = getattr(self, "transport", None)
        if isinstance(transport, StreamableHttpTransport):
            transport.httpx_client_factory = _witnessing(transport)

    async def __aenter__(self) -> Any:
        """Connect, with recovery."""
        enter = super().__aenter__  # type: ignore[misc]

        async def attempt(left: float | None) -> Any:
            try:
                async with asyncio.timeout(left):
                    return await enter()
            except Exception as exc:
                raise not_connected(exc) from exc

        return await self._calls.run(attempt, CONNECTING)

    async def call_tool_mcp(
        self,
        name: str,
        arguments: dict[str, Any],
        *args: Any,
        operation: Operation | None = None,
        policy: Policy | None = None,
        **options: Any,
    ) -> Any:
        """As the client's own, with recovery: the last result, also one that failed."""
        return await self._called("return", name, arguments, args, options, operation, policy)

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        version: str | None = None,
        timeout: Any = None,  # noqa: ASYNC109 - the client's own word
        progress_handler: Any = None,
        raise_on_error: bool = True,
        meta: dict[str, Any] | None = None,
        operation: Operation | None = None,
        policy: Policy | None = None,
    ) -> CallToolResult:
        """
        As the client's own, with recovery.

        Raises:
            FaultError: the typed error.

        """
        asked = dict(meta) if meta else {}
        if version is not None:
            asked["fastmcp"] = {**asked.get("fastmcp", {}), "version": version}
        options = {"timeout": timeout, "progress_handler": progress_handler, "meta": asked or None}
        errors = "raise" if raise_on_error else "return"
        found: CallToolResult = await self._called(
            errors, name, arguments or {}, (), options, operation, policy, parsed=True
        )
        return found

    async def _called(
        self,
        errors: str,
        name: str,
        arguments: dict[str, Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
        operation: Operation | None,
        policy: Policy | None,
        *,
        parsed: bool = False,
    ) -> Any:
        """The result of a tool in the end: as it came, or as FastMCP hands it out."""
        if operation is None:
            operation = self._calls.known(name, arguments) or await self._calls.promised(
                name, arguments, self._attempt(_listed), policy
            )

        async def use(client: Any) -> Any:
            result = await _own(client, "call_tool_mcp")(name, arguments, *args, **options)
            if getattr(result, "is_error", False):
                raise failed_result(result)
            # It may ask for the tool's schema, so it belongs to the same session.
            return await client._parse_call_tool_result(name, result) if parsed else result  # noqa: SLF001

        result = unpassed(await self._calls.run(self._attempt(use), operation, policy=policy, errors=errors))
        if parsed and isinstance(result, MCPResult):
            return await self._parse_call_tool_result(name, result)  # type: ignore[attr-defined]
        return result

    async def read_resource_mcp(self, *args: Any, **options: Any) -> Any:
        """As the client's own, with recovery."""
        return await self._read("read_resource_mcp", *args, **options)

    async def get_prompt_mcp(self, *args: Any, **options: Any) -> Any:
        """As the client's own, with recovery."""
        return await self._read("get_prompt_mcp", *args, **options)

    async def _read(self, method: str, *args: Any, **options: Any) -> Any:
        use = self._attempt(lambda client: _own(client, method)(*args, **options))
        return unpassed(await self._calls.run(use, READING))

    def _attempt(self, use: Callable[[Any], Awaitable[Any]]) -> Callable[[float | None], Awaitable[Any]]:
        """An attempt on the client's session, or where that has died on a fresh one for this attempt alone."""
        if self._session_state.session_task is None:  # type: ignore[attr-defined]
            # Nobody has entered it: a mistake of the program's, which FastMCP has a word for.
            _ = self.session  # type: ignore[attr-defined]

        async def anew() -> Any:
            async with self.new() as fresh:  # type: ignore[attr-defined]
                return await use(fresh)

        return lambda left: _limited(anew() if self._died() else use(self), left)

    def _died(self) -> bool:
        """Whether the session ended by itself while the client is in use."""
        state = self._session_state  # type: ignore[attr-defined]
        task, dispatcher = state.session_task, getattr(state.session, "_dispatcher", None)
        return task is not None and (task.done() or getattr(dispatcher, "_closed", False) is True)


def _own(client: Any, method: str) -> Any:
    """The client's own method, below recovery."""
    return getattr(super(Recovering, client), method)


async def _listed(client: Any) -> Promises:
    return promises(await every_tool(_own(client, "list_tools_mcp")))


async def _limited(call: Awaitable[Any], left: float | None) -> Any:
    """One attempt, within its time. Raises FaultError."""
    try:
        async with asyncio.timeout(left):
            return await call
    except FaultError:
        raise
    except Exception as exc:
        if untouched(exc):
            return Passed(exc)
        raise error_of(exc)[0] from exc


def _witnessing(transport: StreamableHttpTransport) -> Any:
    """A factory of HTTP clients that are seen through: of those the transport would have had."""
    chosen = transport.httpx_client_factory
    usual: Any = transport._make_verify_factory() or create_mcp_http_client  # noqa: SLF001

    def witnessed(*, follow_redirects: bool = True, **options: Any) -> Any:
        if chosen is None:
            return HttpRecorder(usual(**options))
        return HttpRecorder(chosen(follow_redirects=follow_redirects, **options))  # type: ignore[call-arg]

    return witnessed


class Client(Recovering, fastmcp.Client[Any]):
    """In place of `fastmcp.Client`: the same arguments, and those of `Recovering`."""
