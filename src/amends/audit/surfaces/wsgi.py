"""A WSGI application, such as Flask's or Django's, as an ASGI application: for audits in one process without sockets."""

from __future__ import annotations

import asyncio
import inspect
import io
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from amends.http.asgi_types import App, Receive, Scope, Send

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = ["AnyApp", "WsgiApp", "as_asgi", "is_wsgi"]


WsgiCallable = Callable[..., Iterable[bytes]]
"""A WSGI application: frameworks declare their own types for its two arguments."""
AnyApp = App | WsgiCallable


def as_asgi(app: AnyApp) -> App:
    """Return an application as an ASGI application."""
    return WsgiApp(app) if is_wsgi(app) else app


def is_wsgi(app: AnyApp) -> TypeIs[WsgiCallable]:
    """Return whether an application takes WSGI's two arguments instead of ASGI's three."""
    try:
        inspect.signature(app).bind({}, None)
    except (TypeError, ValueError):
        return False
    return True


class WsgiApp:
    """Calls a WSGI application in a thread, one request at a time."""

    def __init__(self, app: WsgiCallable) -> None:
        self._app = app

    async def __call__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
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

    def _call(self, environ: dict[str, object]) -> tuple[int, list[tuple[str, str]], bytes]:
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(
            status: str, headers: list[tuple[str, str]], exc_info: object = None
        ) -> Callable[[bytes], object]:
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


def _environ(scope: Scope, body: bytes) -> dict[str, object]:
    host, port = scope["server"]
    environ: dict[str, object] = {
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
