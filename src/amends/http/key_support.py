"""
Which services are known to honour idempotency keys.

A key makes a request repeatable only if the service executes each key once. That is known if the user says so
(`keyed=True`, or a key header set by hand), if the vendor is in `VENDORS`, or if the service has proved it: an earlier
answer from the same origin and path said that it was a replay, or sent our key back.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import msgspec

__all__ = ["KEY", "REPLAYED", "VENDORS", "KeySupport", "KeyedService", "proves_keys", "vendor_honours_keys"]

KEY = "Idempotency-Key"
REPLAYED = ("Idempotency-Replayed", "Idempotent-Replayed")
"""Response headers whose value "true" says that the answer is a replay: ours, and Stripe's."""
LIMIT = 1024
"""Proofs that one transport keeps."""


class KeyedService(msgspec.Struct, frozen=True, kw_only=True):
    """A vendor's service that documents that it honours the header `Idempotency-Key`, over TLS on the default port."""

    host: str
    methods: frozenset[str]


VENDORS = (
    # "All POST requests accept idempotency keys": https://docs.stripe.com/api/idempotent_requests
    KeyedService(host="api.stripe.com", methods=frozenset({"POST"})),
)


def vendor_honours_keys(origin: str, method: str) -> bool:
    """
    Return whether a vendor documents that it honours keys.

    >>> vendor_honours_keys("https://api.stripe.com", "POST"), vendor_honours_keys("https://shop.example", "POST")
    (True, False)
    """
    try:
        parts = urlsplit(origin)
        host, port = parts.hostname, parts.port
    except ValueError:
        return False  # no valid address
    if parts.scheme != "https" or port not in {None, 443}:
        return False
    return any(row.host == host and method.upper() in row.methods for row in VENDORS)


def proves_keys(headers: Mapping[str, str], key: str) -> bool:
    """
    Return whether the answer to a request with this key proves that the service honours keys.

    Args:
        headers: the response's headers, looked up without regard to case.
        key: the key that the request carried.

    """
    if headers.get(KEY) == key:
        return True
    return any((headers.get(name) or "").strip().lower() == "true" for name in REPLAYED)


class KeySupport:
    """The proofs that one transport has received, by origin and path. Threads may share it."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._lock = Lock()
        self._proofs: OrderedDict[tuple[str, str], None] = OrderedDict()

    def prove(self, origin: str, path: str) -> None:
        """Note that this address honours keys; beyond the limit the least recently used address is forgotten."""
        with self._lock:
            self._proofs[origin, path] = None
            self._proofs.move_to_end((origin, path))
            if len(self._proofs) > self._limit:
                self._proofs.popitem(last=False)

    def proved(self, origin: str, path: str) -> bool:
        """Return whether this address has proved that it honours keys."""
        with self._lock:
            found = (origin, path) in self._proofs
            if found:
                self._proofs.move_to_end((origin, path))
            return found

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy in another process collects its own proofs: a lock cannot be pickled.
        return KeySupport, (self._limit,)

    def __deepcopy__(self, memo: object) -> KeySupport:
        return self
