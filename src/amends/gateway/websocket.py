"""WebSockets pass through: messages in both directions, and how the connection was closed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
from yarl import URL

from amends.core import recording
from amends.foreign import from_exception
from amends.gateway.headers import BadRequest, request_headers, response_headers, traverses
from amends.gateway.refusals import FACTS
from amends.http.asgi_types import Receive, Scope, Send
from amends.serving.tracing import trace_id

if TYPE_CHECKING:
    from amends.gateway.http_upstream import HttpUpstream

__all__ = ["relay"]

_OWN = frozenset(
    {"sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions", "sec-websocket-protocol"}
)
_BODY = frozenset({b"content-length", b"content-type", b"content-encoding"})
_LARGEST = 16 * 1024 * 1024
_NORMAL, _NO_STATUS, _ABNORMAL = 1000, 1005, 1006
_NO_FRAME = frozenset({_NO_STATUS, _ABNORMAL})
"""Codes that no frame can have: the other side closed without a code, or without a frame."""
_LOST_UPSTREAM, _LOST_CALLER = 1011, 1001
_REASON = 123
"""The most bytes that a frame has for a reason."""


async def relay(upstream: HttpUpstream, scope: Scope, receive: Receive, send: Send, rest: bytes) -> None:
    """Connect to the upstream, accept the caller, and pass messages on until either side closes."""
    await receive()
    stats = upstream.stats
    stats.calls += 1
    if upstream.config.kind == "stdio":
        stats.refused += 1
        await _deny(send, scope, 405, [])
        return
    crowd = upstream.crowd
    if crowd.in_flight >= crowd.limit:
        stats.refused += 1
        await _deny(send, scope, 503, [(b"retry-after", b"1")])
        return
    crowd.enter(None)
    try:
        await _relay(upstream, scope, receive, send, rest)
    finally:
        crowd.leave(None)


async def _relay(upstream: HttpUpstream, scope: Scope, receive: Receive, send: Send, rest: bytes) -> None:
    try:
        headers = request_headers(scope["headers"])
        if traverses(rest):
            raise BadRequest("the path leaves its prefix")  # noqa: TRY301
    except BadRequest:
        upstream.stats.refused += 1
        await _deny(send, scope, 400, [])
        return
    query = scope["query_string"].decode("latin-1")
    url = URL(f"{upstream.base}{rest.decode('latin-1')}{f'?{query}' if query else ''}", encoded=True)
    try:
        peer = await upstream.session.ws_connect(
            url,
            headers=[(name, value) for name, value in headers.sent if name not in _OWN],
            protocols=tuple(scope.get("subprotocols", ())),
            max_msg_size=_LARGEST,
            autoping=True,
            timeout=aiohttp.ClientWSTimeout(ws_close=5.0),
        )
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        await _pass_refusal(upstream, error, headers.traceparent, send, scope, rest)
        return
    await send({"type": "websocket.accept", "subprotocol": peer.protocol})
    outward = asyncio.ensure_future(_to_upstream(peer, receive))
    inward = asyncio.ensure_future(_to_caller(peer, send))
    try:
        await asyncio.wait([outward, inward], return_when=asyncio.FIRST_COMPLETED)
        if inward.done() and not outward.done():
            code = peer.close_code
            closed = code if code and code not in _NO_FRAME else _LOST_UPSTREAM
            reason = "" if inward.cancelled() or inward.exception() else inward.result()
            await send({"type": "websocket.close", "code": closed, "reason": reason})
    finally:
        for task in (outward, inward):
            task.cancel()
        await asyncio.gather(outward, inward, return_exceptions=True)
        await peer.close()


async def _pass_refusal(
    upstream: HttpUpstream,
    error: Exception,
    traceparent: str | None,
    send: Send,
    scope: Scope,
    rest: bytes,
) -> None:
    """Answer the caller's handshake as the upstream answered it; with 502 or 504 if it gave no answer."""
    fault = from_exception(error)
    upstream.stats.failed_with(fault.code)
    trace = trace_id(traceparent)
    name = f"WEBSOCKET {rest.decode('latin-1')}"
    recording.emit("gateway", "passed-on", fault, name=name, upstream=upstream.config.name, trace_id=trace)
    facts = [(FACTS["upstream"], upstream.config.name.encode()), (FACTS["trace"], trace.encode())]
    if isinstance(error, aiohttp.WSServerHandshakeError) and error.status >= 300:
        raw = [
            (name.encode(), value.encode("utf-8", "surrogateescape"))
            for name, value in (error.headers or {}).items()
        ]
        # The client library does not keep the body.
        kept = [each for each in response_headers(raw, error.status) if each[0] not in _BODY]
        await _deny(send, scope, error.status, [*kept, *facts])
        return
    await _deny(send, scope, 504 if fault.code == "TIMEOUT" else 502, facts)


async def _deny(send: Send, scope: Scope, status: int, headers: list[tuple[bytes, bytes]]) -> None:
    """Refuse a handshake with a status, or with a close if the server cannot send one."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1013})
        return
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": b""})


async def _to_upstream(peer: aiohttp.ClientWebSocketResponse, receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] != "websocket.receive":
            code = message.get("code") or _NO_STATUS
            # A caller that is gone has not ended the conversation: the upstream must not take it for complete.
            # uvicorn reports both as 1005, and a frame without a code with its empty reason.
            framed = code not in _NO_FRAME or (code == _NO_STATUS and "reason" in message)
            closed = (_NORMAL if code == _NO_STATUS else code) if framed else _LOST_CALLER
            await peer.close(code=closed, message=str(message.get("reason") or "").encode()[:_REASON])
            return
        text = message.get("text")
        if text is not None:
            await peer.send_str(text)
        else:
            await peer.send_bytes(message["bytes"])


async def _to_caller(peer: aiohttp.ClientWebSocketResponse, send: Send) -> str:
    """Pass messages on until the upstream closes; return the reason that it gave."""
    while True:
        message = await peer.receive()
        if message.type is aiohttp.WSMsgType.TEXT:
            await send({"type": "websocket.send", "text": message.data})
        elif message.type is aiohttp.WSMsgType.BINARY:
            await send({"type": "websocket.send", "bytes": message.data})
        elif message.type is aiohttp.WSMsgType.CLOSE:
            return message.extra if isinstance(message.extra, str) else ""
        else:
            return ""
