"""The connections to one upstream, and the rules that hold for everything that is sent over them."""

from __future__ import annotations

import aiohttp
from yarl import URL

from amends.gateway.config import UpstreamConfig

__all__ = ["ELSEWHERE", "Disconnected", "new_session"]

_AUTOMATIC = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_KEPT = 4.0
"""Seconds that an idle connection is kept. Many servers close after 5, and a POST that meets the close cannot be repeated."""
_LINE = 65536
ELSEWHERE = "the upstream redirected to another address"


class Disconnected(aiohttp.ClientConnectionError):
    """The upstream closed the connection before its answer. It is unknown whether it executed the request."""


def new_session(config: UpstreamConfig, origin: str) -> aiohttp.ClientSession:
    """Return a client that connects to `origin` only, makes one try per request, and changes no body."""
    allowed = URL(origin).origin()

    async def once(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        if request.url.origin() != allowed:
            raise aiohttp.ClientError(ELSEWHERE)
        try:
            response = await handler(request)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            # aiohttp would send a read again by itself, uncounted.
            raise Disconnected(str(error)) from error
        if response.status < 100:
            response.close()
            raise aiohttp.ClientPayloadError("the upstream answered with a status that HTTP does not have")
        if response.status == 101 and "Upgrade" not in request.headers:
            response.close()
            raise aiohttp.ClientPayloadError("the upstream switched the protocol unasked")
        coding = response.headers.get("Transfer-Encoding")
        if coding is not None and coding.strip().lower() != "chunked":
            # The header belongs to this connection, so the caller would get a body in a coding that it does not know.
            response.close()
            raise aiohttp.ClientPayloadError("the upstream used a transfer coding that was not asked for")
        return response

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, keepalive_timeout=_KEPT),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(
            total=None,
            connect=config.connect_timeout,
            sock_connect=config.connect_timeout,
            sock_read=config.timeout,
        ),
        skip_auto_headers=_AUTOMATIC,
        auto_decompress=False,
        trust_env=False,
        max_line_size=_LINE,
        max_field_size=_LINE,
        middlewares=(once,),
    )
