"""
Guarding a server: every failure of it leaves as S4 says, and nothing of a foreign exception's text leaves at all.

Two places are needed. The low-level server hands each request to a handler: there every answer can be replaced, and
the negotiated protocol version is known. But the frameworks above turn exceptions into text before that; so their
public methods (`call_tool`, `read_resource`, …) are wrapped too, and only while they serve a request from the wire:
called by other code they raise what they always raised. Around everything stands a middleware for what other
middleware raises. Progress, cancellation, elicitation and sampling are not touched.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TypeVar

from mcp.server import Server
from mcp.server.context import CallNext, ServerRequestContext
from mcp.server.lowlevel.server import HandlerEntry
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult
from pydantic import ValidationError

from amends.bindings.mcp.handler_errors import (
    Told,
    Translate,
    from_peer,
    left_out_arguments,
    told,
    unknown,
    unwrapped,
)
from amends.bindings.mcp.responses import LOG, marked, rpc_error, tool_result
from amends.core.fault import Fault
from amends.core.vocabularies.adcp import VOCABULARY
from amends.serving.server_errors import fault_for

__all__ = ["TOOL", "Guard", "Missing", "guard"]

S = TypeVar("S")

Missing = Callable[..., Awaitable[Fault | None]]
"""Whether a failure means that what was named is not there: (exception, *arguments of the method)."""

TOOL = "tools/call"
_MARK = "_amends_guard"
_UNTOUCHED = frozenset({"ping", "server/discover", "subscriptions/listen"})
"""The protocol's own business."""


def guard(server: S, *, show: bool = True, translate: Translate = fault_for) -> S:
    """
    The same server, guarded: one call, before or after its tools are registered.

    Args:
        server: an `MCPServer` or a low-level `Server` of the official SDK. For FastMCP there is
            `amends.bindings.fastmcp.guard`.
        show: whether the text of a ToolError or ResourceError that an author raised on purpose is for the caller.
        translate: makes the fault of a foreign exception; `amends.chain.relaying(…)` takes rules of your own.

    Raises:
        TypeError: for anything else.

    """
    if isinstance(server, MCPServer):
        found = Guard(server._lowlevel_server, show=show, translate=translate)  # noqa: SLF001 - the SDK's own client does the same
        if found.install():
            found.seam(server, "call_tool", missing=_no_tool(server))
            found.seam(server, "read_resource")
            found.seam(server, "get_prompt", missing=_no_prompt(server))
    elif isinstance(server, Server):
        Guard(server, show=show, translate=translate).install()
    else:
        raise TypeError(f"guard takes an MCPServer or a low-level Server, not {type(server).__name__}")
    return server


class _Call:
    """One request from the wire, on its way through a framework."""

    # Defaults of the class: most calls need neither, and nothing is cheaper to make than an object without __init__.
    failure: Told | None = None
    taken = False
    """A framework's method is at work for it: calls inside that are the author's own."""


# The request being served.
_CALL: ContextVar[_Call | None] = ContextVar("amends_mcp_call", default=None)


class Guard:
    """What stands around one low-level server."""

    def __init__(self, server: Server[Any], *, show: bool, translate: Translate) -> None:
        self._server = server
        self._show, self._translate = show, translate
        self._find: Callable[[str], HandlerEntry[Any] | None] = server.get_request_handler
        self._entries: dict[str, tuple[HandlerEntry[Any], HandlerEntry[Any]]] = {}

    def install(self) -> bool:
        """Stand around the server; False when somebody does already."""
        if getattr(self._server, _MARK, None) is not None:
            return False
        setattr(self._server, _MARK, self)
        # The one place where the runner asks for a handler, also for those registered later.
        self._server.get_request_handler = self._entry  # type: ignore[method-assign]
        self._server.middleware.insert(0, self._outermost)
        return True

    # --------------------------------------------------------------------------------------------- the handlers

    def _entry(self, method: str) -> HandlerEntry[Any] | None:
        found = self._find(method)
        kept = self._entries.get(method)
        if kept is not None and kept[0] is found:
            return kept[1]
        if found is None or method in _UNTOUCHED:
            return found
        entry = replace(found, handler=self._guarded(method, found.handler))
        self._entries[method] = found, entry
        return entry

    def _guarded(
        self, method: str, handler: Callable[[Any, Any], Awaitable[Any]]
    ) -> Callable[[Any, Any], Awaitable[Any]]:
        async def guarded(ctx: ServerRequestContext[Any, Any], params: Any) -> Any:
            call = _Call()
            token = _CALL.set(call)
            try:
                result = await handler(ctx, params)
            except _Seen as seen:
                return self._answer(seen.said, method, ctx, params)
            except Exception as exc:  # noqa: BLE001 - failures of any kind are what this is for
                first = unwrapped(exc)
                if isinstance(first, MCPError) and not from_peer(first):
                    # What the author, or the protocol, wants said as it is.
                    raise first from None
                return self._answer(self._told(exc), method, ctx, params)
            finally:
                _CALL.reset(token)
            if call.failure is not None and getattr(result, "is_error", False):
                return self._answer(call.failure, method, ctx, params)
            return result

        return guarded

    def _answer(self, said: Told, method: str, ctx: ServerRequestContext[Any, Any], params: Any) -> Any:
        fault = marked(said, method, params, ctx.meta)
        if method == TOOL:
            return CallToolResult.model_validate(tool_result(fault, ctx.protocol_version))
        number, message, data = rpc_error(fault)
        raise MCPError(number, message, data) from None

    def _told(self, exc: BaseException) -> Told:
        try:
            return told(exc, show=self._show, translate=self._translate)
        except Exception:  # a hostile exception, or a `translate` that raises  # noqa: BLE001
            LOG.exception("an exception could not be told")
            return Told(_unavailable(), exc, expected=False)

    # ------------------------------------------------------------------------------------------- the frameworks

    def seam(
        self,
        framework: Any,
        name: str,
        *,
        missing: Missing | None = None,
        failed: type[Exception] = ToolError,
    ) -> None:
        """
        Let exceptions of a framework's public method be seen while it serves a request from the wire.

        Args:
            framework: whose method it is.
            name: the method. For `call_tool` the framework makes a result of what is raised; the others' exceptions
                reach the handler.
            missing: looks at the exception and the method's arguments for a name that is not there.
            failed: what the framework takes for a failure its author expected.

        """
        inner = getattr(framework, name)

        @functools.wraps(inner)
        async def outermost(*args: Any, **kwargs: Any) -> Any:
            call = _CALL.get()
            if call is None or call.taken:
                return await inner(*args, **kwargs)
            call.taken = True
            try:
                return await inner(*args, **kwargs)
            except Exception as exc:  # noqa: BLE001
                first = unwrapped(exc)
                if isinstance(first, MCPError):
                    # Whose it is, the handler finds out.
                    raise first from None
                fault = None if missing is None else await missing(exc, *args, **kwargs)
                said = self._told(exc) if fault is None else Told(fault, exc, expected=True)
                if name != "call_tool":
                    raise _Seen(said) from None
                call.failure = said
                # Its text is ours, should anybody look at it on the way.
                raise failed(said.fault.message) from None
            finally:
                call.taken = False

        setattr(framework, name, outermost)

    # ------------------------------------------------------------------------------------------ other middleware

    async def _outermost(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> Any:
        try:
            return await call_next(ctx)
        except (MCPError, ValidationError):
            # The SDK writes the first as it is, and of the second nothing but that the params are wrong.
            raise
        except Exception as exc:  # noqa: BLE001
            number, message, data = rpc_error(marked(self._told(exc), ctx.method, None, ctx.meta))
            raise MCPError(number, message, data) from None


class _Seen(Exception):
    """A failure on its way from a framework's method to the handler around it."""

    def __init__(self, said: Told) -> None:
        super().__init__(said.fault.message)
        self.said = said


def _unavailable() -> Fault:
    row = VOCABULARY.rows["SERVICE_UNAVAILABLE"]
    return Fault(code=row.code, message=row.message, vocabulary=VOCABULARY.name)


def _no_tool(server: MCPServer[Any]) -> Missing:
    async def missing(exc: BaseException, name: str, *_: Any, **__: Any) -> Fault | None:
        if exc.__cause__ is not None or any(tool.name == name for tool in await server.list_tools()):
            return None
        return unknown("tool")

    return missing


def _no_prompt(server: MCPServer[Any]) -> Missing:
    async def missing(
        exc: BaseException, name: str, arguments: Any = None, *_: Any, **__: Any
    ) -> Fault | None:
        for prompt in await server.list_prompts():
            if prompt.name == name:
                needed = [each.name for each in prompt.arguments or () if each.required]
                left_out = [each for each in needed if each not in (arguments or {})]
                return left_out_arguments(left_out) if left_out else None
        return unknown("prompt")

    return missing
