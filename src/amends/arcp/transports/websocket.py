"""
WebSockets, one text frame per envelope (v1.0, section 4.1). Needs the extra `arcp`.

Frames are not compressed: they are small and many, and compression would cost more than everything else together. By
default a server accepts no connection from a browser (`origins`), and a client sends no token over an unencrypted
connection, except to its own machine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from amends.arcp.transports.connection import Connection, ConnectionLost, Serves, Take
from amends.arcp.wire.envelope import MAX_FRAME
from amends.proof import Claim, Proof, rests_on

try:
    from websockets.asyncio.client import connect as _websockets_connect
    from websockets.asyncio.server import serve as _serve
    from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

    from amends.arcp.transports.dial_errors import PATH, dial_error, shown_url
    from amends.arcp.transports.text_frames import ClientSocket, ServerSocket, text_frame
except ImportError as error:  # pragma: no cover - tests run with the extra
    raise ImportError(
        "ARCP over WebSocket needs websockets: pip install 'amends[arcp]'", name="websockets"
    ) from error

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = [
    "PATH",
    "Listening",
    "WebSocketConnection",
    "check_url",
    "dial",
    "is_local",
    "serve",
    "shown_url",
]


class _Connect(_websockets_connect):
    """Follows a redirect only to another path of the same server: the token is for the server that was named."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        """Return the address to connect to, or the exception to raise."""
        target = super().process_redirect(exc)
        if isinstance(target, str) and urlsplit(target)[:2] != urlsplit(self.uri)[:2]:
            return exc
        return target


_CLOSING = 2.0
"""Seconds for the other side to confirm a close."""
_MOUNTED = frozenset({403, 404})
"""How servers answer if an application is mounted at the path with a slash at its end."""
_KEEPALIVE = 30.0
"""Seconds between WebSocket pings, for peers without ARCP heartbeats."""
_SETTINGS: dict[str, Any] = {
    "compression": None,
    "close_timeout": _CLOSING,
    "ping_interval": _KEEPALIVE,
    "ping_timeout": _KEEPALIVE,
}
_ROOM = 64 * 1024
"""Bytes in the socket's buffer above which `post` does not write."""


class WebSocketConnection:
    """A WebSocket as a `Connection`."""

    __slots__ = ("_masked", "_socket", "_transport", "peer")

    def __init__(self, socket: ClientSocket | ServerSocket, max_frame: int = MAX_FRAME) -> None:
        """Wrap a connection of either side after its handshake; `max_frame` is its `max_size`."""
        response = socket.response
        # Extensions, such as compression, change the frames; the library reads and writes those.
        if response is not None and "Sec-WebSocket-Extensions" not in response.headers:
            socket.read_frames(max_frame)
        self._socket = socket
        self._transport = socket.transport
        self._masked = isinstance(socket, ClientSocket)
        address = socket.remote_address
        self.peer = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else "websocket"

    @property
    def close_code(self) -> int | None:
        """The code with which the connection was closed; None while it is open."""
        return self._socket.close_code

    async def send(self, data: bytes) -> None:
        """Send one text frame, and wait while the other side is slow."""
        await self.send_all((data,))

    async def send_all(self, frames: Sequence[bytes]) -> None:
        """Send several frames, at once if there is room, else one after the other."""
        if self.post(frames):
            return
        try:
            for frame in frames:
                await self._socket.send(frame, text=True)
        except ConnectionClosed:
            raise ConnectionLost("the WebSocket is closed") from None

    def post(self, frames: Sequence[bytes]) -> bool:
        """Send frames at once, if the socket is open and has room."""
        transport = self._transport
        if not self._socket.direct or transport.is_closing() or transport.get_write_buffer_size() > _ROOM:
            return False
        # One write for all frames: with the library's `send`, the three frames of a job take 84 µs of CPU instead of 65.
        transport.write(b"".join([text_frame(frame, masked=self._masked) for frame in frames]))
        return True

    async def receive(self) -> bytes | None:
        """The next frame, or None if the connection has ended."""
        return await self._socket.receive_frame()

    async def receive_into(self, take: Take) -> bool:
        """Pass every frame to a function as soon as it arrives, until that returns False."""
        return await self._socket.receive_into(take)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the WebSocket; waits only briefly for the other side."""
        await self._socket.close(code, reason[:100])


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
    insecure: bool = False,
    **options: Any,
) -> AsyncIterator[Listening]:
    """
    Serve a runtime on a WebSocket.

    Args:
        runtime: an object that serves connections, such as a `Runtime`.
        host: the address to listen on.
        port: 0 for a free port; the yielded object's `url` contains it.
        path: the path of the WebSocket, with or without a slash at its end; others get status 404.
        ssl: a context for `wss:`.
        origins: the origins of web pages that may connect; None means clients that are not browsers, the default.
        max_frame: the most bytes of a frame; a larger one closes the connection.
        insecure: listen beyond this machine without `ssl`, behind a proxy that has TLS.
        options: further arguments of `websockets.serve`.

    Raises:
        ValueError: tokens of other machines would be received unencrypted.

    """
    if ssl is None and not insecure and not is_local(host):
        raise ValueError(
            "tokens of other machines would be sent unencrypted: pass ssl=, or insecure=True behind a proxy with TLS"
        )

    async def handle(socket: Any) -> None:
        await runtime.serve(WebSocketConnection(socket, max_frame))

    def route(connection: Any, request: Any) -> Any:
        if (request.path.partition("?")[0].rstrip("/") or "/") != (path.rstrip("/") or "/"):
            return connection.respond(404, f"Not found: the WebSocket is at {path}\n")
        return None

    settings = _SETTINGS | {"origins": origins} | options
    async with _serve(
        handle,
        host,
        port,
        ssl=ssl,
        process_request=route,
        max_size=max_frame,
        create_connection=ServerSocket,
        **settings,
    ) as server:
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
    Connect to a runtime. A path that a server only has with a slash at its end, as mounted applications do, works too.

    Args:
        url: `wss://host/arcp`, or `ws:` to this machine.
        ssl: your own TLS context.
        max_frame: the most bytes of a frame; a larger one closes the connection.
        insecure: allow sending a token over `ws:` to another machine.
        options: further arguments of `websockets.connect`.

    Raises:
        ConnectionLost: the WebSocket could not be opened; `reason` names the cause.
        ValueError: the URL is invalid, or would send the token unencrypted.

    """
    check_url(url, insecure=insecure)
    # A proxy must be configured explicitly, not by an environment variable.
    settings = _SETTINGS | {"proxy": None} | options
    if ssl is not None:
        settings["ssl"] = ssl

    async def connected(url: str) -> Connection:
        socket: Any = await _Connect(url, max_size=max_frame, create_connection=ClientSocket, **settings)
        return WebSocketConnection(socket, max_frame)

    try:
        try:
            return await connected(url)
        except InvalidStatus as error:
            other = _with_slash(url)
            if error.response.status_code not in _MOUNTED or other is None:
                raise
            try:
                return await connected(other)
            except InvalidStatus:
                raise error from None
    except InvalidURI:
        raise ValueError("not a WebSocket URL: use wss://host/arcp") from None
    except (TimeoutError, OSError, InvalidHandshake, EOFError) as error:
        raise await dial_error(error, url) from None


def _with_slash(url: str) -> str | None:
    """The URL with a slash at the end of its path; None if it has one."""
    parts = urlsplit(url)
    return None if parts.path.endswith("/") else urlunsplit(parts._replace(path=f"{parts.path}/"))


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
    if parts.scheme != "wss" and not insecure and not is_local(host):
        raise ValueError("a token is not sent over ws: to another machine; use wss:, or insecure=True")


@rests_on(Claim.LOCAL, Proof.USER)
def is_local(host: str) -> bool:
    """
    Whether a host is this machine.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("0.0.0.0")
    (True, True, False)
    """
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
