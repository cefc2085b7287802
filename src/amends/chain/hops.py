"""
`Hop`: the number of agents that a request has come through.

Agents call agents, and the protocols do not prevent two of them from calling each other without end. A `Hop` is read
from a request's metadata and written into the metadata of the requests made on its behalf: MCP's `_meta`, A2A's
`metadata`. It also passes on the trace, so that one id finds a failure at every hop.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Self

import msgspec

from amends.core.travel import HOPS, count
from amends.errors.base import FaultError

__all__ = ["HOPS", "MAX_HOPS", "Hop"]

MAX_HOPS = 8
"""The most agents that a request may come through. A longer chain is taken for a loop."""

_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?"
)


class Hop(msgspec.Struct, frozen=True):
    """
    The position of an agent in a chain.

    >>> Hop.of({"amends/depth": 1}).count
    1
    """

    count: int = 0
    """The number of agents the request came through before this one."""
    traceparent: str | None = None
    """The trace of the request (W3C Trace Context)."""
    limit: int = MAX_HOPS

    @classmethod
    def of(cls, meta: object, *, limit: int = MAX_HOPS) -> Self:
        """
        Return the hop of a request's metadata. A value that is no number counts as 0, because it comes from outside.

        >>> Hop.of({"amends/depth": 2}).count, Hop.of({"amends/depth": "2"}).count, Hop.of(None).count
        (2, 0, 0)
        """
        members = meta if isinstance(meta, Mapping) else {}
        trace = members.get("traceparent")
        valid = isinstance(trace, str) and len(trace) <= 256 and _TRACEPARENT.fullmatch(trace)
        return cls(count(members.get(HOPS)), trace if valid else None, limit)

    def onward(self, meta: Mapping[str, object] | None = None) -> dict[str, object]:
        """
        Return the metadata of a request made on behalf of this one: the members of `meta`, the count and the trace.

        >>> Hop(1).onward({"tenant": "acme"})
        {'tenant': 'acme', 'amends/depth': 2}

        Raises:
            FaultError: if the chain is too long. It is terminal, because waiting does not help.

        """
        if self.count >= self.limit:
            raise FaultError(
                "The chain of agents is too long",
                code="SERVICE_UNAVAILABLE",
                vocabulary="adcp",
                recovery="terminal",
                executed="no",
            )
        members = {**(meta or {}), HOPS: self.count + 1}
        if self.traceparent is not None:
            members.setdefault("traceparent", self.traceparent)
        return members
