"""
The ledger of effects around the tools of an MCP server, and around the calls of a client.

By default it covers the tools whose annotations say explicitly that they change something: `readOnlyHint: false` or
`destructiveHint: true`. The client sends its key in `_meta["amends/key"]`, so that a call that it makes again is the same
call for the server; without a key the server derives one from the caller, the tool and the arguments.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp_types import CallToolRequestParams, CallToolResult, TextContent
from pydantic import BaseModel

from amends.bindings.mcp.tool_options import check_tools
from amends.carriers.extraction import extract
from amends.core.fault import Fault
from amends.errors.base import FaultError
from amends.recovery.effect_context import current_scope

if TYPE_CHECKING:
    # Loaded with the ledger that is given: a client or a server without one needs none of it.
    from amends.effects import Effects

__all__ = ["AGAIN_KEY", "META_KEY", "ToolEffects", "changes_something", "restore"]

META_KEY = "amends/key"
"""Where a call's key is in `_meta` (M8)."""
AGAIN_KEY = "amends/again"


def changes_something(tool: object) -> bool:
    """Return whether a tool's annotations say explicitly that it changes something."""
    annotations = getattr(tool, "annotations", None)
    return (
        getattr(annotations, "read_only_hint", None) is False
        or getattr(annotations, "destructive_hint", None) is True
    )


class FailedResult(FaultError):
    """A result that a tool returned as an error, so that the ledger sees a failure."""

    result: CallToolResult | None = None


class ToolEffects:
    """The ledger of one server."""

    def __init__(
        self,
        effects: Effects,
        tools: Collection[str] | None = None,
        scope: Callable[[ServerRequestContext[object, object]], str] | None = None,
    ) -> None:
        self._effects, self._scope = effects, scope
        self._tools = check_tools(tools)

    async def covers(self, name: str, get_tool: Callable[[str], Awaitable[object]]) -> tuple[bool, object]:
        """Return whether a tool is covered, and the tool."""
        tool = await get_tool(name)
        return tool is not None and (name in self._tools or changes_something(tool)), tool

    async def call(
        self,
        ctx: ServerRequestContext[object, object],
        params: CallToolRequestParams,
        tool: object,
        run: Callable[[CallToolRequestParams], Awaitable[HandlerResult]],
    ) -> HandlerResult:
        """Run a covered tool once. `run` raises what the tool raised; an error that the tool returned is returned."""
        from amends.effects.arguments import owned_key
        from amends.effects.calls import AGAIN

        arguments = dict(params.arguments or {})
        meta: Mapping[str, object] = {**ctx.meta} if ctx.meta else {}
        key, again = meta.get(META_KEY), meta.get(AGAIN_KEY)
        properties = (getattr(tool, "input_schema", None) or {}).get("properties") or {}
        if AGAIN not in properties and AGAIN in arguments:
            again = arguments.pop(AGAIN)
            params = params.model_copy(update={"arguments": arguments})

        async def call() -> object:
            result = await run(params)
            if isinstance(result, CallToolResult) and result.is_error:
                failed = FailedResult.from_fault(_fault_in(result))
                failed.result = result  # type: ignore[attr-defined]
                raise failed
            return result

        try:
            result = await self._effects.acall(
                params.name,
                call,
                arguments,
                key=owned_key(self._owner(ctx), key) if isinstance(key, str) and key else None,
                scope=self._caller(ctx),
                again=again,
            )
        except FaultError as error:
            returned: object = getattr(error, "result", None)
            if not isinstance(returned, CallToolResult):
                raise
            return returned
        return restore(result)

    def _owner(self, ctx: ServerRequestContext[object, object]) -> str:
        """Return who calls, as far as that is known for certain."""
        if self._scope is not None:
            return self._scope(ctx)
        token = get_access_token()
        return "" if token is None else f"{token.client_id}/{getattr(token, 'subject', None) or ''}"

    def _caller(self, ctx: ServerRequestContext[object, object]) -> str:
        """Return who calls, or the session, so that two callers with the same arguments do not share a key."""
        owner = self._owner(ctx)
        if owner or self._scope is not None:
            return owner
        headers = getattr(ctx.request, "headers", None) or {}
        return headers.get("mcp-session-id") or current_scope()


def restore(result: object) -> BaseModel | dict[str, Any]:
    """
    Return a result of the ledger as the SDK's type. An outcome that a person gave is any JSON value.

    Raises:
        AlreadyDoneError: a person answered that it happened, and gave no outcome.

    """
    if isinstance(result, BaseModel) or (isinstance(result, dict) and result.get("resultType") == "task"):
        # A result, or the task of a tool that runs in the background.
        return result
    if isinstance(result, dict) and "content" in result:
        return CallToolResult.model_validate(result)
    if result is None:
        from amends.effects.errors import AlreadyDoneError

        raise AlreadyDoneError("It happened before; its result is not known")
    text = result if isinstance(result, str) else msgspec.json.encode(result).decode()
    structured = result if isinstance(result, dict) else {"result": result}
    return CallToolResult(content=[TextContent(text=text)], structured_content=structured)


def _fault_in(result: CallToolResult) -> Fault:
    found = extract(result, via="mcp", native=True)
    return found or Fault(code="SERVICE_UNAVAILABLE", vocabulary="adcp")
