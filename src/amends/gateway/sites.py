"""
Keeps pages of other sites away from the upstreams: a browser on this machine, or in this network, would call for them.

A page can let its own name resolve to 127.0.0.1, so a gateway that listens on loopback answers only for local names. And a page can
send requests to any address, so what a browser marks as the request of another site is refused everywhere. A page cannot set
`Host`, `Origin` or `Sec-Fetch-Site`; a program can, and needs none of them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from amends.http.asgi_types import Scope
from amends.proof import Claim, Proof, rests_on

__all__ = ["FOREIGN_HOST", "FOREIGN_SITE", "Sites", "is_loopback_address"]

FOREIGN_HOST = (
    "This gateway listens on loopback and answers only for local names: name this Host in hosts = [...]"
)
FOREIGN_SITE = (
    "A page of another site sent this request: if it may call the gateway, name its host in hosts = [...]"
)

_OWN_SITES = frozenset({b"", b"none", b"same-origin", b"same-site"})
"""Values of `Sec-Fetch-Site` of programs, of addresses that people typed, and of pages of the same site."""
_KNOWN = 256
"""Hosts that are remembered as allowed, so that a call looks them up once."""


def is_loopback_address(host: str) -> bool:
    """
    Return whether this is an address of the loopback interface, or `localhost`.

    >>> [is_loopback_address(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "gateway.example")]
    [True, True, True, False, False]

    """
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Sites:
    """What a gateway's configuration says about the Hosts and the pages that may call it."""

    def __init__(self, listen: str, hosts: Iterable[str]) -> None:
        """
        Args:
            listen: the address that the gateway listens on.
            hosts: the names that the user allows.

        """
        self._loopback = is_loopback_address(listen.rpartition(":")[0].strip("[]"))
        self._named = frozenset(host.lower() for host in hosts)
        self._known: set[bytes] = set()

    def refusal(self, scope: Scope, *, local_pages: bool = False) -> str:
        """
        Return why a request is refused, or an empty string.

        Args:
            scope: the ASGI scope.
            local_pages: pages of this gateway's own address are refused, too, unless they are local or named: they may be
                those of a name that was made to resolve to it.

        """
        host: bytes | None = None
        origin: bytes | None = None
        site = b""
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
                if value not in self._known and not self._answers_for(value, scope):
                    return FOREIGN_HOST
            elif name == b"origin":
                origin = value
            elif name == b"sec-fetch-site":
                site = value
        if origin is None and site in _OWN_SITES:
            return ""
        return "" if self._may_send(origin, host, site, local_pages=local_pages) else FOREIGN_SITE

    @rests_on(Claim.OURS, Proof.SOCKET, Proof.USER)
    def _answers_for(self, host: bytes, scope: Scope) -> bool:
        """Return whether this is a Host that the gateway answers for: any, unless it listens on loopback."""
        if not self._loopback:
            return True
        server = scope.get("server")
        if server is not None and not is_loopback_address(str(server[0])):
            # Another server runs the application, and listens elsewhere.
            return True
        name, _ = _parts(f"//{host.decode('latin-1')}")
        if not name or not (name in self._named or is_loopback_address(name)):
            return False
        if len(self._known) < _KNOWN:
            self._known.add(host)
        return True

    @rests_on(Claim.OURS, Proof.BROWSER, Proof.USER)
    def _may_send(self, origin: bytes | None, host: bytes | None, site: bytes, *, local_pages: bool) -> bool:
        """Return whether the page that sent a request is the gateway's own, a local one, or one that the user names."""
        if origin is None:
            return site in _OWN_SITES
        name, port = _parts(origin.decode("latin-1"))
        if not name:
            return False
        if name in self._named:
            return True
        if site not in _OWN_SITES:
            return False
        if self._loopback or local_pages:
            return is_loopback_address(name)
        scheme = origin.partition(b":")[0].decode("latin-1")
        return (name, port) == _parts(f"{scheme}://{(host or b'').decode('latin-1')}")


_PORTS = {"http": 80, "https": 443}


def _parts(url: str) -> tuple[str, int | None]:
    """Return the host in lower case and the port of an address; an empty host if it cannot be read."""
    try:
        parts = urlsplit(url)
        return (parts.hostname or "").rstrip("."), parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return "", None
