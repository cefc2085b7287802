"""The Upstreams that clients use by default, one per origin and kept while they are used, and the scopes of requests in them."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from functools import lru_cache
from hashlib import blake2b
from math import inf
from threading import Lock
from urllib.parse import urlsplit

from amends.core.wrong_calls import explains_wrong_calls
from amends.recovery.clock import CLOCK
from amends.recovery.process_quota import process_quota
from amends.recovery.upstream import Upstream

__all__ = [
    "CREDENTIALS",
    "PER_ORIGIN",
    "PerOrigin",
    "Upstreams",
    "configure",
    "forget_origins",
    "forgotten",
    "route_scope",
    "upstream_for",
]

MOST = 1000
"""Origins that are kept. More: memory; fewer: a process that calls many services forgets some while it uses them."""
IDLE = 600.0
"""Seconds after which an unused origin without trouble is dropped. Longer: memory; shorter: its usual round trip is
learned again."""
_SWEEP = 60.0


class PerOrigin(Enum):
    """The type of PER_ORIGIN."""

    PER_ORIGIN = "per origin"


PER_ORIGIN = PerOrigin.PER_ORIGIN
"""The default `upstream=` of clients: the Upstream of the origin that is called. `upstream=None` turns it off."""


class _Forgotten:
    """When the Upstreams of all origins were last dropped, for those who remember one."""

    before = -inf


forgotten = _Forgotten()
_lock = Lock()
_origins: OrderedDict[tuple[str, Hashable], tuple[Upstream, float]] = OrderedDict()
_swept_at = 0.0


@explains_wrong_calls
def upstream_for(origin: str, owner: Hashable = None) -> Upstream:
    """
    Return the Upstream of an origin such as "https://api.example.com". All clients of this process share it.

    A client that renews its own credentials names itself as the owner and shares the Upstream with no other client: one
    renewal counts for all callers of an Upstream.

    >>> upstream_for("https://api.example.com") is upstream_for("https://api.example.com")
    True
    """
    global _swept_at  # noqa: PLW0603 - the origins belong to the process
    now = CLOCK.now()
    with _lock:
        key = origin, owner
        found = _origins.get(key)
        upstream = Upstream(origin) if found is None else found[0]
        _origins[key] = upstream, now
        _origins.move_to_end(key)
        if not 0.0 <= now - _swept_at < _SWEEP or len(_origins) > MOST:
            _swept_at = now
            _drop_idle(now)
        return upstream


def _drop_idle(now: float) -> None:
    """Drop unused origins, and the least recently used ones above the limit."""
    for key, (upstream, used) in list(_origins.items()):
        if len(_origins) > MOST or (now - used > IDLE and upstream.idle):
            del _origins[key]
        elif now - used <= IDLE:
            break


_REMEMBERED = 100
"""Scopes that a client remembers; an Upstream keeps more, so that none of these is dropped there."""


class Upstreams:
    """The Upstreams of one client: the one it was given, or by default a scope per operation of its server's."""

    of: Callable[[str], Upstream | None]
    """Returns the Upstream for an operation of this name."""

    def __init__(
        self, given: Upstream | PerOrigin | None, address: object = None, *, shared: bool = True
    ) -> None:
        """
        Args:
            given: the client's `upstream=`.
            address: the server's URL; anything else is a server that only this client calls, such as a process.
            shared: False if the client may have credentials of its own: limits are per credential, and one renewal counts
                for all callers of an Upstream.

        """
        origin = _origin(address)
        if not isinstance(given, PerOrigin):
            self.of = lambda _: given
        elif origin is None or not shared:
            self.of = _Scopes(Upstream(origin or "")).__getitem__
        else:
            self.of = lambda operation: upstream_for(origin).scope(operation)


class _Scopes(dict[str, Upstream]):
    """
    The scopes of a server that one client calls, added when they are first looked up.

    `Upstream.scope` is eight function calls: with it a tool call in memory costs 1.083 of the plain SDK with our client
    instead of 1.057 (target with client and guard 1.08, bench/mcp_calls.py).
    """

    def __init__(self, server: Upstream) -> None:
        super().__init__()
        self._server = server

    def __missing__(self, operation: str) -> Upstream:
        if len(self) >= _REMEMBERED:
            self.clear()
        found = self[operation] = self._server.scope(operation)
        return found


def _origin(address: object) -> str | None:
    """Return the address without user, query and fragment, if it is a URL with a host."""
    try:
        parts = urlsplit(address) if isinstance(address, str) else None
        host = None if parts is None else parts.hostname
        port = None if parts is None else parts.port
    except ValueError:
        return None
    if parts is None or host is None:
        return None
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{parts.path}"


def forget_origins() -> None:
    """Drop the Upstreams of all origins, with what is known about them. For tests."""
    with _lock:
        _origins.clear()
        forgotten.before = CLOCK.now()


def configure(*, quota: object = True) -> None:
    """
    Configure recovery in this process.

    `quota=None` turns off the quota of repeats for operations without an Upstream; `quota=True` turns it on again.

    >>> configure(quota=None)
    >>> configure(quota=True)

    Raises:
        TypeError: for other values.

    """
    if quota is not None and quota is not True:
        raise TypeError("quota is None (no quota) or True (the default one)")
    process_quota.turn(on=quota is not None)


_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
CREDENTIALS = frozenset(
    {"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-auth-token"}
)
"""Headers that say who calls."""
_LONGEST_CACHED = 256
"""Characters of the longest path whose route is kept."""
_UUID = r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}"
_VARIABLE = re.compile(rf"\d+|{_UUID}")


@explains_wrong_calls
def route_scope(method: str, path: str, headers: Mapping[str, str], *, segments: int = 2) -> str:
    """
    Return the name of a request's scope: its credential, whether it changes something, and its route.

    The credential is a keyless hash of the credential headers, cut to 48 bits: it distinguishes callers and reveals
    nothing. The route is the first `segments` of the path, with numbers and UUIDs as `*`.

    >>> route_scope("GET", "/orders/17/items", {})
    'read /orders/*'
    >>> route_scope("POST", "/orders", {"Authorization": "Bearer x"}).split(" ")[:2]
    ['write', '/orders']
    """
    name = (_route if len(path) <= _LONGEST_CACHED else _route.__wrapped__)(method, path, segments)
    if CREDENTIALS.isdisjoint([key.lower() for key in headers]):
        return name
    given = sorted((key.lower(), value) for key, value in headers.items() if key.lower() in CREDENTIALS)
    digest = blake2b(repr(given).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{name} {digest}"


@lru_cache(maxsize=1024)
def _route(method: str, path: str, most: int) -> str:
    """Return what a request does and its route."""
    segments = path.partition("?")[0].split("/")[1 : 1 + most]
    route = "/".join("*" if _VARIABLE.fullmatch(each) else each[:64] for each in segments)
    return f"{'read' if method.upper() in _SAFE else 'write'} /{route}"
