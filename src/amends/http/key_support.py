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
from typing import NamedTuple

from amends.vendors.hosts import vendor_of_origin
from amends.vendors.registry import vendor

__all__ = ["KEY", "REPLAYED", "KeySupport", "shared_proofs", "vendor_honours_keys"]

KEY = "Idempotency-Key"
REPLAYED = ("Idempotency-Replayed", "Idempotent-Replayed")
"""Response headers whose value "true" says that the answer is a replay: ours, and Stripe's."""
LIMIT = 1024
"""Proofs that a process keeps, or a transport with its own."""
SIZE = 1024 * 1024
"""Bytes of a request body that every proof holds for. Services do not honour the keys of arbitrarily large requests; this is
the limit of `Idempotent`. A proof by a larger request holds for requests of its size."""


def vendor_honours_keys(origin: str, method: str) -> bool:
    """
    Return whether a vendor documents that it honours keys in a header, for POST. Only TLS on its default port counts.

    >>> vendor_honours_keys("https://api.stripe.com", "POST"), vendor_honours_keys("https://shop.example", "POST")
    (True, False)
    """
    name = vendor_of_origin(origin) if method.upper() == "POST" else None
    keys = None if name is None else vendor(name).keys
    return keys is not None and keys.header is not None


class _Proof(NamedTuple):
    echoes: bool
    """Whether the service was seen to send our key back, so that its answers are expected to have it."""
    size: int
    """The bytes of the largest request body that the proof holds for."""


class KeySupport:
    """The proofs that were received, by origin and path. Threads may share it."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._lock = Lock()
        self._proofs: OrderedDict[tuple[str, str], _Proof] = OrderedDict()

    def answered(
        self,
        origin: str,
        path: str,
        key: str,
        headers: Mapping[str, str],
        *,
        succeeded: bool,
        size: int = 0,
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
            size: the bytes of the request's body.

        """
        if headers.get(KEY) == key:
            self.prove(origin, path, echoes=True, size=size)
        elif any((headers.get(name) or "").strip().lower() == "true" for name in REPLAYED):
            self.prove(origin, path, size=size)
        elif succeeded:
            with self._lock:
                proof = self._proofs.get((origin, path))
                # A request that the proof does not hold for disproves nothing about others.
                if proof is not None and proof.echoes and size <= proof.size:
                    del self._proofs[origin, path]

    def prove(self, origin: str, path: str, *, echoes: bool = False, size: int = 0) -> None:
        """Note that this address honours keys; beyond the limit the least recently used address is forgotten."""
        with self._lock:
            known = self._proofs.get((origin, path))
            self._proofs[origin, path] = _Proof(echoes, max(size, SIZE if known is None else known.size))
            self._proofs.move_to_end((origin, path))
            if len(self._proofs) > self._limit:
                self._proofs.popitem(last=False)

    def proved(self, origin: str, path: str, size: int = 0) -> bool:
        """Return whether this address has proved that it honours the keys of requests with a body of `size` bytes."""
        with self._lock:
            proof = self._proofs.get((origin, path))
            if proof is None:
                return False
            self._proofs.move_to_end((origin, path))
            return size <= proof.size

    def clear(self) -> None:
        """Forget all proofs."""
        with self._lock:
            self._proofs.clear()

    def __reduce__(self) -> tuple[object, ...]:
        # A copy in another process has that process's proofs, or collects its own.
        return (shared_proofs, ()) if self is _SHARED else (KeySupport, (self._limit,))

    def __deepcopy__(self, memo: object) -> KeySupport:
        return self


_SHARED = KeySupport()


def shared_proofs() -> KeySupport:
    """Return the proofs that all clients of this process share."""
    return _SHARED
