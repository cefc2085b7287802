"""
A runtime inside an ASGI application: mount `endpoint(runtime)` where its WebSocket should be.

    app = Starlette(routes=[Mount("/arcp", app=endpoint(runtime))])
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from amends.arcp.transports.connection import ConnectionLost, Serves
from amends.arcp.wire.envelope import MAX_FRAME

__all__ = ["AsgiConnection", "Endpoint", "endpoint"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class AsgiConnection:
    """An ASGI WebSocket, as a connection."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, max_frame: int) -> None:
        """Take over a WebSocket that was accepted."""
        client = scope.get("client")
        self.peer = f"{client[0]}:{client[1]}" if client else "asgi"
        self._receive = receive
        self._send = send
        self._max_frame = max_frame
        self._closed = False
        # The server's own order of frames is the order of its calls.
        self._turn = asyncio.Lock()

    async def send(self, data: str | bytes) -> None:
        """Send one text frame."""
        text = data if isinstance(data, str) else data.decode()
        async with self._turn:
            if self._closed:
                raise ConnectionLost("the WebSocket is closed")
            try:
                await self._send({"type": "websocket.send", "text": text})
            except (OSError, RuntimeError):
                # Servers say it either way when the other side has gone.
                self._closed = True
                raise ConnectionLost("the WebSocket is closed") from None

    async def send_all(self, frames: Sequence[str | bytes]) -> None:
        """Send several in order."""
        for frame in frames:
            await self.send(frame)

    def post(self, frames: Sequence[str | bytes]) -> bool:
        """Never: an ASGI server is only ever awaited."""
        return False

    async def receive(self) -> str | bytes | None:
        """The next frame, or None."""
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
        """End it."""
        async with self._turn:
            if self._closed:
                return
            self._closed = True
            try:
                await self._send({"type": "websocket.close", "code": code, "reason": reason[:100]})
            except (OSError, RuntimeError):
                pass


class Endpoint:
    """An ASGI application that is one runtime's WebSocket."""

    def __init__(self, runtime: Serves, origins: Sequence[str | None] | None, max_frame: int) -> None:
        """See `endpoint`."""
        self._runtime = runtime
        self._origins = None if origins is None else frozenset(origins)
        self._max_frame = max_frame

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
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
    An ASGI application for a runtime.

    Args:
        runtime: whatever runs a connection to its end.
        origins: which pages' browsers may connect; None stands for what is no browser, and is alone by default.
        max_frame: characters of a frame; a larger one ends the connection.

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
    await send({"type": "http.response.body", "body": b"This is a WebSocket.\n"})


async def _lifespan(receive: Receive, send: Send) -> None:
    """A runtime has its own beginning and end; a server that asks gets its answers."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
