"""ASGI's words for what every middleware here needs: the request as answers know it, and sending an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any

from amends.http.responses import Answer, Asked

__all__ = ["FAULT", "App", "Message", "Receive", "Scope", "Send", "asked", "encoded", "header", "reply"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]

FAULT = "amends.fault"
"""Where the scope keeps the fault that was answered with, for middleware around."""


def asked(scope: Scope) -> Asked:
    """What an answer has to know about a request."""
    headers = scope["headers"]
    root = scope.get("root_path", "")
    path = scope["path"]
    # ASGI's path holds the root in front, though not every server agrees.
    if root and path.startswith(root) and path[len(root) : len(root) + 1] in {"", "/"}:
        path = path[len(root) :] or "/"
    host = accept = traceparent = None
    for name, value in headers:
        if name == b"host":
            host = str(value, "latin-1")
        elif name == b"accept":
            accept = str(value, "latin-1")
        elif name == b"traceparent":
            traceparent = str(value, "latin-1")
    if host is None and scope.get("server"):
        server, port = scope["server"]
        host = f"{server}:{port}" if port else server
    return Asked(
        method=scope["method"],
        path=path,
        root=root,
        scheme=scope.get("scheme", "http"),
        host=host or "",
        accept=accept,
        traceparent=traceparent,
    )


def header(headers: Any, name: bytes) -> str | None:
    """The value of a header, or None."""
    for each, value in headers:
        if each == name or each.lower() == name:
            return str(value, "latin-1")
    return None


async def reply(scope: Scope, send: Send, found: Answer) -> None:
    """Send an answer. HEAD gets the headers of what GET would get."""
    await send(
        {
            "type": "http.response.start",
            "status": found.status,
            "headers": encoded(found.headers),
        }
    )
    body = b"" if scope["method"] == "HEAD" else found.body
    await send({"type": "http.response.body", "body": body, "more_body": False})


def encoded(headers: list[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Headers as ASGI has them: whatever got into a value, it stays one line of Latin-1."""
    return [_short(*each) if len(each[1]) <= _SHORT else _encoded(*each) for each in headers]


def _encoded(name: str, value: str) -> tuple[bytes, bytes]:
    if "\n" in value or "\r" in value:
        value = value.replace("\r", " ").replace("\n", " ")
    return name.lower().encode("latin-1"), value.encode("latin-1", "replace")


# Nearly every answer has the same few, so these are written once.
_SHORT = 64
_short = lru_cache(maxsize=256)(_encoded)
