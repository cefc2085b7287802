"""
Write a job to the store, and start it here or put it into its queue; the same for another run of an ended job.

`server.submissions` serves the request of a client with it, `delegate` the request of an agent.
"""

from __future__ import annotations

from amends.arcp.leases import Budget
from amends.arcp.runtime.agents import Agent
from amends.arcp.runtime.cluster.membership import Membership
from amends.arcp.runtime.cluster.quota import Capacity, Quota
from amends.arcp.runtime.entries import JobEntry, JobSpec
from amends.arcp.runtime.jobs.amounts import spend
from amends.arcp.runtime.jobs.job import Job
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.arcp.runtime.ledger import ExtraSteps, Ledger
from amends.errors.arcp import InternalError

__all__ = ["Launcher", "restore"]


class Launcher:
    """Starts jobs on one node, or queues them."""

    def __init__(self, jobs: RunningJobs, membership: Membership, capacity: Capacity, quota: Quota) -> None:
        self._jobs = jobs
        self._ledger = jobs.ledger
        self._membership = membership
        self._capacity = capacity
        self._quota = quota

    async def start_or_queue(
        self, spec: JobSpec, *, child: bool = False, extra: ExtraSteps = None
    ) -> Job | None:
        """
        Write a job to the store, and start it here if this node has the agent and free capacity; otherwise queue it.

        `Quota.admit` has counted the job. A delegated job (`child`) is queued only for another node that has a free
        place: its parent waits for it and keeps its own place, so that a full node could wait for ever.

        Returns:
            The started job, or None if the job was queued.

        Raises:
            ConflictError: another job has its key.
            InternalError: there is no place for a delegated job.

        """
        capacity = self._capacity
        agent = self._membership.agents.lookup(spec.agent)
        here = agent is not None and capacity.has_room(spec.agent)
        if child:
            here = agent is not None and not capacity.full and not capacity.draining
            name, _, version = spec.agent.partition("@")
            if not here and not self._membership.has_free_peer(name, version):
                raise InternalError(
                    "No node has a place for the delegated job",
                    details={"limit": "running", "value": self._jobs.limits.running},
                )
        if here:
            capacity.reserve()
        capacity.being_written.add(spec.job_id)
        try:
            await self._ledger.accept(spec, here=here, extra=extra)
        except BaseException:
            if here:
                capacity.release()
            raise
        finally:
            capacity.being_written.discard(spec.job_id)
        if here and agent is not None:
            return self.create_job(
                spec, agent, JobEntry("accepted", 1, 1, self._ledger.node, spec.created), 1
            )
        self._quota.job_ended(spec.principal)
        self._record_queued(spec)
        return None

    async def rerun(self, spec: JobSpec, tail: tuple[int, JobEntry]) -> Job | None:
        """
        Write another run of an ended job behind `tail`, and start it here or queue it.

        Returns:
            The started job, or None if the job was queued.

        Raises:
            ConflictError: another node did so first.

        """
        capacity = self._capacity
        agent = self._membership.agents.lookup(spec.agent)
        here = agent is not None and capacity.has_room(spec.agent)
        if here:
            capacity.reserve()
        capacity.being_written.add(spec.job_id)
        try:
            entry = await self._ledger.rerun(spec, tail, here=here)
        except BaseException:
            if here:
                capacity.release()
            raise
        finally:
            capacity.being_written.discard(spec.job_id)
        if here and agent is not None:
            self._quota.job_started(spec.principal)
            return self.create_job(spec, agent, entry, tail[0] + 1)
        self._record_queued(spec)
        return None

    def create_job(self, spec: JobSpec, agent: Agent, entry: JobEntry, last: int) -> Job:
        """Create the `Job` for a run that is in the store and has reserved its place, and add it to the node."""
        job = Job(self._jobs, spec, agent, run=entry.run, epoch=entry.epoch, last=last)
        self._jobs.add(job)
        return job

    def _record_queued(self, spec: JobSpec) -> None:
        self._quota.job_queued(spec.principal)
        self._capacity.add_to_backlog(spec.agent)


async def restore(ledger: Ledger, job: Job) -> None:
    """Set the budget and the clock of a job that ran before, from its log."""
    budget, latest = Budget(job.lease.budget.left), job.spec.created
    async for _, entry in ledger.history(job.spec.job_id):
        latest = max(latest, entry.at)
        budget = spend(budget, entry)
    job.budget = budget
    job.set_clock(latest)
