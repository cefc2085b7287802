"""
Rejections before dispatch: the call never reaches its handler (A3).

    from amends.bindings.mcp import reject

    def check(request):
        if "authorization" not in request.headers:
            return AuthMissingError()

    rejection = reject(check)
    server = MCPServer("shop", middleware=[rejection])     # a JSON-RPC error, which every client keeps whole
    app = rejection.http(server.streamable_http_app())     # or HTTP 401, 429, 503, before anything is parsed

The numbers of the JSON-RPC errors are those of the negotiated protocol version (design section 8).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec
from mcp.server.context import CallNext, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from amends.bindings.mcp.guard import TOOL
from amends.bindings.mcp.responses import LOG, tool_result
from amends.carriers import jsonrpc
from amends.core.crosswalk import transfer
from amends.core.enums import Executed
from amends.core.fault import Fault
from amends.core.vocabularies.adcp import VOCABULARY
from amends.errors.base import FaultError
from amends.http.asgi import App, Receive, Scope, Send, request_info, send_response
from amends.http.responses import RawResponse, Settings, error_response
from amends.serving.adcp_error import error_object

__all__ = ["Check", "Incoming", "Rejection", "reject"]


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """A request that has not been dispatched yet."""

    headers: Mapping[str, str]
    """Lower-case names; empty where there is no HTTP."""
    method: str | None = None
    """tools/call, say; None where HTTP does not tell before the body is read (up to 2025-11-25)."""
    name: str | None = None
    """The tool, prompt or resource; None where it is not known, or there is none."""
    protocol: str | None = None
    """The protocol version, where it is known."""
    context: Any = None
    """The SDK's own request context, or the ASGI scope."""


Check = Callable[[Incoming], Fault | FaultError | Awaitable[Fault | FaultError | None] | None]
"""Says why a request is rejected, or None; it may also raise, and may be async."""


def reject(
    check: Check,
    *,
    collapse: bool = False,
    methods: Iterable[str] | None = None,
    settings: Settings | None = None,
) -> Rejection:
    """
    A middleware that rejects what `check` says.

    Args:
        check: looks at each request.
        collapse: one JSON-RPC number for all reasons, for servers that would rather not be told apart.
        methods: only requests of these methods; all of them without it. Over HTTP, what does not say its method yet
            is looked at in any case.
        settings: those of problem documents, for `.http(app)`.

    """
    return Rejection(check, collapse, None if methods is None else frozenset(methods), settings or Settings())


class Rejection:
    """A middleware of the SDK's, and with `.http(app)` one of ASGI's."""

    def __init__(
        self, check: Check, collapse: bool, methods: frozenset[str] | None, settings: Settings
    ) -> None:
        self._check = check
        self._collapse = collapse
        self._methods = methods
        self._settings = settings

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> Any:
        """One message. Notifications cannot be answered, so they pass."""
        if ctx.request_id is None or (self._methods is not None and ctx.method not in self._methods):
            return await call_next(ctx)
        params = ctx.params or {}
        fault = await self._reason(
            Incoming(
                headers=_headers(getattr(ctx.request, "headers", None)),
                method=ctx.method,
                name=_text(params.get("name", params.get("uri"))),
                protocol=ctx.protocol_version,
                context=ctx,
            )
        )
        if fault is None:
            return await call_next(ctx)
        if fault.code not in jsonrpc.RESERVED and ctx.method == TOOL:
            # A3: every other code uses the tool's own answer.
            result = tool_result(fault, ctx.protocol_version)
            return {**result, "resultType": "complete"} if _modern(ctx.protocol_version) else result
        error = self._error(fault, ctx.protocol_version)
        raise MCPError(error["code"], error["message"], error["data"])

    def http(self, app: App, *, body: str = "problem") -> App:
        """
        An ASGI application that answers rejections with HTTP 401, 429 or 503 and `Retry-After`.

        Args:
            app: what `streamable_http_app()` gave.
            body: "problem": problem details, which official clients drop together with the status. "jsonrpc": a
                JSON-RPC error with `data`, which they keep.

        """
        if body not in _BODIES:
            raise ValueError(f"body is one of {', '.join(_BODIES)}, not {body!r}")

        async def rejecting(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            headers = {
                str(name, "latin-1").lower(): str(value, "latin-1") for name, value in scope["headers"]
            }
            method = headers.get("mcp-method")
            fault = None
            if method is None or self._methods is None or method in self._methods:
                fault = await self._reason(
                    Incoming(
                        headers=headers,
                        method=method,
                        name=headers.get("mcp-name"),
                        protocol=headers.get("mcp-protocol-version"),
                        context=scope,
                    )
                )
            if fault is None:
                await app(scope, receive, send)
                return
            found = error_response(transfer(fault, "http"), request_info(scope), self._settings)
            if body == "jsonrpc":
                found = self._with_rpc_body(found, fault, headers.get("mcp-protocol-version"))
            await send_response(scope, send, found)

        return rejecting

    def _with_rpc_body(self, found: RawResponse, fault: Fault, protocol: str | None) -> RawResponse:
        # The id is not known: nothing was parsed. Official clients fill in that of their request.
        written = {"jsonrpc": "2.0", "id": None, "error": self._error(fault, protocol)}
        raw = msgspec.json.encode(written)
        kept = [each for each in found.headers if each[0] not in {"content-type", "content-length", "vary"}]
        kept += [("content-type", "application/json"), ("content-length", str(len(raw)))]
        return RawResponse(found.status, kept, raw)

    def _error(self, fault: Fault, protocol: str | None) -> dict[str, Any]:
        if fault.code in jsonrpc.RESERVED:
            number = jsonrpc.number(fault.code, protocol=protocol, collapse=self._collapse)
        else:
            number = jsonrpc.COLLAPSED
        message = VOCABULARY.row(fault.code).message
        return {"code": number, "message": message, "data": {"adcp_error": error_object(fault)}}

    async def _reason(self, request: Incoming) -> Fault | None:
        """Why it is rejected, in AdCP's words. A check that breaks rejects: what it guards is not to be had then."""
        try:
            found = self._check(request)
            if isinstance(found, Awaitable):
                found = await found
        except FaultError as error:
            found = error
        except Exception:  # noqa: BLE001 - whatever it is, the request may not pass
            LOG.exception("the check of a rejection failed")
            found = _DOWN
        if found is None:
            return None
        fault = found.fault if isinstance(found, FaultError) else found
        return transfer(fault, VOCABULARY.name)


_BODIES = ("problem", "jsonrpc")
_DOWN = Fault(
    code="SERVICE_UNAVAILABLE",
    message=VOCABULARY.rows["SERVICE_UNAVAILABLE"].message,
    vocabulary=VOCABULARY.name,
    executed=Executed.NO,
)


def _headers(given: Any) -> dict[str, str]:
    return {} if given is None else {str(name).lower(): str(value) for name, value in given.items()}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _modern(protocol: str) -> bool:
    return protocol in MODERN_PROTOCOL_VERSIONS
