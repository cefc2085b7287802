"""
Which services are known to honour idempotency keys.

A key makes a request repeatable only if the service executes each key once. That is known if the user says so
(`keyed=True`, or a key header set by hand), if the vendor's table says so, or if the service has proved it: an earlier
answer from the same origin and path said that it was a replay, or sent our key back.

A proof is a fact about the service, so all clients of a process share it. A client with a transport of the user's own keeps
its proofs for itself: there, an origin need not be an address in the network.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any

from amends.vendors.hosts import vendor_of_origin
from amends.vendors.registry import vendor

__all__ = ["KEY", "REPLAYED", "KeySupport", "shared_proofs", "vendor_honours_keys"]

KEY = "Idempotency-Key"
REPLAYED = ("Idempotency-Replayed", "Idempotent-Replayed")
"""Response headers whose value "true" says that the answer is a replay: ours, and Stripe's."""
LIMIT = 1024
"""Proofs that a process keeps, or a transport with its own."""


def vendor_honours_keys(origin: str, method: str) -> bool:
    """
    Return whether a vendor documents that it honours keys in a header, for POST. Only TLS on its default port counts.

    >>> vendor_honours_keys("https://api.stripe.com", "POST"), vendor_honours_keys("https://shop.example", "POST")
    (True, False)
    """
    name = vendor_of_origin(origin) if method.upper() == "POST" else None
    keys = None if name is None else vendor(name).keys
    return keys is not None and keys.header is not None


class KeySupport:
    """The proofs that were received, by origin and path. Threads may share it."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._lock = Lock()
        self._proofs: OrderedDict[tuple[str, str], bool] = OrderedDict()
        """Whether the service was seen to send our key back, so that its answers are expected to have it."""

    def answered(
        self, origin: str, path: str, key: str, headers: Mapping[str, str], *, succeeded: bool
    ) -> None:
        """
        Note what the answer to a request with a key proves.

        A service that sent the key back before and succeeds without it does not honour keys any more, or is another
        service: its proof is forgotten. A failure without the key may come from a proxy, and changes nothing.

        Args:
            origin: the scheme, host and port of the request.
            path: the path of its address.
            key: the key that the request carried.
            headers: the response's headers, looked up without regard to case.
            succeeded: whether the status was 2xx.

        """
        if headers.get(KEY) == key:
            self.prove(origin, path, echoes=True)
        elif any((headers.get(name) or "").strip().lower() == "true" for name in REPLAYED):
            self.prove(origin, path)
        elif succeeded and self._proofs.get((origin, path)):
            with self._lock:
                self._proofs.pop((origin, path), None)

    def prove(self, origin: str, path: str, *, echoes: bool = False) -> None:
        """Note that this address honours keys; beyond the limit the least recently used address is forgotten."""
        with self._lock:
            self._proofs[origin, path] = echoes
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

    def clear(self) -> None:
        """Forget all proofs."""
        with self._lock:
            self._proofs.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy in another process has that process's proofs, or collects its own.
        return (shared_proofs, ()) if self is _SHARED else (KeySupport, (self._limit,))

    def __deepcopy__(self, memo: object) -> KeySupport:
        return self


_SHARED = KeySupport()


def shared_proofs() -> KeySupport:
    """Return the proofs that all clients of this process share."""
    return _SHARED
