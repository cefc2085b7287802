"""aiohttp: its connectors connect to the stage, and the request says where it was meant to go."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from amends.rehearse.interception.patches import Patches
from amends.rehearse.interception.stage_link import StageLink
from amends.rehearse.server import ORIGIN

__all__ = ["intercept"]


def intercept(module: ModuleType, link: StageLink, patches: Patches) -> None:
    """Intercept the connectors of `aiohttp.connector`."""
    from yarl import URL

    connector = module.TCPConnector
    original = connector.connect

    async def connect(self: Any, req: Any, *more: Any, **options: Any) -> Any:
        """Connect to the stage if it covers the host."""
        url = req.url
        if link.covers(url.host):
            fails = link.connecting(url.host, req.method, url.raw_path_qs)
            req.headers[ORIGIN] = str(url.origin())
            req.proxy = None
        else:
            fails = link.failing_here(url.host, url.port, req.method, url.raw_path_qs)
            if not fails:
                return await original(self, req, *more, **options)
        req.url = URL(link.failing_address(fails) if fails else link.address)
        try:
            return await original(self, req, *more, **options)
        finally:
            req.url = url

    patches.set(connector, "connect", connect)
