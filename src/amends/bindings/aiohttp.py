"""
aiohttp: one client middleware, and calls recover within bounds.

    import aiohttp
    from amends.bindings.aiohttp import recovering

    session = aiohttp.ClientSession(middlewares=[recovering()])

The same as `amends.bindings.httpx`. aiohttp's own `total` time-out counts over all attempts: give the session a longer
one, or the policy a deadline.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

try:
    import aiohttp
    from aiohttp.payload import BytesPayload
except ImportError as missing:
    raise ImportError("amends.bindings.aiohttp needs aiohttp: pip install aiohttp") from missing

from amends.core.policy import DEFAULT, Policy
from amends.errors.base import FaultError
from amends.http.calls import KEY, LIMIT, Calls, failure
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
    errors: str = "raise",
    headers: Callable[[], Mapping[str, str]] | None = None,
    refresh: Callable[..., Any] | None = None,
    verify: Callable[..., Any] | None = None,
) -> Middleware:
    """A middleware that sends with recovery; the arguments are those of `amends.bindings.httpx.AsyncTransport`."""
    calls = Calls(
        policy=policy,
        upstream=upstream,
        keys=keys,
        errors=errors,
        headers=headers,
        refresh=refresh,
        verify=verify,
    )

    async def middleware(request: aiohttp.ClientRequest, handler: Handler) -> aiohttp.ClientResponse:
        response: aiohttp.ClientResponse = await _send(calls, request, handler)
        return response

    return middleware


async def _send(calls: Calls, request: aiohttp.ClientRequest, handler: Handler) -> Any:
    operation = calls.operation(
        request.method, request.headers.get(KEY), f"{request.method} {request.url.host}"
    )
    accept = request.headers.get("Accept")
    replayable = not request.body or isinstance(request.body, BytesPayload)

    async def attempt() -> Any:
        request.headers.update(calls.dressing(accept, operation.key, str(request.url.origin())))
        return await _checked(await handler(request))

    try:
        return await arecover(attempt, **calls.options(operation, replayable=replayable))
    except FaultError as error:
        return await calls.asettled(error, request.headers, lambda once: _send(once, request, handler))


async def _checked(response: aiohttp.ClientResponse) -> aiohttp.ClientResponse:
    """The response, or its typed error."""
    if response.status < 400:
        return response
    # aiohttp unpacks while it reads, so the bound is that of the unpacked body.
    raw, body = bytearray(), None
    try:
        async for part in response.content.iter_chunked(65536):
            raw += part
            if len(raw) > LIMIT:
                response.close()
                break
        else:
            body = bytes(raw)
    except aiohttp.ClientError:
        # It broke off; the status was said before.
        response.close()
    # What was read is the body from here on: a larger one is cut off, and says nothing structured.
    response._body = bytes(raw)  # noqa: SLF001
    raise failure(response.status, response.headers, body, response)
