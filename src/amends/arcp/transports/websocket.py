"""
WebSockets, one text frame per envelope (v1.0, section 4.1). Needs the extra `arcp`.

Frames are not compressed: they are small and many, and compression would cost more than everything else together. By
default a server accepts no connection from a browser (`origins`), and a client sends no token over an unencrypted
connection, except to its own machine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from amends.arcp.transports.connection import Connection, ConnectionLost, Serves
from amends.arcp.wire.envelope import MAX_FRAME

try:
    from websockets.asyncio.client import connect as _connect
    from websockets.asyncio.server import serve as _serve
    from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
    from websockets.protocol import Side, State

    from amends.arcp.transports.frames import text_frame
    from amends.arcp.transports.whole import ClientSide, ServerSide
except ImportError as error:  # pragma: no cover - tests run with the extra
    raise ImportError("WebSockets need the extra: pip install 'amends[arcp]'", name="websockets") from error

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["PATH", "Listening", "WebSocketConnection", "check_url", "dial", "serve"]

PATH = "/arcp"
_CLOSING = 2.0
"""Seconds for the other side to confirm a close."""
_KEEPALIVE = 30.0
"""Seconds between WebSocket pings, for peers without ARCP heartbeats."""
_READ = 64 * 1024
"""
Bytes per read. asyncio reads up to 256 KB, and the buffer for that, allocated for every read, is so large that the system maps
and unmaps it each time: three system calls, which cost as much as all other work for a small message.
"""


class WebSocketConnection:
    """A WebSocket as a `Connection`."""

    __slots__ = ("_masked", "_plain", "_protocol", "_socket", "peer")

    def __init__(self, socket: Any) -> None:
        """Wrap a connection of the `websockets` library, of either side."""
        self._socket = socket
        self._protocol = socket.protocol
        self._masked = socket.protocol.side is Side.CLIENT
        self._plain = not socket.protocol.extensions
        if getattr(socket.transport, "max_size", 0) > _READ:
            socket.transport.max_size = _READ
        address = socket.remote_address
        self.peer = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else "websocket"

    async def send(self, data: str | bytes) -> None:
        """Send one text frame, and wait while the other side is slow."""
        await self.send_all((data,))

    async def send_all(self, frames: Sequence[str | bytes]) -> None:
        """Send several frames, and wait for room once."""
        if self.post(frames):
            return
        try:
            # The library's own context for writing: one flush and one wait for all frames.
            async with self._socket.send_context():
                for frame in frames:
                    self._protocol.send_text(_bytes(frame))
        except ConnectionClosed:
            raise ConnectionLost("the WebSocket is closed") from None

    def post(self, frames: Sequence[str | bytes]) -> bool:
        """Send frames at once, if the socket is open and has room."""
        socket, protocol = self._socket, self._protocol
        if protocol.state is not State.OPEN or socket.paused or socket.transport.is_closing():
            return False
        # One write for all frames. An open protocol has nothing else to send: it writes its own frames at once.
        if self._plain:
            masked = self._masked
            socket.transport.write(b"".join([text_frame(_bytes(frame), masked=masked) for frame in frames]))
        else:
            for frame in frames:
                protocol.send_text(_bytes(frame))
            socket.transport.write(b"".join(protocol.data_to_send()))
        return True

    async def receive(self) -> str | bytes | None:
        """The next frame as bytes, or None if the connection has ended."""
        try:
            return await self._socket.recv(decode=False)  # type: ignore[no-any-return]
        except ConnectionClosed:
            return None

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the WebSocket; waits only briefly for the other side."""
        await self._socket.close(code, reason[:100])


def _bytes(frame: str | bytes) -> bytes:
    return frame.encode() if isinstance(frame, str) else frame


class Listening:
    """A running server."""

    def __init__(self, server: Any, secure: bool, path: str) -> None:
        """Created by `serve`."""
        host, port = server.sockets[0].getsockname()[:2]
        self.port: int = port
        shown = f"[{host}]" if ":" in host else host
        self.url = f"{'wss' if secure else 'ws'}://{shown}:{port}{path}"
        """The URL to which clients connect."""


@asynccontextmanager
async def serve(
    runtime: Serves,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    path: str = PATH,
    ssl: SSLContext | None = None,
    origins: Sequence[str | None] | None = (None,),
    max_frame: int = MAX_FRAME,
    **options: Any,
) -> AsyncIterator[Listening]:
    """
    Serve a runtime on a WebSocket.

    Args:
        runtime: an object that serves connections, such as a `Runtime`.
        host: the address to listen on.
        port: 0 for a free port; the yielded object's `url` contains it.
        path: the path of the WebSocket; others get status 404.
        ssl: a context for `wss:`; without one, listen only on this machine, or behind a proxy with TLS.
        origins: the origins of web pages that may connect; None means clients that are not browsers, the default.
        max_frame: the most bytes of a frame; a larger one closes the connection.
        options: further arguments of `websockets.serve`.

    """

    async def handle(socket: Any) -> None:
        await runtime.serve(WebSocketConnection(socket))

    def route(connection: Any, request: Any) -> Any:
        if request.path.partition("?")[0] != path:
            return connection.respond(404, "Not found\n")
        return None

    settings: dict[str, Any] = {
        "compression": None,
        "create_connection": partial(ServerSide, longest=max_frame),
        "max_size": max_frame,
        "close_timeout": _CLOSING,
        "ping_interval": _KEEPALIVE,
        "ping_timeout": _KEEPALIVE,
        "origins": origins,
        **options,
    }
    async with _serve(handle, host, port, ssl=ssl, process_request=route, **settings) as server:
        yield Listening(server, ssl is not None, path)


async def dial(
    url: str,
    *,
    ssl: SSLContext | None = None,
    max_frame: int = MAX_FRAME,
    insecure: bool = False,
    **options: Any,
) -> Connection:
    """
    Connect to a runtime.

    Args:
        url: `wss://host/arcp`, or `ws:` to this machine.
        ssl: your own TLS context.
        max_frame: the most bytes of a frame; a larger one closes the connection.
        insecure: allow sending a token over `ws:` to another machine.
        options: further arguments of `websockets.connect`.

    Raises:
        ConnectionLost: no server answers, or it is not a WebSocket server.
        ValueError: the URL is invalid, or would send the token unencrypted.

    """
    check_url(url, insecure=insecure)
    settings: dict[str, Any] = {
        "compression": None,
        "create_connection": partial(ClientSide, longest=max_frame),
        "max_size": max_frame,
        "close_timeout": _CLOSING,
        "ping_interval": _KEEPALIVE,
        "ping_timeout": _KEEPALIVE,
        # A proxy must be configured explicitly, not by an environment variable.
        "proxy": None,
        **options,
    }
    if ssl is not None:
        settings["ssl"] = ssl
    try:
        return WebSocketConnection(await _connect(url, **settings))
    except InvalidURI:
        raise ValueError("not a WebSocket URL: use wss://host/arcp") from None
    except (TimeoutError, OSError, InvalidHandshake, EOFError):
        # The network's error may contain hosts and addresses, so it is not passed on.
        raise ConnectionLost("no runtime can be reached at this URL") from None


def check_url(url: str, *, insecure: bool = False) -> None:
    """
    Check that a runtime may be dialled at a URL.

    Raises:
        ValueError: the URL is invalid, or would send the token unencrypted.

    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        host = None
    if not host or parts.scheme not in {"ws", "wss"}:
        raise ValueError("not a WebSocket URL: use wss://host/arcp")
    if parts.scheme == "wss" or insecure or host == "localhost":
        return
    try:
        local = ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise ValueError("a token is not sent over ws: to another machine; use wss:, or insecure=True")
