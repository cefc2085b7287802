"""
Recovery for aiohttp, as a client middleware.

    import aiohttp
    from amends.bindings.aiohttp import recovering

    session = aiohttp.ClientSession(middlewares=[recovering()])

Works like `amends.bindings.httpx`. aiohttp's own `total` time-out includes all attempts: give the session a longer one,
or set a deadline in the policy. Put `recovering()` first in the list: middlewares behind it, such as
`aiohttp.DigestAuthMiddleware`, then see every answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Unpack

try:
    import aiohttp
    from aiohttp.payload import BytesPayload
    from yarl import URL
except ImportError as missing:
    raise ImportError("amends.bindings.aiohttp needs aiohttp: pip install aiohttp") from missing

from amends.bindings.aiohttp_responses import GuardedContent, peek, raise_for_failure, recover_whole_body
from amends.errors.base import FaultError
from amends.http.call_bodies import LIMIT, BodyReading
from amends.http.calls import Call, CallOptions, ClientOptions, mistakes_pass, raise_if_mistake
from amends.http.redirects import is_credential, same_party
from amends.recovery.failover import Failover

__all__ = ["recovering"]

Handler = Callable[[aiohttp.ClientRequest], Awaitable[aiohttp.ClientResponse]]
Middleware = Callable[[aiohttp.ClientRequest, Handler], Awaitable[aiohttp.ClientResponse]]


def recovering(
    **named: Unpack[ClientOptions],
) -> Middleware:
    """
    Return a client middleware that sends with recovery; takes the options of all HTTP clients (`amends.http.calls.ClientOptions`).

        async with aiohttp.ClientSession(middlewares=[recovering()]) as session:
            ...
    """
    options = CallOptions.of("recovering", **named)
    if isinstance(options.upstream, Failover):
        raise TypeError(
            "a middleware cannot change the address of its request: use Failover with httpx or requests, or in arecover"
        )

    async def middleware(request: aiohttp.ClientRequest, handler: Handler) -> aiohttp.ClientResponse:
        first = _first_origin(request)
        redirected = not same_party(first, str(request.url))
        if redirected:
            for name in [name for name in request.headers if is_credential(name)]:
                request.headers.popall(name)
        await _read_small_form(request)
        headers = request.headers.copy()
        response: aiohttp.ClientResponse = await _send(request, headers, handler, options, redirected)
        if response.status in _REDIRECTS and "Location" in response.headers:
            _FOLLOWING.set((first, request.url.join(URL(response.headers["Location"]))))
        return response

    return middleware


_SWITCHING_PROTOCOLS = 101
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_FOLLOWING: ContextVar[tuple[str, URL] | None] = ContextVar("amends_aiohttp_redirect", default=None)
"""The first origin of the last request of this task, and the address that its answer redirects to."""


def _first_origin(request: aiohttp.ClientRequest) -> str:
    """
    Return the origin that the request went to before it was redirected, or its own.

    aiohttp makes a new request for each redirect that it follows and hands nothing on. So the next request of the same
    task counts as the redirected one if it goes to the address that the answer named.
    """
    following = _FOLLOWING.get()
    _FOLLOWING.set(None)
    url = request.url
    if following is not None:
        first, target = following
        if (target.origin(), target.path, target.query) == (url.origin(), url.path, url.query):
            return first
    return str(url.origin())


async def _read_small_form(request: aiohttp.ClientRequest) -> None:
    """Read a form with files that is not larger than a body that we keep, so that it can be sent more than once."""
    body = request.body
    if isinstance(body, aiohttp.MultipartWriter) and body.size is not None and body.size <= LIMIT:
        await request.update_body(await body.as_bytes())


async def _send(
    request: aiohttp.ClientRequest,
    headers: Mapping[str, str],
    handler: Handler,
    options: CallOptions,
    redirected: bool,
    key: str | None = None,
) -> aiohttp.ClientResponse:
    content: tuple[str, bytes] | None = None
    asked = options.reuse_keys or request.method == "POST"
    if asked and (not request.body or isinstance(request.body, BytesPayload)):
        content = str(request.url), await request.body.as_bytes() if request.body else b""
    call = Call(
        options,
        method=request.method,
        origin=str(request.url.origin()),
        path=request.url.raw_path,
        headers=headers,
        replayable=not request.body or isinstance(request.body, BytesPayload),
        redirected=redirected,
        key=key,
        content=None if content is None else lambda: content,
    )

    async def send_once() -> tuple[aiohttp.ClientResponse, BodyReading]:
        call.release()
        try:
            request.headers.update(call.attempt_headers())
            # The session's own time-outs do not know of the operation's.
            async with asyncio.timeout(call.timeout):
                response = await handler(request)
        except Exception as error:
            raise_if_mistake(error, (aiohttp.InvalidURL,))
            raise
        await raise_for_failure(response, call)
        await peek(response, call)
        reading = BodyReading(call, call.until)
        if response.status != _SWITCHING_PROTOCOLS:  # the content of a WebSocket is its own
            response.content = GuardedContent(response.content, reading)  # type: ignore[assignment]
        return response, reading

    async def attempt() -> aiohttp.ClientResponse:
        response, reading = await send_once()
        if call.replayable:
            recover_whole_body(response, reading, send_once)
        return response

    try:
        with mistakes_pass():
            response: aiohttp.ClientResponse = await call.arun(attempt)
    except FaultError as error:
        result: aiohttp.ClientResponse = await call.aresolve(
            error, lambda again, new: _send(request, headers, handler, again, redirected, new)
        )
        failed: object = getattr(error, "response", None)
        if result is not failed:
            call.release()
        return result
    call.release()
    return response
