"""The jobs that run on this node: written to the store and started here, or put into their queue for any node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from amends.arcp.leases import Budget
from amends.arcp.runtime.agents import Agent
from amends.arcp.runtime.cluster.membership import Membership
from amends.arcp.runtime.cluster.quota import Capacity, Quota
from amends.arcp.runtime.entries import JobEntry, JobSpec, encode
from amends.arcp.runtime.jobs.amounts import spend
from amends.arcp.runtime.jobs.job import Follower, Job
from amends.arcp.runtime.jobs.steps import load_entries
from amends.arcp.runtime.ledger import Ledger
from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.tasks import Tasks
from amends.effects.steps import StepRecord
from amends.errors.arcp import InternalError

__all__ = ["RunningJobs", "restore"]


@dataclass(eq=False)
class RunningJobs:
    """The running jobs of one node, the places they take, and the followers of jobs that wait in a queue."""

    ledger: Ledger
    limits: Limits
    tasks: Tasks
    _membership: Membership
    _capacity: Capacity
    _quota: Quota
    exclusive: bool
    """Whether no other node uses the store, so that only this node can start a queued job."""
    _jobs: dict[str, Job] = field(default_factory=dict)
    _waiting: dict[str, list[Follower]] = field(default_factory=dict)
    conclude_abandoned: Callable[[Job], None] = lambda _: None
    """Ends a job whose agent did not stop; set by the node."""

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._jobs

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(list(self._jobs.values()))

    def __getitem__(self, job_id: str) -> Job:
        return self._jobs[job_id]

    def get(self, job_id: str) -> Job | None:
        """Return the job with this id if it runs on this node."""
        return self._jobs.get(job_id)

    # -- starting jobs

    async def start_or_queue(self, spec: JobSpec, *, child: bool = False) -> Job | None:
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
            limit = capacity.limit_of(spec.agent)
            here = agent is not None and not limit and not capacity.draining
            if not here:
                self._check_place_elsewhere(spec, limit)
        entry = await capacity.write(spec.job_id, spec.agent, self.ledger.accept(spec, here=here), here=here)
        if here and agent is not None:
            return self.create(spec, agent, entry, 1)
        self._quota.job_ended(spec.principal)
        self._record_queued(spec)
        return None

    def _check_place_elsewhere(self, spec: JobSpec, limit: str) -> None:
        """
        Check that another node can run a delegated job.

        Raises:
            InternalError: none can. An agent that limits itself does so on its other nodes, too, and jobs that wait for
                each other there would wait for ever.

        """
        name, _, version = spec.agent.partition("@")
        value: object
        if limit in {"", "running"}:
            if self._membership.has_free_peer(name, version):
                return
            limit, value = "running", self.limits.running
        else:
            agent = self._membership.agents.lookup(spec.agent)
            assert agent is not None  # it has the limit
            value = agent.limits.concurrency if limit == "concurrency" else agent.limits.rate
        raise InternalError(
            "No node has a place for the delegated job", details={"limit": limit, "value": value}
        )

    async def rerun(self, spec: JobSpec, tail: tuple[int, JobEntry]) -> Job | None:
        """
        Write another run of an ended job behind `tail`, and start it here or queue it.

        Returns:
            The started job, or None if the job was queued.

        Raises:
            ConflictError: another node did so first.

        """
        agent = self._membership.agents.lookup(spec.agent)
        here = agent is not None and self._capacity.has_room(spec.agent)
        rerun = self.ledger.rerun(spec, tail, here=here)
        entry = await self._capacity.write(spec.job_id, spec.agent, rerun, here=here)
        if here and agent is not None:
            self._quota.job_started(spec.principal)
            return self.create(spec, agent, entry, tail[0] + 1)
        self._record_queued(spec)
        return None

    async def continue_run(self, spec: JobSpec, tail: tuple[int, JobEntry], answered: StepRecord) -> None:
        """
        Queue a run that continues the steps of the ended one, of which a question was answered.

        Raises:
            ConflictError: another node did so first.

        """
        rerun = self.ledger.rerun(spec, tail, here=False, answered=encode(answered))
        await self._capacity.write(spec.job_id, spec.agent, rerun, here=False)
        self._record_queued(spec)
        self._capacity.queue_wakeup.set()

    def _record_queued(self, spec: JobSpec) -> None:
        self._quota.job_queued(spec.principal)
        self._capacity.add_to_backlog(spec.agent)

    def create(self, spec: JobSpec, agent: Agent, entry: JobEntry, last: int) -> Job:
        """Create the `Job` for a run that is in the store and has reserved its place, and add it to the node."""
        job = Job(self, spec, agent, run=entry.run, epoch=entry.epoch, last=last)
        self.add(job)
        return job

    def add(self, job: Job) -> None:
        """Add a job that has reserved its place."""
        old = self._jobs.get(job.spec.job_id)
        if old is not None:
            # Another node had taken the job over, and this node has started it again before it noticed.
            old.drop()
        self._jobs[job.spec.job_id] = job
        self.left_queue(job.spec.job_id)

    # -- ending jobs

    def remove(self, job: Job) -> None:
        """Remove a job that has ended or belongs to another node, and free its place."""
        if self._jobs.get(job.spec.job_id) is job:
            del self._jobs[job.spec.job_id]
            self._quota.job_ended(job.spec.principal)
            self._capacity.release(job.spec.agent)
            followers, job.followers = job.followers, []
            for follower in followers:
                # The job continues on another node, so the follower reads its log.
                follower.begin()

    def abandon(self, job: Job) -> None:
        """End a job whose agent did not stop within the grace period."""
        if job.is_running:
            self.conclude_abandoned(job)

    # -- queued jobs of an exclusive store; only this node can start them

    def wait_in_queue(self, job_id: str, follower: Follower) -> None:
        """Let a follower wait until a queued job has started or ended."""
        self._waiting.setdefault(job_id, []).append(follower)

    def left_queue(self, job_id: str) -> None:
        """Start the followers that waited for a queued job, because the job has started or ended."""
        for follower in self._waiting.pop(job_id, ()):
            follower.begin()


async def restore(ledger: Ledger, job: Job) -> None:
    """Set the budget, the clock and the steps of a job that ran before, from its log."""
    budget, latest = Budget(job.lease.budget.left), job.spec.created
    entries = await load_entries(ledger, job)
    for entry in entries:
        latest = max(latest, entry.at)
        budget = spend(budget, entry)
    job.steps.load(entries)
    job.budget = budget
    job.set_clock(latest)
