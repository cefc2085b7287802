"""The transport that a client gives to the SDK: whether it can be opened again, and whether it uses HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx2
from mcp.client.caching import CacheConfig
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.server.mcpserver import MCPServer

from amends.bindings.mcp.http_recorder import HttpRecorder

__all__ = ["Target", "cache_for", "default_http_client"]


@dataclass(frozen=True)
class Target:
    """The server that a client connects to."""

    transport: Callable[[], Any]
    """Returns what the SDK's client takes as its server: a new transport for each connection, if the target is renewable."""
    renewable: bool = True
    """Whether a lost connection can be opened again."""
    http: bool = False
    in_process: bool = False
    """Whether messages are passed on as objects, which are never encoded."""

    @classmethod
    def of(cls, server: object, http_client: httpx2.AsyncClient | None) -> Target:
        """
        Return the target for the `server` argument of a client.

        A URL, a command, a function that returns a transport, and a server in this process are renewable; a transport
        object can be entered once.
        """
        if isinstance(server, str):
            return cls(lambda: _recorded_http(server, http_client), http=True)
        if isinstance(server, StdioServerParameters):
            return cls(lambda: stdio_client(server))
        if callable(server) and not hasattr(server, "__aenter__"):
            return cls(server)
        in_process = isinstance(server, Server | MCPServer)
        return cls(lambda: server, renewable=in_process, in_process=in_process)


def cache_for(server: object, cache: CacheConfig | None) -> CacheConfig | None:
    """
    Return the cache settings with a `target_id`, which the SDK requires for a shared store.

    It is the URL without credentials, which must not get into a store.
    """
    if not isinstance(server, str) or cache is None or cache.target_id is not None or cache.store is None:
        return cache
    return replace(cache, target_id=str(httpx2.URL(server).copy_with(userinfo=b"")))


def default_http_client(**options: Any) -> httpx2.AsyncClient:
    """Return an HTTP client with the time-outs that the MCP SDK uses: 30 s, and 300 s for reading from a stream."""
    if options.get("timeout") is None:
        options["timeout"] = httpx2.Timeout(30.0, read=300.0)
    return httpx2.AsyncClient(**options)


@asynccontextmanager
async def _recorded_http(url: str, client: httpx2.AsyncClient | None) -> AsyncIterator[object]:
    """The SDK's streamable HTTP transport over an HttpRecorder."""
    async with AsyncExitStack() as stack:
        if client is None:
            client = await stack.enter_async_context(default_http_client())
        yield await stack.enter_async_context(streamable_http_client(url, http_client=HttpRecorder(client)))  # type: ignore[arg-type]
