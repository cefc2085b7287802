"""
How many jobs one principal may have that have not ended, on all nodes together.

Asked at every submission, so it costs a look into two tables of this node: what runs here, and what is known of the
rest. That is what waits in the queues and what other nodes say they run for principals who have a tenth of their limit
or more there, both heard with every round of the keeper. So it may be older than it should: while it is, each node may
let a principal in up to the limit. Nobody is refused for what was: who seems to have too many is counted anew, in the
store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from amends.arcp.runtime.entries import Summary
from amends.errors.arcp import InternalError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node

__all__ = ["Quota"]

_WORTH_SAYING = 10
"""Part of the limit from which on other nodes are told."""
_FRESH = 0.25
"""Seconds for which a count is believed: who is refused asks again and again."""
_REMEMBERED = 1_000


class Quota:
    """What is known of the principals' jobs on one node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.here: dict[str, int] = {}
        """Jobs of each principal that run here."""
        self.elsewhere: Counter[str] = Counter()
        """Those that wait, or run on other nodes, as far as they were heard of."""
        self._counted: dict[str, tuple[float, int]] = {}
        self._looks: dict[object, Counter[str]] = {}

    @contextmanager
    def looking(self) -> Generator[Counter[str]]:
        """For as long as somebody reads what waits: what is queued here meanwhile, and may be missing there."""
        look = object()
        self._looks[look] = Counter()
        try:
            yield self._looks[look]
        finally:
            del self._looks[look]

    async def admit(self, principal: str) -> None:
        """
        Count a principal whose limit seems to be reached.

        Raises:
            InternalError: it is.

        """
        limit = self._node.limits.jobs_per_principal
        if await self._exactly(principal) >= limit:
            raise InternalError(
                "Too many jobs of this principal have not ended",
                retryable=False,
                details={"limit": "jobs_per_principal", "value": limit},
            )

    async def _exactly(self, principal: str) -> int:
        here = self.here.get(principal, 0)
        now = self._node.loop.time()
        at, elsewhere = self._counted.get(principal, (0.0, 0))
        if now - at > _FRESH or not at:
            # What runs here is counted, and not all of it is written down.
            elsewhere = 0
            with self.looking() as meanwhile:
                async for owner, row in self._node.ledger.active("" if self._node.alone else None):
                    elsewhere += owner != self._node.id and row.principal == principal
            if len(self._counted) >= _REMEMBERED:
                self._counted.clear()
            self._counted[principal] = (now, elsewhere)
            self.elsewhere[principal] = elsewhere + meanwhile[principal]
        return here + elsewhere

    def began(self, principal: str) -> None:
        """A job runs here."""
        self.here[principal] = self.here.get(principal, 0) + 1

    def ended(self, principal: str) -> None:
        """It does no more."""
        left = self.here.get(principal, 0) - 1
        if left > 0:
            self.here[principal] = left
        else:
            self.here.pop(principal, None)

    def queued(self, principal: str) -> None:
        """A job waits."""
        self.elsewhere[principal] += 1
        for look in self._looks.values():
            look[principal] += 1

    def taken(self, principal: str) -> None:
        """One that waited runs here."""
        if self.elsewhere[principal] > 1:
            self.elsewhere[principal] -= 1
        else:
            del self.elsewhere[principal]

    def said(self) -> dict[str, int]:
        """What other nodes are told."""
        least = self._node.limits.jobs_per_principal / _WORTH_SAYING
        return {principal: count for principal, count in self.here.items() if count >= least}

    def heard(
        self, waiting: Iterable[Summary], peers: Iterable[dict[str, int]], meanwhile: Mapping[str, int]
    ) -> None:
        """
        What waits, what other nodes said before that was looked at, and what was queued here since.

        The last may be counted twice: who seems to have too many is counted anew. Forgotten, it would let one more in.
        """
        elsewhere = Counter(row.principal for row in waiting)
        elsewhere.update(meanwhile)
        for said in peers:
            elsewhere.update(said)
        self.elsewhere = elsewhere
