"""
Rejecting requests before they reach the agent (A3).

    app = reject(app, check)

`check` gets the ASGI scope, and returns or raises the reason: RateLimitedError, UnauthenticatedError,
ServiceUnavailableError. The caller gets AdCP's JSON-RPC error (-32029, -32028, -32027) with the error in `data`; over
REST the HTTP status with the error in `details`. Both have Retry-After.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from amends.bindings.a2a.responses import LOG, Sent, error_of
from amends.core.vocabulary import vocabulary
from amends.core.wire import Unreadable, read
from amends.core.wrong_calls import explains_wrong_calls
from amends.dialects.adcp import KEY
from amends.http.asgi import header
from amends.http.asgi_types import App, Receive, Scope, Send
from amends.serving.adcp_error import sentence
from amends.serving.rejection import Rejected, number_for, rejection_for

__all__ = ["reject"]

_LIMIT = 1024 * 1024
"""Bytes of a request that are read to find its id. The answer to a larger one has no id."""

# The status names of google.rpc, which the protocol's REST errors use.
_STATUS = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}


@explains_wrong_calls
def reject(
    app: App, check: Callable[[Scope], Rejected | Awaitable[Rejected]], *, collapse: bool = False
) -> App:
    """
    Return an ASGI application that rejects requests before `app` gets them.

        def check(scope):
            if not bucket.take():
                raise RateLimitedError("Too many requests", retry_after=30)

        app = reject(Starlette(routes=create_jsonrpc_routes(handler, "/")), check)

    Args:
        app: the ASGI application with the SDK's routes.
        check: called with the ASGI scope of each HTTP request; may be async. It returns or raises the reason to reject
            the request, or returns None. An exception that is not a FaultError rejects the request too; its text is not
            sent.
        collapse: use one JSON-RPC number for all reasons, so that callers cannot distinguish them by number.

    """

    async def rejecting(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            traceparent = header(scope["headers"], b"traceparent")
            fault = await rejection_for(check, scope, log=LOG, traceparent=traceparent)
            if fault is not None:
                await _answer(scope, receive, send, error_of(fault), collapse=collapse)
                return
        await app(scope, receive, send)

    return rejecting


async def _answer(scope: Scope, receive: Receive, send: Send, sent: Sent, *, collapse: bool) -> None:
    error = sent.error
    request = await _request(receive) if scope["method"] == "POST" else None
    if isinstance(request, dict) and "jsonrpc" in request:
        status, body = 200, _rpc_error(request.get("id"), sent, collapse=collapse)
    else:
        status = _http_status(str(error["code"]))
        body = _rest_error(status, sent)
    headers = [(b"content-type", b"application/json")]
    if error.get("retry_after") is not None:
        # With a JSON-RPC error too, for gateways and HTTP clients that do not read the body.
        headers.append((b"retry-after", str(error["retry_after"]).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(body)})


async def _request(receive: Receive) -> object:
    """Return the parsed body of a request; None if it is too large or not JSON."""
    body = bytearray()
    while len(body) <= _LIMIT:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            try:
                return read(bytes(body))
            except Unreadable:
                return None
    return None


def _rpc_error(id: object, sent: Sent, *, collapse: bool) -> dict[str, object]:
    return {
        "jsonrpc": "2.0",
        "id": id if isinstance(id, str | int) else None,
        "error": {
            "code": number_for(str(sent.error["code"]), collapse=collapse),
            "message": sentence(sent.error),
            "data": {KEY: sent.error, **sent.beside},
        },
    }


def _http_status(code: str) -> int:
    return vocabulary("http").row(vocabulary("adcp").row(code).everyday).status or 503


def _rest_error(status: int, sent: Sent) -> dict[str, object]:
    """Return the protocol's REST error: google.rpc.Status as JSON."""
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": sent.error["code"],
        "domain": "adcontextprotocol.org",
        "metadata": {KEY: sent.error, **sent.beside},
    }
    return {
        "error": {
            "code": status,
            "status": _STATUS.get(status, "UNKNOWN"),
            "message": sentence(sent.error),
            "details": [info],
        }
    }
