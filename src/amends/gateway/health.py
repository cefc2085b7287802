"""Asks an upstream regularly whether it works, if its configuration names a path for that."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
from yarl import URL

from amends.logs import logger

if TYPE_CHECKING:
    from amends.gateway.http_upstream import HttpUpstream

__all__ = ["INTERVAL", "watch_health"]

_log = logger("amends.gateway")

INTERVAL = 5.0
"""Seconds between two questions. Longer: an outage is noticed later; shorter: more requests that do no work."""
_TIMEOUT = 5.0
_FAILURES = 2
"""Failed answers in a row after which an upstream counts as down. One may be chance."""


async def watch_health(upstream: HttpUpstream, interval: float = INTERVAL) -> None:
    """Set `down` of an upstream by the answers of its health path, until cancelled."""
    url, failures = URL(upstream.base + upstream.config.health, encoded=True), 0
    while True:
        failures = 0 if await _works(upstream, url) else failures + 1
        if not failures and upstream.down:
            upstream.down = False
            _log.warning("upstream %s works again: its health path answers", upstream.config.name)
        elif failures == _FAILURES:
            upstream.set_down()
            _log.warning("upstream %s is down: its health path does not answer", upstream.config.name)
        await asyncio.sleep(interval)


async def _works(upstream: HttpUpstream, url: URL) -> bool:
    try:
        async with (
            asyncio.timeout(_TIMEOUT),
            upstream.session.get(url, allow_redirects=False, headers={"accept": "*/*"}) as response,
        ):
            return response.status < 400
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False
