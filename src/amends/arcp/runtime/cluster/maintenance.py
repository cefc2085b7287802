"""The periodic work of a node: expiry of sessions and jobs, takeover, and credentials left by crashes."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass

from amends.arcp.runtime.cluster.membership import Membership
from amends.arcp.runtime.cluster.quota import Quota
from amends.arcp.runtime.cluster.retention import EndedJobs
from amends.arcp.runtime.cluster.takeover import Takeover
from amends.arcp.runtime.credentials.lifecycle import CredentialLifecycle
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.arcp.runtime.server.sessions import Sessions
from amends.logs import logger
from amends.stores import StoreError

__all__ = ["Maintenance"]

_log = logger("amends.arcp")
_FULL_SCAN = 9
"""Every so many rounds the jobs of all nodes are checked; the jobs of a dead node are checked as soon as it is noticed."""


@dataclass(eq=False)
class Maintenance:
    """Does all periodic work except the heartbeats, three times per lease unless a round takes longer."""

    _jobs: RunningJobs
    _sessions: Sessions
    _membership: Membership
    _quota: Quota
    _ended: EndedJobs
    _takeover: Takeover
    _credentials: CredentialLifecycle

    async def maintain(self) -> None:
        """Do one round after another, for as long as the node lives."""
        for number in itertools.count():
            try:
                await self._round(full=number % _FULL_SCAN == 0)
            except StoreError:
                _log.warning("a round of maintenance failed: the store failed")
            await asyncio.sleep(self._jobs.limits.node_lease / 3)

    async def _round(self, *, full: bool) -> None:
        membership = self._membership
        await self._sessions.expire()
        await self._ended.expire()
        if membership.exclusive:
            with self._quota.counting() as meanwhile:
                rows = [row async for _, row in self._jobs.ledger.active("")]
            self._quota.update(rows, (), meanwhile)
        else:
            await membership.refresh_peers()
            gone = set(membership.dead_peers)
            await self._takeover.recover_orphans(None if full else {membership.id, "", *gone})
            if any(membership.is_responsible(one) for one in gone):
                # The dead node would have deleted its ended jobs later.
                await self._ended.take_over()
            membership.dead_peers -= gone
        await self._credentials.clean_up()
