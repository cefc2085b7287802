"""What a client is for: the transport the SDK gets, whether it can be made anew, and whether it speaks HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp.shared._httpx_utils import create_mcp_http_client

from amends.bindings.mcp.http_recorder import HttpRecorder

__all__ = ["Target", "cache_for"]


@dataclass(frozen=True)
class Target:
    """What was given for a server, as the SDK is to have it."""

    transport: Any
    renewable: bool = True
    """Whether a connection that died can be made anew."""
    http: bool = False

    @classmethod
    def of(cls, given: Any, http_client: Any) -> Target:
        """A transport that can be entered again, and is witnessed where it speaks HTTP; or what was given, as it is."""
        if isinstance(given, str):
            return cls(_Fresh(lambda: _witnessed(given, http_client)), http=True)
        if isinstance(given, StdioServerParameters):
            return cls(_Fresh(lambda: stdio_client(given)))
        if callable(given) and not hasattr(given, "__aenter__"):
            return cls(_Fresh(given))
        return cls(given, renewable=isinstance(given, Server | MCPServer))


def cache_for(given: Any, cache: Any) -> Any:
    """The cache's settings. The SDK would name its entries by the URL; credentials in it must not get into a store."""
    if not isinstance(given, str) or cache is None or cache.target_id is not None or cache.store is None:
        return cache
    import httpx2

    return replace(cache, target_id=str(httpx2.URL(given).copy_with(userinfo=b"")))


class _Fresh:
    """A transport that can be entered again: each time a new one is made."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._open: Any = None

    async def __aenter__(self) -> Any:
        self._open = self._make()
        return await self._open.__aenter__()

    async def __aexit__(self, *exc: object) -> Any:
        return await self._open.__aexit__(*exc)


@asynccontextmanager
async def _witnessed(url: str, client: Any) -> AsyncIterator[Any]:
    """The SDK's streamable HTTP, seen through a HttpRecorder."""
    async with AsyncExitStack() as stack:
        if client is None:
            client = await stack.enter_async_context(create_mcp_http_client())
        yield await stack.enter_async_context(streamable_http_client(url, http_client=HttpRecorder(client)))  # type: ignore[arg-type]
