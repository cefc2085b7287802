"""A WSGI application, such as Flask's or Django's, as an ASGI application: for audits in one process without sockets."""

from __future__ import annotations

import asyncio
import inspect
import io
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

__all__ = ["WsgiApp", "is_wsgi"]


def is_wsgi(app: Any) -> bool:
    """Return whether an application takes WSGI's two arguments instead of ASGI's three."""
    try:
        inspect.signature(app).bind({}, None)
    except (TypeError, ValueError):
        return False
    return True


class WsgiApp:
    """Calls a WSGI application in a thread, one request at a time."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        """Handle one request."""
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        status, headers, content = await asyncio.to_thread(self._call, _environ(scope, body))
        encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        await send({"type": "http.response.start", "status": status, "headers": encoded})
        await send({"type": "http.response.body", "body": content})

    def _call(self, environ: dict[str, Any]) -> tuple[int, list[tuple[str, str]], bytes]:
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(
            status: str, headers: list[tuple[str, str]], exc_info: Any = None
        ) -> Callable[[bytes], Any]:
            started.append((status, headers))
            return written.append

        written: list[bytes] = []
        result = self._app(environ, start_response)
        try:
            content = b"".join([*written, *result])
        finally:
            close = getattr(result, "close", None)
            if close is not None:
                close()
        status, headers = started[-1]
        return int(status.split(" ", 1)[0]), headers, content


def _environ(scope: MutableMapping[str, Any], body: bytes) -> dict[str, Any]:
    host, port = scope["server"]
    environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("ascii"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port or 80),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in scope["headers"]:
        key = name.decode("latin-1").upper().replace("-", "_")
        environ[key if key == "CONTENT_TYPE" else f"HTTP_{key}"] = value.decode("latin-1")
    return environ
