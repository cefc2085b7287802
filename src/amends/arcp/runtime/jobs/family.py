"""
The limits of a family: all jobs that one submitted job, the root, has delegated directly or indirectly.

The number of its jobs is in a row of the store, because descendants may run on any node. It counts every job that was
admitted, also those that have ended.
"""

from __future__ import annotations

from amends.arcp.runtime.entries import FAMILIES
from amends.arcp.runtime.jobs.job import Job
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.errors.arcp import ARCPError, CancelledError, PermissionDeniedError
from amends.stores import ConflictError

__all__ = ["Families", "check_not_stopping"]

_KEPT = 7 * 86_400.0
"""Seconds for which the number of a family's jobs is stored after its last delegation."""


class Families:
    """Admits delegated jobs."""

    def __init__(self, jobs: RunningJobs) -> None:
        self._jobs = jobs
        self._limits = jobs.limits
        self._table = jobs.ledger.store.table(FAMILIES)

    async def admit(self, parent: Job) -> None:
        """
        Count another job that `parent` delegates.

        Raises:
            PermissionDeniedError: the job would be too deep, the family has too many jobs, or its root has ended.
            ARCPError: the parent is being stopped; this is the error that it ends with.

        """
        check_not_stopping(parent)
        limits = self._limits
        if parent.spec.depth >= limits.delegation_depth:
            raise _refused(
                "The job would be delegated too deeply", "delegation_depth", limits.delegation_depth
            )
        root = parent.spec.root or parent.spec.job_id
        if root != parent.spec.job_id and not await self._is_unfinished(root):
            raise PermissionDeniedError(
                "The job at the root of this delegation has ended", details={"root_job_id": root}
            )
        await self._count(root)
        check_not_stopping(parent)

    async def _is_unfinished(self, root: str) -> bool:
        job = self._jobs.get(root)
        if job is not None:
            return job.is_running and job.stopping is None
        tail = await self._jobs.ledger.tail(root)
        return tail is not None and not tail[1].ended

    async def _count(self, root: str) -> None:
        limit = self._limits.jobs_per_root
        while True:
            row = await self._table.get(root)
            count = 0 if row is None else int(row.value)
            if count >= limit:
                raise _refused("The root of this delegation has too many jobs", "jobs_per_root", limit)
            try:
                if row is None:
                    await self._table.create(root, b"1", expires_in=_KEPT)
                else:
                    value = str(count + 1).encode()
                    await self._table.put(root, value, revision=row.revision, expires_in=_KEPT)
            except ConflictError:
                continue
            return


def check_not_stopping(job: Job) -> None:
    """
    Check that a job may still delegate.

    Raises:
        ARCPError: it is being stopped, or it has ended.

    """
    if job.stopping is not None:
        raise job.stopping
    if not job.is_running:
        raise CancelledError("The job has ended")


def _refused(why: str, limit: str, value: int) -> ARCPError:
    return PermissionDeniedError(why, details={"limit": limit, "value": value})
