"""
Jobs that no live node works on: run again, or ended in doubt.

A job that was running when its node died runs again only if its agent was registered as `repeatable`. Any other job may
have had its effect, so its run ends with INTERNAL_ERROR and `in_doubt`. Its idempotency key returns that error, and the
job never runs again by itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from amends.arcp.runtime.cluster.membership import Membership
from amends.arcp.runtime.cluster.quota import Capacity, Quota
from amends.arcp.runtime.cluster.retention import EndedJob, EndedJobs
from amends.arcp.runtime.entries import ACTIVE, JobEntry, JobSpec, Summary
from amends.arcp.runtime.jobs.cancel import Cancellation, cancellation
from amends.arcp.runtime.jobs.outcome import in_doubt, status_of
from amends.arcp.runtime.jobs.run import Runner
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.arcp.runtime.ledger import ended_key
from amends.errors.arcp import ARCPError
from amends.logs import logger
from amends.stores import ConflictError

__all__ = ["Takeover", "waiting"]

_log = logger("amends.arcp")


def waiting(rows: Iterable[Summary]) -> dict[str, tuple[int, float]]:
    """Return for each agent the number of queued jobs and the creation time of the oldest."""
    found: dict[str, tuple[int, float]] = {}
    for row in rows:
        count, oldest = found.get(row.agent, (0, row.created))
        found[row.agent] = (count + 1, min(oldest, row.created))
    return found


@dataclass(eq=False)
class Takeover:
    """Finds jobs of dead nodes, and jobs that were lost between two writes."""

    _jobs: RunningJobs
    _membership: Membership
    _capacity: Capacity
    _quota: Quota
    _ended: EndedJobs
    _cancel: Cancellation
    _runner: Runner
    taken_over: int = 0
    """Jobs of dead nodes that this node has taken over."""
    waiting: dict[str, tuple[int, float]] = field(default_factory=dict)
    """For each agent the number of queued jobs and the creation time of the oldest, as of the last round."""
    _queued_since: dict[str, float] = field(default_factory=dict)
    """By the event loop's clock: when this node first saw each queued job in the store."""

    async def drop_lost_jobs(self) -> None:
        """Drop jobs that another node took over while this node did not renew its row."""
        for job in self._jobs:
            tail = await self._jobs.ledger.tail(job.spec.job_id)
            if tail is None or (tail[1].epoch, tail[1].node) != (job.epoch, job.node):
                job.drop()

    async def recover_orphans(self, owners: set[str] | None = None) -> None:
        """
        Take over jobs that no live node works on: of these owners ("" for queued jobs), or of all.

        With None every node reads the rows of all jobs, so this is done only from time to time.
        """
        membership = self._membership
        selected = [None] if owners is None else sorted(owners)
        peer_jobs = membership.peer_jobs
        with self._quota.counting() as meanwhile:
            rows = [found for owner in selected async for found in self._jobs.ledger.active(owner)]
            # Read the nodes after the jobs: a node writes its row before it takes its first job, so an owner without a
            # row is dead and cannot be a node that has just started.
            await membership.refresh_peers()
        alive = {membership.id, *membership.peers}
        queued = [row for owner, row in rows if not owner]
        self.waiting = waiting(queued)
        self._quota.update(queued, peer_jobs, meanwhile)
        now = self._jobs.tasks.loop.time()
        self._queued_since = {row.job_id: self._queued_since.get(row.job_id, now) for row in queued}
        for owner, row in rows:
            if owner == membership.id:
                await self._recover_own(row)
            elif owner and owner not in alive:
                with suppress(ConflictError):
                    await self.take_over(owner, row)
            elif not owner and self._overdue(row) and membership.is_responsible(row.job_id):
                # Without transactions, a crash may have happened before the job was put into its queue.
                await self.take_over(owner, row)

    def _overdue(self, row: Summary) -> bool:
        """
        Whether a job has been queued for longer than a lease.

        The row has the time of the submitter's clock, which may be ahead of this node's, so the time for which this node
        has seen the job in its queue counts too.
        """
        seen_for = self._jobs.tasks.loop.time() - self._queued_since[row.job_id]
        return max(time.time() - row.created, seen_for) > self._jobs.limits.node_lease

    async def _recover_own(self, row: Summary) -> None:
        """Take over a job of this node that it does not run, because the store failed when the job was started."""
        if row.job_id in self._jobs or row.job_id in self._capacity.being_written:
            return
        tail = await self._jobs.ledger.tail(row.job_id)
        # A younger job may be about to start.
        if tail is None or time.time() - tail[1].at > self._jobs.limits.node_lease:
            with suppress(ConflictError):
                await self.take_over(self._membership.id, row)

    async def take_over(self, owner: str, row: Summary) -> None:
        """
        Repair, requeue or end one job of a dead node, according to its log.

        Raises:
            ConflictError: another node has the job.

        """
        ledger = self._jobs.ledger
        spec, tail = await ledger.spec_and_tail(row.job_id)
        active, stale = ledger.store.table(ACTIVE), f"{owner or '-'}/{row.job_id}"
        if spec is None or tail is None:
            await active.delete(stale)
            return
        entry = tail[1]
        if entry.ended:
            await ledger.repair(spec, tail, status_of(entry), owner)
            self._ended.add(EndedJob(spec.job_id, ended_key(spec), spec.key, entry.at))
        elif entry.node != owner:
            # The node that wrote the newest entry crashed before it wrote the active row. Write that row; the next
            # round checks the job under its new owner.
            await ledger.write_owner(spec, entry)
            if not entry.node:
                await ledger.put_in_queue(spec)
            await active.delete(stale)
        elif not owner:
            if not ledger.store.traits.transactions:
                await ledger.put_in_queue(spec)
        elif await ledger.is_cancelled(spec.job_id):
            await self.end_orphan(spec, tail, cancellation(None))
        elif spec.repeatable:
            _log.warning("job %s is put back into its queue: node %s no longer runs it", spec.job_id, owner)
            await ledger.requeue(spec, tail)
            self.taken_over += 1
            self._capacity.add_to_backlog(spec.agent)
        else:
            _log.warning(
                "job %s ends in doubt: node %s no longer runs it (trace %s)", spec.job_id, owner, spec.trace
            )
            error = in_doubt("The node that ran the job is gone; the job may have had its effect")
            await self.end_orphan(spec, tail, error)
            self.taken_over += 1
            self._runner.counts["INTERNAL_ERROR"] += 1

    async def end_orphan(self, spec: JobSpec, tail: tuple[int, JobEntry], error: ARCPError) -> None:
        """End a run on behalf of its dead node, and cancel the jobs that it delegated."""
        await self._cancel.end(spec, tail, error, node=self._membership.id)
        children = [row.job_id async for _, row in self._jobs.ledger.active() if row.parent == spec.job_id]
        await self._cancel.cancel_children(children)
