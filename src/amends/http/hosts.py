"""Which `Host` headers may appear in URLs: loopback names, the bound address, and the names that the application lists."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["is_trusted"]

# Host names and addresses that cannot add anything else to a URL.
_HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?P<port>:\d{1,5})?")
_LOOPBACK = re.compile(r"localhost|127(?:\.\d{1,3}){3}|\[::1\]|(?:[a-z0-9-]+\.)+localhost")


def is_trusted(host: str, hosts: Iterable[str] | None, server: str = "") -> bool:
    """
    Return whether a `Host` header may be used in URLs that the application sends.

    Args:
        host: the header's value.
        hosts: the names that the application is known by, each with or without a port: `shop.example`,
            `shop.example:8000`, `*.shop.example`. None: the loopback names and the bound address.
        server: the address that the server is bound to.

    >>> is_trusted("127.0.0.1:8000", None), is_trusted("evil.example", None), is_trusted("evil.example", ["*.example"])
    (True, False, True)

    """
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name, whole = found["name"].lower(), host.lower()
    if hosts is None:
        return _LOOPBACK.fullmatch(name) is not None or (bool(server) and name.strip("[]") == _name(server))
    return any(_matches(name, whole, each.lower()) for each in hosts)


def _matches(name: str, whole: str, pattern: str) -> bool:
    if pattern.startswith(("*.", ".")):
        return name.endswith(pattern.removeprefix("*"))
    return pattern in {"*", name, whole}


def _name(server: str) -> str:
    """Return an address without its port."""
    found = _HOST.fullmatch(server)
    return (found["name"] if found else server).strip("[]").lower()
