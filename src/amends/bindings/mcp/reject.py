"""
Rejecting requests before they are dispatched: the handler does not run (A3).

    from amends.bindings.mcp import reject

    def check(request):
        if "authorization" not in request.headers:
            return AuthMissingError()

    rejection = reject(check)
    server = MCPServer("shop", middleware=[rejection])     # a JSON-RPC error, which every client keeps
    app = rejection.http(server.streamable_http_app())     # or HTTP 401, 429, 503, before the body is parsed

The numbers of the JSON-RPC errors depend on the negotiated protocol version (design section 8).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

import msgspec
from mcp.server.context import CallNext, ServerRequestContext
from mcp.shared.exceptions import MCPError

from amends.bindings.mcp.guard import TOOL
from amends.bindings.mcp.responses import ERRORS_BESIDE_SCHEMA, LOG, client_of, may_be_structured, tool_result
from amends.carriers import challenge, jsonrpc
from amends.core.crosswalk import transfer
from amends.core.fault import Fault
from amends.core.vocabularies.adcp import VOCABULARY
from amends.core.wrong_calls import explains_wrong_calls
from amends.dialects import record
from amends.dialects.adcp import KEY
from amends.http.asgi import request_info, send_response
from amends.http.asgi_types import App, Receive, Scope, Send
from amends.http.responses import RawResponse, Settings, error_response
from amends.serving.adcp_error import error_object
from amends.serving.rejection import Rejected, number_for, rejection_for

__all__ = ["Check", "Incoming", "Rejection", "reject"]


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """
    A request that has not been dispatched yet.

    The check of `reject` gets it.

        def check(request: Incoming) -> FaultError | None:
            if request.name == "buy" and "authorization" not in request.headers:
                return AuthMissingError()
            return None
    """

    headers: Mapping[str, str]
    """With names in lower case; empty if the transport is not HTTP."""
    method: str | None = None
    """For example tools/call; None if HTTP headers do not have it (protocols up to 2025-11-25)."""
    name: str | None = None
    """The tool, prompt or resource; None if it is not known, or the method has none."""
    protocol: str | None = None
    """The protocol version, if it is known."""
    context: object = None
    """The SDK's request context, or the ASGI scope."""


Check = Callable[[Incoming], Rejected | Awaitable[Rejected]]
"""Returns or raises the reason to reject a request, or returns None; may be async."""


@explains_wrong_calls
def reject(
    check: Check,
    *,
    collapse: bool = False,
    methods: Iterable[str] | None = None,
    settings: Settings | None = None,
) -> Rejection:
    """
    Return a middleware that rejects requests.

        def check(request):
            if request.method == "tools/call" and not bucket.take():
                raise RateLimitedError("Too many calls", retry_after=30)

        server = MCPServer("shop", middleware=[reject(check)])

    Args:
        check: called with each request.
        collapse: use one JSON-RPC number for all reasons, so that callers cannot distinguish them by number.
        methods: check only requests of these methods; the default is all. Over HTTP, requests whose headers do not name
            the method are always checked.
        settings: the settings of problem documents, for `.http(app)`.

    """
    return Rejection(check, collapse, None if methods is None else frozenset(methods), settings or Settings())


class Rejection:
    """
    A middleware for the SDK's servers; `.http(app)` makes an ASGI application of it.

    `reject` makes it. Use one of the two forms:

        rejection = reject(check)
        server = MCPServer("shop", middleware=[rejection])     # JSON-RPC errors
        app = rejection.http(server.streamable_http_app())     # HTTP responses
    """

    def __init__(
        self, check: Check, collapse: bool, methods: frozenset[str] | None, settings: Settings
    ) -> None:
        self._check = check
        self._collapse = collapse
        self._methods = methods
        self._settings = settings

    async def __call__(self, ctx: ServerRequestContext[object, object], call_next: CallNext) -> object:
        """Check a message. Notifications have no response, so they are not checked."""
        if ctx.request_id is None or (self._methods is not None and ctx.method not in self._methods):
            return await call_next(ctx)
        params = ctx.params or {}
        fault = await rejection_for(
            self._check,
            Incoming(
                headers=_headers(getattr(ctx.request, "headers", None)),
                method=ctx.method,
                name=_text(params.get("name", params.get("uri"))),
                protocol=ctx.protocol_version,
                context=ctx,
            ),
            log=LOG,
            traceparent=_text((ctx.meta or {}).get("traceparent")),
        )
        if fault is None:
            return await call_next(ctx)
        if fault.code not in jsonrpc.RESERVED and ctx.method == TOOL:
            # A3: every other code is sent in the tool's result.
            modern = ctx.protocol_version >= ERRORS_BESIDE_SCHEMA
            # The tool may have an output schema, which earlier clients apply to errors too.
            structured = may_be_structured(ctx.protocol_version, client_of(ctx))
            result = tool_result(fault, ctx.protocol_version, structured=structured)
            return {**result, "resultType": "complete"} if modern else result
        raise MCPError(*self._error(fault, ctx.protocol_version))

    def http(self, app: App, *, body: str = "problem") -> App:
        """
        Return an ASGI application that answers rejected requests with HTTP 401, 403, 429 or 503 and `Retry-After`.

        `scope`, `resource_metadata`, `error` and `error_description` in the details of a 401 or 403 are sent in
        `WWW-Authenticate`, so that a client can sign in.

        Args:
            app: the result of `streamable_http_app()`.
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
            protocol = headers.get("mcp-protocol-version")
            fault = None
            if method is None or self._methods is None or method in self._methods:
                incoming = Incoming(
                    headers=headers,
                    method=method,
                    name=headers.get("mcp-name"),
                    protocol=protocol,
                    context=scope,
                )
                fault = await rejection_for(
                    self._check, incoming, log=LOG, traceparent=headers.get("traceparent")
                )
            if fault is None:
                await app(scope, receive, send)
                return
            asked = challenge.write(fault.details) if fault.code in _CHALLENGES else None
            response = error_response(
                transfer(fault, "http"),
                request_info(scope),
                self._settings,
                headers=[] if asked is None else [("www-authenticate", asked)],
            )
            if body == "jsonrpc":
                response = self._with_rpc_body(response, fault, protocol)
            await send_response(scope, send, response)

        return rejecting

    def _with_rpc_body(self, response: RawResponse, fault: Fault, protocol: str | None) -> RawResponse:
        # The id is not known, because the body was not parsed. Official clients use the id of their request.
        message = {
            "jsonrpc": "2.0",
            "id": None,
            "error": dict(zip(("code", "message", "data"), self._error(fault, protocol), strict=True)),
        }
        raw = msgspec.json.encode(message)
        headers = [
            each for each in response.headers if each[0] not in {"content-type", "content-length", "vary"}
        ]
        headers += [("content-type", "application/json"), ("content-length", str(len(raw)))]
        return RawResponse(response.status, headers, raw)

    def _error(self, fault: Fault, protocol: str | None) -> tuple[int, str, dict[str, object]]:
        """Return code, message and data of the JSON-RPC error."""
        return (
            number_for(fault.code, protocol=protocol, collapse=self._collapse),
            VOCABULARY.row(fault.code).message,
            {KEY: error_object(fault), **record.beside(fault)},
        )


_BODIES = ("problem", "jsonrpc")
_CHALLENGES = frozenset({"AUTH_MISSING", "AUTH_INVALID", "AUTH_REQUIRED", "PERMISSION_DENIED"})


def _headers(given: Mapping[str, str] | None) -> dict[str, str]:
    return {} if given is None else {str(name).lower(): str(value) for name, value in given.items()}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
