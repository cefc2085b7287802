"""
`reject`: requests turned away before they reach the agent.

    app = reject(app, check)

`check` looks at the ASGI scope and raises: RateLimitedError, UnauthenticatedError, ServiceUnavailableError. The caller
gets S4's JSON-RPC error (-32029, -32028, -32027) with the error in `data`; over REST the HTTP status with the same in
`details`, and Retry-After.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from amends.bindings.a2a.responses import said
from amends.carriers.jsonrpc import COLLAPSED, RESERVED
from amends.carriers.layers import KEY
from amends.core.vocabulary import vocabulary
from amends.core.wire import Unreadable, read
from amends.http.asgi import App, Receive, Scope, Send, header
from amends.http.tracing import trace_id
from amends.serving.adcp_error import sentence

__all__ = ["reject"]

_LIMIT = 1024 * 1024
"""Bytes of a request that are read for its id; a larger one gets its answer without."""

# google.rpc's words, which the protocol's REST errors carry.
_STATUS = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}


def reject(app: App, check: Callable[[Scope], Awaitable[None] | None], *, collapse: bool = False) -> App:
    """
    `app` behind `check`, which raises for a request that is not to go further.

    Args:
        app: the ASGI application with the SDK's routes.
        check: plain or async; gets the ASGI scope of each HTTP request. What it raises that is no FaultError closes
            the gate too, and shows nothing.
        collapse: one JSON-RPC number for every rejection, for servers that would rather not be told apart.

    """

    async def gate(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                found = check(scope)
                if found is not None:
                    await found
            except Exception as exc:  # noqa: BLE001 - whatever it raises, the request goes no further
                trace = trace_id(header(scope["headers"], b"traceparent"))
                error = said(exc, trace, "a request at the gate")
                await _answer(scope, receive, send, error, collapse=collapse)
                return
        await app(scope, receive, send)

    return gate


async def _answer(
    scope: Scope, receive: Receive, send: Send, error: dict[str, Any], *, collapse: bool
) -> None:
    request = await _request(receive) if scope["method"] == "POST" else None
    if isinstance(request, dict) and "jsonrpc" in request:
        status, body = 200, _rpc_error(request.get("id"), error, collapse=collapse)
    else:
        status = _http_status(error["code"])
        body = _rest_error(status, error)
    headers = [(b"content-type", b"application/json")]
    if error.get("retry_after") is not None:
        # Also beside a JSON-RPC error: gateways and HTTP clients on the way know no other word.
        headers.append((b"retry-after", str(error["retry_after"]).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(body)})


async def _request(receive: Receive) -> Any:
    """The request's document, as far as it is worth reading."""
    found = bytearray()
    while len(found) <= _LIMIT:
        message = await receive()
        if message["type"] != "http.request":
            return None
        found += message.get("body", b"")
        if not message.get("more_body", False):
            try:
                return read(bytes(found))
            except Unreadable:
                return None
    return None


def _rpc_error(id: Any, error: dict[str, Any], *, collapse: bool) -> dict[str, Any]:
    """S4's rejection before dispatch. Codes without a number of their own have the collapsed one."""
    number = COLLAPSED if collapse else RESERVED.get(error["code"], COLLAPSED)
    return {
        "jsonrpc": "2.0",
        "id": id if isinstance(id, str | int) else None,
        "error": {"code": number, "message": sentence(error), "data": {KEY: error}},
    }


def _http_status(code: str) -> int:
    return vocabulary("http").row(vocabulary("adcp").row(code).everyday).status or 503


def _rest_error(status: int, error: dict[str, Any]) -> dict[str, Any]:
    """The protocol's REST error: google.rpc.Status as JSON."""
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": error["code"],
        "domain": "adcontextprotocol.org",
        "metadata": {KEY: error},
    }
    said = {"code": status, "status": _STATUS.get(status, "UNKNOWN"), "message": sentence(error)}
    return {"error": {**said, "details": [info]}}
