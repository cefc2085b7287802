"""The default scope of an HTTP request: which requests share a limit or an outage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b

__all__ = ["route_scope"]

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_CREDENTIALS = ("authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-auth-token")
_UUID = r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}"
_VARIABLE = re.compile(rf"\d+|{_UUID}")


def route_scope(method: str, path: str, headers: Mapping[str, str]) -> str:
    """
    Return the name of a request's scope: its credential, whether it changes something, and its route.

    The credential is a keyless hash of the credential headers, cut to 48 bits: it distinguishes callers and reveals
    nothing. The route is the first two segments of the path, with numbers and UUIDs as `*`.

    >>> route_scope("GET", "/orders/17/items", {})
    'read /orders/*'
    >>> route_scope("POST", "/orders", {"Authorization": "Bearer x"}).split(" ")[:2]
    ['write', '/orders']
    """
    segments = path.partition("?")[0].split("/")[1:3]
    route = "/".join("*" if _VARIABLE.fullmatch(each) else each[:64] for each in segments)
    name = f"{'read' if method.upper() in _SAFE else 'write'} /{route}"
    given = sorted((key.lower(), value) for key, value in headers.items() if key.lower() in _CREDENTIALS)
    if not given:
        return name
    digest = blake2b(repr(given).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{name} {digest}"
