"""
Recovery for aiohttp, as a client middleware.

    import aiohttp
    from amends.bindings.aiohttp import recovering

    session = aiohttp.ClientSession(middlewares=[recovering()])

Works like `amends.bindings.httpx`. aiohttp's own `total` time-out includes all attempts: give the session a longer one,
or set a deadline in the policy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

try:
    import aiohttp
    from aiohttp.base_protocol import BaseProtocol
    from aiohttp.payload import BytesPayload
except ImportError as missing:
    raise ImportError("amends.bindings.aiohttp needs aiohttp: pip install aiohttp") from missing

from amends.core.policy import DEFAULT, Policy
from amends.errors.base import FaultError
from amends.http.calls import LIMIT, Call, CallOptions
from amends.recovery.drivers import arecover
from amends.recovery.upstream import Upstream

__all__ = ["recovering"]

Handler = Callable[[aiohttp.ClientRequest], Awaitable[aiohttp.ClientResponse]]
Middleware = Callable[[aiohttp.ClientRequest, Handler], Awaitable[aiohttp.ClientResponse]]


def recovering(
    *,
    policy: Policy = DEFAULT,
    upstream: Upstream | None = None,
    keys: bool = True,
    keyed: bool | None = None,
    raises: str = "fault",
    headers: Callable[[], Mapping[str, str]] | None = None,
    refresh: Callable[..., Any] | None = None,
    verify: Callable[..., Any] | None = None,
) -> Middleware:
    """Return a client middleware that sends with recovery; takes the arguments of `httpx.AsyncTransport` here."""
    options = CallOptions(
        policy=policy,
        upstream=upstream,
        keys=keys,
        keyed=keyed,
        raises=raises,
        headers=headers,
        refresh=refresh,
        verify=verify,
    )

    async def middleware(request: aiohttp.ClientRequest, handler: Handler) -> aiohttp.ClientResponse:
        response: aiohttp.ClientResponse = await _send(request, handler, options)
        return response

    return middleware


async def _send(
    request: aiohttp.ClientRequest, handler: Handler, options: CallOptions, key: str | None = None
) -> Any:
    call = Call(
        options,
        method=request.method,
        origin=str(request.url.origin()),
        path=request.url.raw_path,
        headers=request.headers,
        replayable=not request.body or isinstance(request.body, BytesPayload),
        key=key,
    )

    async def attempt() -> Any:
        request.headers.update(call.attempt_headers())
        return await _raise_for_failure(await handler(request), call)

    try:
        return await arecover(attempt, **call.recover_options())
    except FaultError as error:
        return await call.aresolve(error, lambda again, new: _send(request, handler, again, new))


async def _raise_for_failure(response: aiohttp.ClientResponse, call: Call) -> aiohttp.ClientResponse:
    """
    Return the response, or raise its typed error if the status is 400 or more.

    The body of a failed response is read up to a limit, and the response then contains what was read. aiohttp
    decompresses while it reads, so the limit applies to the decompressed body.
    """
    call.answered(response.headers)
    if response.status < 400:
        return response
    read, body = bytearray(), None
    try:
        async for part in response.content.iter_chunked(65536):
            read += part
            if len(read) > LIMIT:
                response.close()
                break
        else:
            body = bytes(read)
    except aiohttp.ClientError:
        # The connection broke; the status is known all the same.
        response.close()
    loop = asyncio.get_running_loop()
    content = aiohttp.StreamReader(BaseProtocol(loop), limit=2 * LIMIT, loop=loop)
    content.feed_data(bytes(read))
    content.feed_eof()
    response.content = content
    raise call.error(response.status, response.headers, body, response)
