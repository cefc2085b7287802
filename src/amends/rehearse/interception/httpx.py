"""httpx and httpx2, and with them the SDKs of OpenAI, Anthropic, MCP and A2A: their transports send to the stage."""

from __future__ import annotations

from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from amends.rehearse.interception.patches import Patches
from amends.rehearse.interception.stage_link import StageLink
from amends.rehearse.server import ORIGIN

__all__ = ["intercept"]


def intercept(module: ModuleType, link: StageLink, patches: Patches) -> None:
    """Intercept the transports of a module, httpx or httpx2."""
    sync, asynchronous = module.HTTPTransport, module.AsyncHTTPTransport
    send, asend = sync.handle_request, asynchronous.handle_async_request
    plain: dict[str, Any] = {}

    def handle_request(self: Any, request: Any) -> Any:
        """Send a request to the stage if it covers the host."""
        if not link.covers(request.url.host):
            return send(self, _unless_failing(module, request, link))
        return send(_direct(self, sync, plain), _redirected(module, request, link))

    async def handle_async_request(self: Any, request: Any) -> Any:
        """Send a request to the stage if it covers the host."""
        if not link.covers(request.url.host):
            return await asend(self, _unless_failing(module, request, link))
        return await asend(_direct(self, asynchronous, None), _redirected(module, request, link))

    patches.set(sync, "handle_request", handle_request)
    patches.set(asynchronous, "handle_async_request", handle_async_request)


def _direct(transport: Any, kind: Any, kept: dict[str, Any] | None) -> Any:
    """Return the transport, or one without the proxy or the Unix socket that it would connect to."""
    pool = getattr(transport, "_pool", None)
    through = "Proxy" in type(pool).__name__ or getattr(pool, "_uds", None)
    if not through:
        return transport
    if kept is None:
        return kind(trust_env=False)
    return kept.setdefault("plain", kind(trust_env=False))


def _unless_failing(module: ModuleType, request: Any, link: StageLink) -> Any:
    """Return a request for this machine, or one whose connection fails as planned."""
    target = request.url.raw_path.decode("ascii")
    fails = link.failing_here(request.url.host, request.url.port, request.method, target)
    if not fails:
        return request
    return _copy(module, request, link.failing_address(fails), [])


def _copy(module: ModuleType, request: Any, address: str, more: list[tuple[bytes, bytes]]) -> Any:
    """Return the request with another address."""
    parts = urlsplit(address)
    url = request.url.copy_with(scheme=parts.scheme, host=parts.hostname, port=parts.port)
    headers = [*request.headers.raw, *more]
    return module.Request(
        request.method, url, headers=headers, stream=request.stream, extensions=request.extensions
    )


def _redirected(module: ModuleType, request: Any, link: StageLink) -> Any:
    """Return the request with the address of the stage, or with one whose connection fails as planned."""
    target = request.url.raw_path.decode("ascii")
    fails = link.connecting(request.url.host, request.method, target)
    origin = f"{request.url.scheme}://{request.url.netloc.decode('ascii')}"
    address = link.failing_address(fails) if fails else link.address
    return _copy(module, request, address, [(ORIGIN.encode(), origin.encode())])
