"""What the ASGI middlewares share: reading a request from its scope, and sending a response."""

from __future__ import annotations

from collections.abc import Iterable

from amends.http.application_errors import exception_response
from amends.http.asgi_types import Scope, Send
from amends.http.request_info import RequestInfo
from amends.http.responses import RawResponse, Settings

__all__ = [
    "ECHO",
    "FAULT",
    "LATE",
    "encode_headers",
    "exception_answer",
    "header",
    "request_info",
    "send_response",
]


FAULT = "amends.fault"
"""The scope's key for the fault of the response, for the middlewares around."""
LATE = "amends.late"
"""The key of the scope for an exception that was raised after the response had begun, and is logged."""
ECHO = "amends.echo"
"""The scope's key for the idempotency key of a request whose exception left `Idempotent`: the answer has to carry it."""


WEBSOCKET = "WEBSOCKET"
"""What logs name as the method of a connection that is a WebSocket."""
_SCHEMES = {"ws": "http", "wss": "https"}
"""The scheme of the error pages of a WebSocket."""


def request_info(scope: Scope) -> RequestInfo:
    """Return the parts of a request that an error response depends on."""
    root = scope.get("root_path", "")
    path = scope["path"]
    # ASGI's path includes the root; some servers leave it out.
    if root and path.startswith(root) and path[len(root) : len(root) + 1] in {"", "/"}:
        path = path[len(root) :] or "/"
    headers = dict(scope["headers"])
    server, port = scope.get("server") or ("", None)
    bound = f"[{server}]" if ":" in server else server
    host = headers.get(b"host")
    scheme: str = scope.get("scheme", "http")
    address = f"{bound}:{port}" if host is None and port else bound if host is None else str(host, "latin-1")
    return RequestInfo(
        # A handler of a WebSocket may do anything, so it does not count as a request that only reads.
        method=scope.get("method", WEBSOCKET),
        path=path,
        query=str(scope.get("query_string", b""), "latin-1"),
        root=root,
        scheme=_SCHEMES.get(scheme, scheme),
        host=address,
        server=bound,
        accept=_text(headers.get(b"accept")),
        traceparent=_text(headers.get(b"traceparent")),
        left=_text(headers.get(b"amends-left")),
        timeout=_text(headers.get(b"request-timeout")),
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else str(value, "latin-1")


def header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str | None:
    """Return the value of a header, or None."""
    for each, value in headers:
        if each.lower() == name:
            return str(value, "latin-1")
    return None


def exception_answer(
    scope: Scope, exc: BaseException, settings: Settings, headers: Iterable[tuple[str, str]] = ()
) -> RawResponse:
    """Return the response for an exception, with the given headers, and store its fault in the scope."""
    added = [*headers]
    if ECHO in scope and not any(name.lower() == "idempotency-key" for name, _ in added):
        added.append(("idempotency-key", str(scope[ECHO], "latin-1")))
    scope[FAULT], response = exception_response(exc, request_info(scope), settings, added)
    return response


async def send_response(scope: Scope, send: Send, response: RawResponse) -> None:
    """Send a response. A HEAD request gets the headers and an empty body."""
    await send(
        {
            "type": "http.response.start",
            "status": response.status,
            "headers": encode_headers(response.headers),
        }
    )
    body = b"" if scope.get("method") == "HEAD" else response.body
    await send({"type": "http.response.body", "body": body, "more_body": False})


def encode_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Encode headers for ASGI. Line breaks in a value become spaces, and characters outside Latin-1 "?"."""
    return [
        (
            name.lower().encode("latin-1"),
            value.replace("\r", " ").replace("\n", " ").encode("latin-1", "replace"),
        )
        for name, value in headers
    ]
