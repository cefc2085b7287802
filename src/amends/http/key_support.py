"""
Which services are known to honour idempotency keys.

A key makes a request repeatable only if the service executes each key once. That is known if the user says so
(`keyed=True`, or a key header set by hand), if the vendor's table says so, or if the service has proved it: an earlier
successful answer from the same origin and path said that it was a replay, or sent our key back.

An answer proves nothing about its own request: what echoes headers into an error page would have the request repeated. Nor
does a failed answer prove anything.

A proof is a fact about the service, so all clients of a process share it. A client with a transport of the user's own keeps
its proofs for itself: there, an origin need not be an address in the network.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import NamedTuple

from amends.proof import Claim, Proof, rests_on
from amends.vendors.registry import vendor, vendor_of_origin

__all__ = ["KEY", "PROOF_FIELDS", "REPLAYED", "KeySupport", "shared_proofs", "vendor_honours_keys"]

KEY = "Idempotency-Key"
REPLAYED = ("Idempotency-Replayed", "Idempotent-Replayed")
"""Response headers whose value "true" says that the answer is a replay: ours, and Stripe's."""
PROOF_FIELDS = frozenset(name.lower() for name in (KEY, *REPLAYED))
"""The response headers that prove something, in lower case."""
LIMIT = 1024
"""Proofs that a process keeps, or a transport with its own."""
SIZE = 1024 * 1024
"""Bytes of a request body that every proof holds for. Services do not honour the keys of arbitrarily large requests; this is
the limit of `Idempotent`. A proof by a larger request holds for requests of its size."""


@rests_on(Claim.MAY_REPEAT, Proof.HOST)
def vendor_honours_keys(origin: str, method: str) -> bool:
    """
    Return whether a vendor documents that it honours keys in a header, for POST. Only TLS on its default port counts.

    >>> vendor_honours_keys("https://api.stripe.com", "POST"), vendor_honours_keys("https://shop.example", "POST")
    (True, False)
    """
    name = vendor_of_origin(origin) if method.upper() == "POST" else None
    keys = None if name is None else vendor(name).keys
    return keys is not None and keys.header is not None


_KEY, _REPLAYED = KEY.lower(), (*REPLAYED, *map(str.lower, REPLAYED))


class _Proof(NamedTuple):
    echoes: bool
    """Whether the service was seen to send our key back, so that its answers are expected to have it."""
    size: int
    """The bytes of the largest request body that the proof holds for."""
    by: str | None
    """The key of the request whose answer is the proof; None if answers to several requests are."""


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
        Note what the answer to a request with a key proves about later requests.

        A service that sent the key back before and succeeds without it does not honour keys any more, or is another
        service: its proof is forgotten. A failure changes nothing.

        Args:
            origin: the scheme, host and port of the request.
            path: the path of its address.
            key: the key that the request carried.
            headers: the response's headers, looked up without regard to case, or with names in lower case.
            succeeded: whether the status was 2xx.
            size: the bytes of the request's body.

        """
        if not succeeded:
            return
        echoes = (headers.get(KEY) or headers.get(_KEY)) == key
        place = origin, path
        if echoes or any((headers.get(name) or "").strip().lower() == "true" for name in _REPLAYED):
            with self._lock:
                known = self._proofs.get(place)
                by = key if known is None or known.by == key else None
                self._proofs[place] = _Proof(echoes, max(size, SIZE if known is None else known.size), by)
                self._proofs.move_to_end(place)
                if len(self._proofs) > self._limit:
                    self._proofs.popitem(last=False)
            return
        if self._proofs:
            with self._lock:
                proof = self._proofs.get(place)
                # A request that the proof does not hold for disproves nothing about others.
                if proof is not None and proof.echoes and size <= proof.size:
                    del self._proofs[place]

    def take_back(self, origin: str, path: str, key: str) -> None:
        """Forget what the answer to this request proved, because it was a failure after all."""
        with self._lock:
            proof = self._proofs.get((origin, path))
            if proof is not None and proof.by == key:
                del self._proofs[origin, path]

    @rests_on(Claim.MAY_REPEAT, Proof.ECHO, Proof.REPLAY)
    def proved(self, origin: str, path: str, key: str, size: int = 0) -> bool:
        """Return whether another request proved that this address honours keys of requests with a body of `size` bytes."""
        with self._lock:
            proof = self._proofs.get((origin, path))
            if proof is None or proof.by == key:
                return False
            self._proofs.move_to_end((origin, path))
            return size <= proof.size

    @rests_on(Claim.MAY_REPEAT, Proof.USER, Proof.HOST, Proof.ECHO, Proof.REPLAY)
    def honours(
        self,
        origin: str,
        path: str,
        method: str,
        key: str,
        *,
        size: int = 0,
        said: bool | None = None,
        by_hand: bool = False,
        redirected: bool = False,
    ) -> bool:
        """
        Return whether the service is known to execute a request with this key once.

        >>> KeySupport().honours("https://api.stripe.com", "/v1/charges", "POST", "7f3a")
        True

        Args:
            origin: the scheme, host and port of the request.
            path: the path of its address.
            method: its method.
            key: the key that it carries.
            size: the bytes of its body.
            said: what the user says about the service (`keyed=`).
            by_hand: whether the user set the key of this request.
            redirected: whether another origin redirected the request here; what the user said is about that one.

        """
        if said is False or (said and not redirected):
            return said
        return (
            (by_hand and not redirected)
            or vendor_honours_keys(origin, method)
            or self.proved(origin, path, key, size)
        )

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
