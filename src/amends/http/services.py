"""
What the vendor tables say about one request of a client, and the failures inside its successful answers.

The service is the vendor that the user names (`vendor=` on the transport or the Upstream), else that of the host. Answers
of a known vendor, and of GraphQL, are looked into for failures; routes that only compute are repeatable without a key.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import time

import msgspec

from amends.carriers.extraction import extract
from amends.core.fault import Fault
from amends.http.call_bodies import LIMIT
from amends.http.key_support import KEY
from amends.vendors.hosts import vendor_of_origin
from amends.vendors.registry import check, vendor
from amends.vendors.watch import StreamWatch

__all__ = ["Service", "service_of"]

_DOCUMENTS = ("json", "xml", "multipart/mixed")
_STREAMS = ("event-stream", "ndjson", "jsonl", "json-seq", "stream+json")
_ENDLESS = frozenset({"kubernetes", "docker-registry"})
"""Vendors whose successful answers are data of any kind and size, and never report a failure."""


class Service(msgspec.Struct, frozen=True):
    """The facts about the service of one request."""

    vendor: str | None = None
    graphql: bool = False
    computes: bool = False
    """The route only computes, such as a chat or an embedding: a repeat is safe without a key."""
    key_header: str = KEY
    """The header that carries an idempotency key."""

    @property
    def inspected(self) -> bool:
        """Whether successful answers of the service are looked into."""
        return self.graphql or (self.vendor is not None and self.vendor not in _ENDLESS)

    def failure(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault | None:
        """Return the failure inside the whole body of a successful answer, or None."""
        if not self.inspected or not 200 <= status < 300 or not 0 < len(body) <= LIMIT:
            return None
        kind = headers.get("content-type") or ""
        if kind and not any(each in kind for each in (*_DOCUMENTS, *_STREAMS)):
            return None
        response = {"status": status, "headers": dict(headers), "body": body}
        return extract(response, "http", vendor=self.vendor or "graphql", in_success=True)

    def watch(self, status: int, headers: Mapping[str, str]) -> StreamWatch | None:
        """Return what watches the stream of a model, or None if the answer is none."""
        if not self.computes or status != 200 or headers.get("content-encoding"):
            return None
        kind = headers.get("content-type") or ""
        return StreamWatch(self.vendor, time) if any(each in kind for each in _STREAMS) else None


_UNKNOWN = Service()
_GRAPHQL = Service(graphql=True)


def service_of(name: str | None, origin: str, path: str, method: str) -> Service:
    """
    Return the facts about the service of a request.

    >>> service_of(None, "https://api.openai.com", "/v1/chat/completions", "POST").computes
    True

    Args:
        name: the vendor that the user names; None: the host says it.
        origin: the scheme, host and port of the request.
        path: the path of its address.
        method: its method.

    Raises:
        LookupError: for an unknown vendor.

    """
    graphql = path.rstrip("/").endswith("/graphql")
    name = vendor_of_origin(origin) if name is None else check(name)
    if name is None:
        return _GRAPHQL if graphql else _UNKNOWN
    known = vendor(name)
    computes = method == "POST" and any(
        route in path if route.endswith("/") else path.endswith(route) for route in known.computes
    )
    keys = known.keys
    header = KEY if keys is None or keys.header is None else keys.header
    return Service(name, graphql or name == "graphql", computes, header)
