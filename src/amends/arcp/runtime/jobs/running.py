"""The jobs that run on this node, by id."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from amends.arcp.runtime.cluster.quota import Capacity, Quota
from amends.arcp.runtime.jobs.job import Follower, Job
from amends.arcp.runtime.ledger import Ledger
from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.tasks import Tasks

__all__ = ["RunningJobs"]


class RunningJobs:
    """The running jobs of one node, the places they take, and the followers of jobs that wait in a queue."""

    def __init__(
        self,
        ledger: Ledger,
        limits: Limits,
        tasks: Tasks,
        capacity: Capacity,
        quota: Quota,
        *,
        exclusive: bool,
    ) -> None:
        self.ledger = ledger
        self.limits = limits
        self.tasks = tasks
        self.exclusive = exclusive
        """Whether no other node uses the store, so that only this node can start a queued job."""
        self._capacity = capacity
        self._quota = quota
        self._jobs: dict[str, Job] = {}
        self._waiting: dict[str, list[Follower]] = {}
        self.conclude_abandoned: Callable[[Job], None] = lambda _: None
        """Ends a job whose agent did not stop; set by the runner."""

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

    def add(self, job: Job) -> None:
        """Add a job that has reserved its place."""
        old = self._jobs.get(job.spec.job_id)
        if old is not None:
            # Another node had taken the job over, and this node has started it again before it noticed.
            old.drop()
        self._jobs[job.spec.job_id] = job
        self.left_queue(job.spec.job_id)

    def remove(self, job: Job) -> None:
        """Remove a job that has ended or belongs to another node, and free its place."""
        if self._jobs.get(job.spec.job_id) is job:
            del self._jobs[job.spec.job_id]
            self._quota.job_ended(job.spec.principal)
            self._capacity.release()
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
