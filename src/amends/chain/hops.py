"""
How far a request has come.

Agents call agents, and nothing in the protocols keeps two of them from calling each other for ever. A `Hop` is read from
a request's metadata and written into that of the requests made on its behalf: MCP's `_meta`, A2A's `metadata`. It also
carries the trace, so that one id finds a failure at every hop.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

import msgspec

from amends.errors.base import FaultError

__all__ = ["HOPS", "MAX_HOPS", "Hop"]

HOPS = "amends/hops"
"""The member of the metadata that counts."""
MAX_HOPS = 8
"""More agents than this between a caller and an answer are a circle, or might as well be one."""

_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?"
)


class Hop(msgspec.Struct, frozen=True):
    """Where in a chain we are."""

    count: int = 0
    """Agents the request came through before us."""
    traceparent: str | None = None
    """The trace it belongs to (W3C Trace Context)."""
    limit: int = MAX_HOPS

    @classmethod
    def of(cls, meta: Any, *, limit: int = MAX_HOPS) -> Self:
        """
        The hop a request's metadata speaks of. It comes from outside: what is no number counts as none.

        >>> Hop.of({"amends/hops": 2}).count, Hop.of({"amends/hops": "2"}).count, Hop.of(None).count
        (2, 0, 0)
        """
        found = meta if isinstance(meta, Mapping) else {}
        count, trace = found.get(HOPS), found.get("traceparent")
        if isinstance(count, float) and count.is_integer():
            # A2A's metadata knows no whole numbers.
            count = int(count)
        if type(count) is not int or count < 0:
            count = 0
        known = isinstance(trace, str) and len(trace) <= 256 and _TRACEPARENT.fullmatch(trace)
        return cls(count, trace if known else None, limit)

    def onward(self, meta: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """
        The metadata of a request made on behalf of this one, with what else is to be in it.

        >>> Hop(1).onward({"tenant": "acme"})
        {'tenant': 'acme', 'amends/hops': 2}

        Raises:
            FaultError: when the chain is too long. It is terminal: going on would not help, and neither would waiting.

        """
        if self.count >= self.limit:
            raise FaultError(
                "The chain of agents is too long",
                code="SERVICE_UNAVAILABLE",
                vocabulary="adcp",
                recovery="terminal",
                executed="no",
            )
        found = {**(meta or {}), HOPS: self.count + 1}
        if self.traceparent is not None:
            found.setdefault("traceparent", self.traceparent)
        return found
