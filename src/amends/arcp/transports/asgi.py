"""
A runtime in an ASGI application: mount `endpoint(runtime)` at the path of its WebSocket.

    app = Starlette(routes=[Mount("/arcp", app=endpoint(runtime))])
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from amends.arcp.transports.connection import Connection, ConnectionLost, Serves
from amends.arcp.wire.envelope import MAX_FRAME

__all__ = ["AsgiConnection", "Endpoint", "endpoint"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class AsgiConnection(Connection):
    """An ASGI WebSocket as a `Connection`."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, max_frame: int) -> None:
        """Wrap an accepted WebSocket."""
        client = scope.get("client")
        self.peer = f"{client[0]}:{client[1]}" if client else "asgi"
        self._receive = receive
        self._send = send
        self._max_frame = max_frame
        self._closed = False
        # The server sends frames in the order of its calls, so they must not overlap.
        self._turn = asyncio.Lock()

    async def send(self, data: bytes) -> None:
        """Send one text frame."""
        async with self._turn:
            if self._closed:
                raise ConnectionLost("the WebSocket is closed")
            try:
                await self._send({"type": "websocket.send", "text": data.decode()})
            except (OSError, RuntimeError):
                # Servers raise either of them after the client has disconnected.
                self._closed = True
                raise ConnectionLost("the WebSocket is closed") from None

    async def send_all(self, frames: Sequence[bytes]) -> None:
        """Send several frames in order."""
        for frame in frames:
            await self.send(frame)

    def post(self, frames: Sequence[bytes]) -> bool:
        """Return False: an ASGI server can only be awaited."""
        return False

    async def receive(self) -> str | bytes | None:
        """The next frame, or None if the connection is closed."""
        if self._closed:
            return None
        message = await self._receive()
        if message["type"] != "websocket.receive":
            self._closed = True
            return None
        text, raw = message.get("text"), message.get("bytes")
        frame: str | bytes = text if text is not None else raw or b""
        if len(frame) > self._max_frame:
            await self.close(1009)
            return None
        return frame

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the WebSocket."""
        async with self._turn:
            if self._closed:
                return
            self._closed = True
            try:
                await self._send({"type": "websocket.close", "code": code, "reason": reason[:100]})
            except (OSError, RuntimeError):
                pass


class Endpoint:
    """An ASGI application that serves one runtime on a WebSocket."""

    def __init__(self, runtime: Serves, origins: Sequence[str | None] | None, max_frame: int) -> None:
        """See `endpoint`."""
        self._runtime = runtime
        self._origins = None if origins is None else frozenset(origins)
        self._max_frame = max_frame

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "http":
            await _upgrade_required(send)
        elif scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        if message["type"] != "websocket.connect":
            return
        if self._origins is not None and _origin(scope) not in self._origins:
            await send({"type": "websocket.close", "code": 1008})
            return
        await send({"type": "websocket.accept"})
        connection = AsgiConnection(scope, receive, send, self._max_frame)
        try:
            await self._runtime.serve(connection)
        finally:
            await connection.close()


def endpoint(
    runtime: Serves, *, origins: Sequence[str | None] | None = (None,), max_frame: int = MAX_FRAME
) -> Endpoint:
    """
    Return an ASGI application for a runtime.

    Args:
        runtime: an object that serves connections, such as a `Runtime`.
        origins: the origins of web pages that may connect; None means clients that are not browsers, the default.
        max_frame: the most characters of a frame; a larger one closes the connection.

    """
    return Endpoint(runtime, origins, max_frame)


def _origin(scope: Scope) -> str | None:
    for name, value in scope.get("headers", ()):
        if name.lower() == b"origin":
            return str(value, "latin-1")
    return None


async def _upgrade_required(send: Send) -> None:
    headers = [(b"content-type", b"text/plain"), (b"upgrade", b"websocket"), (b"connection", b"upgrade")]
    await send({"type": "http.response.start", "status": 426, "headers": headers})
    await send({"type": "http.response.body", "body": b"This is a WebSocket endpoint.\n"})


async def _lifespan(receive: Receive, send: Send) -> None:
    """Answer lifespan messages. The runtime is started and stopped separately."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
