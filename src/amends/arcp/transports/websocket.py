"""
WebSockets, one text frame per envelope (v1.0, section 4.1). Needs the extra `arcp`.

Frames are not compressed: they are small and many, and compressing costs more than everything else together.
A server takes no connection that a browser made for some page (`origins`), and a client sends no token over a line
that others can read, unless it is this machine's own.
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
"""Seconds the other side has to say goodbye."""
_KEEPALIVE = 30.0
"""Seconds between the transport's own pings, for peers that have no heartbeat."""
_READ = 64 * 1024
"""
Bytes that are asked for at once. asyncio asks for 256 KB, and the buffer for that, made anew for every read, is so large
that the system maps it and takes it back each time: three calls, as expensive as all that is done with a small message.
"""


class WebSocketConnection:
    """A WebSocket, as a connection."""

    __slots__ = ("_masked", "_plain", "_protocol", "_socket", "peer")

    def __init__(self, socket: Any) -> None:
        """Take over a connection of the `websockets` library, either side's."""
        self._socket = socket
        self._protocol = socket.protocol
        self._masked = socket.protocol.side is Side.CLIENT
        self._plain = not socket.protocol.extensions
        if getattr(socket.transport, "max_size", 0) > _READ:
            socket.transport.max_size = _READ
        address = socket.remote_address
        self.peer = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else "websocket"

    async def send(self, data: str | bytes) -> None:
        """Send one text frame, waiting while the other side is slow."""
        await self.send_all((data,))

    async def send_all(self, frames: Sequence[str | bytes]) -> None:
        """Send several, and wait for room once."""
        if self.post(frames):
            return
        try:
            # The library's own context for writing: one flush and one wait for all of them.
            async with self._socket.send_context():
                for frame in frames:
                    self._protocol.send_text(_bytes(frame))
        except ConnectionClosed:
            raise ConnectionLost("the WebSocket is closed") from None

    def post(self, frames: Sequence[str | bytes]) -> bool:
        """Write frames now, if the socket has room and is open."""
        socket, protocol = self._socket, self._protocol
        if protocol.state is not State.OPEN or socket.paused or socket.transport.is_closing():
            return False
        # One write for all of them. An open protocol has nothing else to send: what it says itself it has written at once.
        if self._plain:
            masked = self._masked
            socket.transport.write(b"".join([text_frame(_bytes(frame), masked=masked) for frame in frames]))
        else:
            for frame in frames:
                protocol.send_text(_bytes(frame))
            socket.transport.write(b"".join(protocol.data_to_send()))
        return True

    async def receive(self) -> str | bytes | None:
        """The next frame, undecoded, or None."""
        try:
            return await self._socket.recv(decode=False)  # type: ignore[no-any-return]
        except ConnectionClosed:
            return None

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Say goodbye, and go after a moment in any case."""
        await self._socket.close(code, reason[:100])


def _bytes(frame: str | bytes) -> bytes:
    return frame.encode() if isinstance(frame, str) else frame


class Listening:
    """A server that is up."""

    def __init__(self, server: Any, secure: bool, path: str) -> None:
        """What `serve` gives."""
        host, port = server.sockets[0].getsockname()[:2]
        self.port: int = port
        shown = f"[{host}]" if ":" in host else host
        self.url = f"{'wss' if secure else 'ws'}://{shown}:{port}{path}"
        """Where clients connect."""


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
        runtime: whatever runs a connection to its end.
        host: where to listen.
        port: 0 takes a free one; `url` of what is given says which.
        path: any other is answered with 404.
        ssl: a context for `wss:`; without one keep to this machine, or put something in front that has it.
        origins: which pages' browsers may connect; None stands for what is no browser, and is alone by default.
        max_frame: bytes of a frame; a larger one ends the connection.
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
        ssl: a context of your own.
        max_frame: bytes of a frame; a larger one ends the connection.
        insecure: let a token travel over `ws:` to another machine.
        options: further arguments of `websockets.connect`.

    Raises:
        ConnectionLost: when nobody is there, or no runtime.
        ValueError: for a URL that is none, or that would send the token in the clear.

    """
    check_url(url, insecure=insecure)
    settings: dict[str, Any] = {
        "compression": None,
        "create_connection": partial(ClientSide, longest=max_frame),
        "max_size": max_frame,
        "close_timeout": _CLOSING,
        "ping_interval": _KEEPALIVE,
        "ping_timeout": _KEEPALIVE,
        # A proxy is somebody's decision, not an environment variable's.
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
        # What the network said may name hosts and addresses: it stays here.
        raise ConnectionLost("no runtime can be reached at this URL") from None


def check_url(url: str, *, insecure: bool = False) -> None:
    """
    Whether a runtime may be dialled at a URL.

    Raises:
        ValueError: for one that is none, or that would send the token in the clear.

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
