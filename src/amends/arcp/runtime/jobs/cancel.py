"""
Cancel a job (section 7.4) that runs here, runs on another node, or waits in a queue.

- If the job runs on this node, its agent is stopped.
- If it waits in a queue, a terminal entry is appended to its log behind the newest entry. A node that takes the job at
  the same moment either appends first, and then receives the request, or fails to append and leaves the job.
- If it runs on another node, the request is written to a log that every node reads, and to a table for the case that
  another node takes the job over.
"""

from __future__ import annotations

import time
from contextlib import suppress

import msgspec

from amends.arcp.runtime.cluster.retention import EndedJob, EndedJobs
from amends.arcp.runtime.credentials.lifecycle import CredentialLifecycle
from amends.arcp.runtime.entries import CANCELS, CONTROL, Control, JobEntry, JobSpec, encode
from amends.arcp.runtime.jobs.outcome import error_outcome
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.errors.arcp import ARCPError, CancelledError, InvalidRequestError
from amends.stores import ConflictError

__all__ = ["Cancellation", "cancellation"]

_CANCEL_KEPT = 86_400.0
_LONGEST_REASON = 512


def cancellation(reason: str | None) -> CancelledError:
    """Return the error that a cancelled job ends with."""
    details = {"reason": reason[:_LONGEST_REASON]} if reason else None
    return CancelledError("The job was cancelled", details=details)


class Cancellation:
    """Cancels jobs on behalf of one node."""

    def __init__(self, jobs: RunningJobs, ended: EndedJobs, credentials: CredentialLifecycle | None) -> None:
        self._jobs = jobs
        self._ledger = jobs.ledger
        self._ended = ended
        self._credentials = credentials

    async def cancel(self, spec: JobSpec, reason: str | None) -> None:
        """
        End a job, or ask the node that runs it to end it.

        Raises:
            InvalidRequestError: the job has already ended.

        """
        store = self._ledger.store
        while True:
            job = self._jobs.get(spec.job_id)
            if job is not None:
                if not job.is_running:
                    raise _already_ended()
                job.stop(cancellation(reason))
                return
            tail = await self._ledger.tail(spec.job_id)
            if tail is None or tail[1].ended:
                raise _already_ended()
            if tail[1].node:
                await store.table(CANCELS).put(spec.job_id, b"", expires_in=_CANCEL_KEPT)
                await store.log(CONTROL).append(encode(Control(cancel=spec.job_id, reason=reason)))
                return
            if await self.end_queued(spec, tail, cancellation(reason)):
                return

    async def end_queued(self, spec: JobSpec, tail: tuple[int, JobEntry], error: ARCPError) -> bool:
        """End a job that waits in its queue. Returns False if another node has taken it."""
        try:
            await self.end(spec, tail, error, node="")
        except ConflictError:
            return False
        self._jobs.left_queue(spec.job_id)
        return True

    async def end(self, spec: JobSpec, tail: tuple[int, JobEntry], error: ARCPError, *, node: str) -> None:
        """
        End a run that no node works on, behind `tail`. `node` is the node that writes the end; empty for a queued job.

        Raises:
            ConflictError: another node has the job.

        """
        last, before = tail
        outcome = error_outcome(error, before.run, self._jobs.limits.event_bytes)
        payload = msgspec.Raw(outcome.payload)
        entry = JobEntry("error", before.run, before.epoch + 1, node, time.time(), payload)
        await self._ledger.end(spec, [entry], last, outcome.status, before.node)
        self._ended.add(EndedJob(spec.job_id, spec.principal, spec.key, entry.at))
        if self._credentials is not None:
            self._jobs.tasks.spawn(self._credentials.revoke(spec.job_id))

    async def cancel_children(self, children: list[str]) -> None:
        """Cancel the jobs that were delegated by a job that has ended."""
        for job_id in children:
            spec = await self._ledger.spec(job_id)
            if spec is not None:
                with suppress(InvalidRequestError):
                    await self.cancel(spec, "the job that delegated it has ended")


def _already_ended() -> InvalidRequestError:
    return InvalidRequestError("The job has already ended", details={"field": "job_id"})
