"""
The transports of httpx2 and httpx that send through the proxies of the environment.

A client takes proxies from HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY only if it makes its transports itself. With
`transport=` it does not, so our default transport does.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, Self
from urllib.request import getproxies, proxy_bypass

if TYPE_CHECKING:
    import httpx2

__all__ = ["AsyncEnvironmentTransport", "EnvironmentTransport"]


class _Proxies:
    """The library's transports: one without a proxy, and one for each proxy of the environment."""

    kind = "HTTPTransport"

    def __init__(self, module: ModuleType) -> None:
        """Read the environment, as a client does when it is made."""
        self._make = getattr(module, self.kind)
        proxies = getproxies()
        self._proxies = {scheme: _with_scheme(proxies[scheme]) for scheme in _SCHEMES if proxies.get(scheme)}
        self._transports: dict[str | None, Any] = {None: self._make()}

    def _choose(self, request: httpx2.Request) -> Any:
        """Return the transport that sends this request."""
        url = request.url
        proxy = self._proxies.get(url.scheme) or self._proxies.get("all")
        if proxy is not None and proxy_bypass(url.netloc.decode("latin-1")):
            proxy = None
        if proxy not in self._transports:
            self._transports[proxy] = self._make(proxy=proxy)
        return self._transports[proxy]


_SCHEMES = ("http", "https", "all")


def _with_scheme(proxy: str) -> str:
    return proxy if "://" in proxy else f"http://{proxy}"


class EnvironmentTransport(_Proxies):
    """Sends through the proxy that the environment names for a request's address, or directly."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        response: httpx2.Response = self._choose(request).handle_request(request)
        return response

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all transports."""
        for transport in self._transports.values():
            transport.close()


class AsyncEnvironmentTransport(_Proxies):
    """Same as `EnvironmentTransport`, for async clients."""

    kind = "AsyncHTTPTransport"

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        response: httpx2.Response = await self._choose(request).handle_async_request(request)
        return response

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all transports."""
        for transport in self._transports.values():
            await transport.aclose()
