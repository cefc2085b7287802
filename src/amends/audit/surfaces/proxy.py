"""
The proxy between the audit's client and the service: the gateway, with answers that are lost, held back or cut.

The client calls it in this process, so it opens no port. The gateway forwards to the named address only, tries once, and
changes nothing. An application that is audited in this process is called without the gateway.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Literal, Self

from amends.audit.surfaces.evidence import Answer
from amends.audit.surfaces.exchange import MAX_BODY, Exchange, decompressed, httpx
from amends.core.policy import Policy
from amends.http.asgi_types import App, Message, Receive, Scope

if TYPE_CHECKING:
    from amends.gateway import Gateway

__all__ = ["DISTURBANCES", "MISSING", "Proxy", "ProxySocket", "between", "gateway_to", "repeated"]

DISTURBANCES = {
    "lost-answer": "whose answer was lost",
    "slow-answer": "whose answer came too late",
    "cut-stream": "whose answer was cut",
}
"""What the proxy does to an answer, with the words for the report."""
MISSING = "needs the gateway: pip install 'amends[gateway]'"
SESSION = b"mcp-session-id"
_LATE = 0.3
"""Seconds after which the client gives up a slow answer."""
_END = 1.0
"""Seconds that an application has to end after its caller left."""
_CLIENT = ("127.0.0.1", 1)


class Proxy(httpx.AsyncBaseTransport):
    """
    Sends requests to an ASGI application. `mode` is the disturbance of the next answers.

    Args:
        app: the application; the gateway, or the one that is audited.
        cancels: a caller that leaves ends the call at once, as in the gateway's server; others get ASGI's http.disconnect.

    """

    def __init__(self, app: App, *, cancels: bool) -> None:
        self.app = app
        self.mode = ""
        """Empty, one of DISTURBANCES, or "lost-session": the session's id is replaced, as after a restart."""
        self.last: httpx.Response | None = None
        """The last answer of the service, also if the client did not get it."""
        self._cancels = cancels

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Forward a request; raise what a client library raises if the answer does not arrive."""
        answer = _Received()
        body = await request.aread()
        task = asyncio.ensure_future(self.app(self._scope(request), _receiver(body, answer), answer.take))
        try:
            if self.mode == "cut-stream":
                await _first(task, answer.begun)
                raise httpx.RemoteProtocolError("the proxy cut the answer", request=request)
            if self.mode == "slow-answer":
                await _first(task, answer.begun)
                await asyncio.sleep(_LATE)
                raise httpx.ReadTimeout("the proxy held the answer back", request=request)
            await _first(task, answer.complete)
        finally:
            await self._leave(task, answer)
        self.last = answer.response()
        if self.mode == "lost-answer":
            raise httpx.ReadError("the proxy lost the answer", request=request)
        return self.last

    async def _leave(self, task: asyncio.Future[None], answer: _Received) -> None:
        """Close the connection, and wait for the application's end."""
        left = not answer.complete.is_set() or answer.too_large
        answer.complete.set()
        if not (left and self._cancels):
            await asyncio.wait([task], timeout=_END)
        task.cancel()
        with suppress(BaseException):
            await task

    def _scope(self, request: httpx.Request) -> Scope:
        headers = [(name.lower(), value) for name, value in request.headers.raw]
        if self.mode == "lost-session":
            headers = [
                (name, b"amends-audit-forgotten" if name == SESSION else value) for name, value in headers
            ]
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "headers": headers,
            "scheme": request.url.scheme,
            "path": request.url.path,
            "raw_path": request.url.raw_path.partition(b"?")[0],
            "query_string": request.url.query,
            "server": (request.url.host, request.url.port),
            "client": _CLIENT,
            "root_path": "",
        }


class _Received:
    """What the application sent so far."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = bytearray()
        self.begun = asyncio.Event()
        """The first bytes of the body, or its end."""
        self.complete = asyncio.Event()

    async def take(self, message: Message) -> None:
        """ASGI's `send`."""
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            if not self.too_large:
                self.body += message.get("body", b"")
            if self.body or not message.get("more_body", False):
                self.begun.set()
            if not message.get("more_body", False) or self.too_large:
                self.complete.set()

    @property
    def too_large(self) -> bool:
        """Whether the rest is not read."""
        return len(self.body) > MAX_BODY

    def response(self) -> httpx.Response:
        """Return it as the client's library has it, decompressed."""
        coding = dict(self.headers).get(b"content-encoding", b"").decode("latin-1")
        headers = [(name, value) for name, value in self.headers if name != b"content-encoding"]
        return httpx.Response(
            self.status or 500, headers=headers, content=decompressed(bytes(self.body), coding)
        )


def _receiver(body: bytes, answer: _Received) -> Receive:
    parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if parts:
            return parts.pop()
        await answer.complete.wait()
        return {"type": "http.disconnect"}

    return receive


async def _first(task: asyncio.Future[None], event: asyncio.Event) -> None:
    """Wait for an event of the answer, or for the end of the application."""
    waiting = asyncio.ensure_future(event.wait())
    both: list[asyncio.Future[None] | asyncio.Task[Literal[True]]] = [task, waiting]
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


@asynccontextmanager
async def gateway_to(url: str = "", *, command: Sequence[str] = ()) -> AsyncIterator[Gateway | None]:
    """Run the gateway in this process, in front of a URL or of an MCP server's command. None if it is not installed."""
    try:
        from amends.gateway import Gateway, GatewayConfig, UpstreamConfig
    except ImportError:
        yield None
        return
    # A server's own log would be mixed with the report.
    quiet = ("sh", "-c", 'exec "$@" 2>/dev/null', "sh", *command) if command else ()
    upstream = UpstreamConfig(
        name="audited",
        kind="stdio" if command else "http",
        url=url,
        command=quiet,
        policy=Policy(attempts=1),
        connect_timeout=5.0,
        timeout=10.0,
    )
    gateway = Gateway(GatewayConfig(upstreams=(upstream,)))
    recovery = logging.getLogger("amends.recovery")
    recovery.addFilter(_drop)  # what it says about provoked failures is in the report
    try:
        yield gateway
    finally:
        recovery.removeFilter(_drop)
        await gateway.close()


def _drop(record: logging.LogRecord) -> bool:
    return False


@asynccontextmanager
async def between(exchange: Exchange) -> AsyncIterator[tuple[Exchange, Proxy] | None]:
    """Put the proxy in front of a service: a client of it that shares the exchange's limits, and the proxy. None: no gateway."""
    app_or_gateway = gateway_to(exchange.origin) if exchange.app is None else nullcontext(exchange.app)
    async with app_or_gateway as app:
        if app is None:
            yield None
            return
        proxy = Proxy(app, cancels=exchange.app is None)
        async with Exchange(
            exchange.base, exchange.headers, exchange.app, transport=proxy, budget=exchange.budget
        ) as through:
            yield through, proxy


def repeated(probe: str, sent: str, before: object, after: object, shown: str = "") -> Answer:
    """Return the entry of a request that was sent again: it has to be answered as before."""
    if before == after:
        return Answer(probe=probe, sent=sent, outcome="recovered", text=shown)
    because = f"answered with {after}, before with {before}"
    return Answer(probe=probe, sent=sent, outcome="stuck", because=because, text=shown or because)


class ProxySocket:
    """A WebSocket through the gateway. Leaving the block cuts the connection without a closing frame of ours."""

    def __init__(self, gateway: App, path: str, headers: Mapping[str, str]) -> None:
        self._gateway, self._path, self._headers = gateway, path, headers
        self._inward: asyncio.Queue[Message] = asyncio.Queue()
        self._outward: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        scope = {
            "type": "websocket",
            "path": self._path,
            "raw_path": self._path.encode(),
            "query_string": b"",
            "headers": [
                (b"host", b"localhost"),
                *((n.lower().encode(), v.encode()) for n, v in self._headers.items()),
            ],
            "subprotocols": [],
            "client": _CLIENT,
        }
        self._inward.put_nowait({"type": "websocket.connect"})
        self._task = asyncio.ensure_future(self._gateway(scope, self._inward.get, self._outward.put))
        await self._next("websocket.accept")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(BaseException):
            await self._task

    async def send(self, text: str) -> None:
        """Send a text frame."""
        await self._inward.put({"type": "websocket.receive", "text": text})

    async def recv(self) -> str | bytes:
        """
        Return the next frame.

        Raises:
            ConnectionResetError: the runtime closed the connection.

        """
        message = await self._next("websocket.send")
        text = message.get("text")
        return text if isinstance(text, str) else bytes(message.get("bytes") or b"")

    async def _next(self, kind: str) -> Message:
        message = await self._outward.get()
        if message["type"] != kind:
            raise ConnectionResetError("the connection was closed")
        return message
