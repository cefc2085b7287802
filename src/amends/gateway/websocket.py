"""WebSockets pass through: messages in both directions, and how the connection was closed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import aiohttp
from yarl import URL

from amends.core import recording
from amends.foreign import from_exception
from amends.gateway.headers import BadRequest, request_headers, traverses
from amends.serving.tracing import trace_id

__all__ = ["relay"]

_OWN = frozenset(
    {"sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions", "sec-websocket-protocol"}
)
_LARGEST = 16 * 1024 * 1024


async def relay(
    upstream: Any,
    scope: MutableMapping[str, Any],
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    rest: bytes,
) -> None:
    """Connect to the upstream, accept the caller, and pass messages on until either side closes."""
    await receive()
    try:
        headers = request_headers(scope["headers"])
        if traverses(rest):
            raise BadRequest("the path leaves its prefix")  # noqa: TRY301
    except BadRequest:
        await send({"type": "websocket.close", "code": 1008})
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
        name = f"WEBSOCKET {rest.decode('latin-1')}"
        trace = trace_id(headers.traceparent)
        recording.emit(
            "gateway",
            "passed-on",
            from_exception(error),
            name=name,
            upstream=upstream.config.name,
            trace_id=trace,
        )
        await send({"type": "websocket.close", "code": 1013})
        return
    await send({"type": "websocket.accept", "subprotocol": peer.protocol})
    outward = asyncio.ensure_future(_to_upstream(peer, receive))
    inward = asyncio.ensure_future(_to_caller(peer, send))
    try:
        await asyncio.wait([outward, inward], return_when=asyncio.FIRST_COMPLETED)
        if inward.done() and not outward.done():
            code = peer.close_code
            await send(
                {"type": "websocket.close", "code": code if code and code not in {1005, 1006} else 1011}
            )
    finally:
        for task in (outward, inward):
            task.cancel()
        await asyncio.gather(outward, inward, return_exceptions=True)
        await peer.close()


async def _to_upstream(peer: Any, receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
    while True:
        message = await receive()
        if message["type"] != "websocket.receive":
            code = message.get("code") or 1000
            await peer.close(code=code if code not in {1005, 1006} else 1000)
            return
        text = message.get("text")
        if text is not None:
            await peer.send_str(text)
        else:
            await peer.send_bytes(message["bytes"])


async def _to_caller(peer: Any, send: Callable[[MutableMapping[str, Any]], Awaitable[None]]) -> None:
    async for message in peer:
        if message.type is aiohttp.WSMsgType.TEXT:
            await send({"type": "websocket.send", "text": message.data})
        elif message.type is aiohttp.WSMsgType.BINARY:
            await send({"type": "websocket.send", "bytes": message.data})
