"""
Cancel a job (section 7.4) that runs here, runs on another node, or waits in a queue.

- If the job runs on this node, its agent is stopped.
- If it waits in a queue, a terminal entry is appended to its log behind the newest entry. A node that takes the job at
  the same moment either appends first, and then receives the request, or fails to append and leaves the job.
- If it runs on another node, the request is written to a log that every node reads, and to a table for the case that
  another node takes the job over.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from amends.arcp.runtime.cluster.retention import EndedJob, EndedJobs
from amends.arcp.runtime.credentials.lifecycle import CredentialLifecycle
from amends.arcp.runtime.entries import CANCELS, CONTROL, Control, JobEntry, JobSpec, encode
from amends.arcp.runtime.jobs.outcome import error_outcome
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.arcp.runtime.ledger import Ledger, ended_key
from amends.arcp.runtime.limits import Limits
from amends.errors.arcp import ARCPError, CancelledError, InvalidRequestError
from amends.logs import logger
from amends.stores import ConflictError, Log, StoreError, TrimmedError
from amends.stores.signal import Signal

__all__ = ["Cancellation", "cancel_in_store", "cancellation", "follow_control"]

_log = logger("amends.arcp")
_read_control = msgspec.json.Decoder(Control).decode
_CONTROL_KEPT = 1_000
_CONTROL_PAUSE = 0.02
_CANCEL_KEPT = 86_400.0
_LONGEST_REASON = 512


def cancellation(reason: str | None) -> CancelledError:
    """Return the error that a cancelled job ends with."""
    details = {"reason": reason[:_LONGEST_REASON]} if reason else None
    return CancelledError("The job was cancelled", details=details)


@dataclass(eq=False)
class Cancellation:
    """Cancels jobs on behalf of one node."""

    _jobs: RunningJobs
    _ended: EndedJobs
    _credentials: CredentialLifecycle

    async def cancel(self, spec: JobSpec, reason: str | None) -> None:
        """
        End a job, or ask the node that runs it to end it.

        Raises:
            InvalidRequestError: the job has already ended.

        """
        while True:
            job = self._jobs.get(spec.job_id)
            if job is not None:
                if not job.is_running:
                    raise _already_ended()
                job.stop(cancellation(reason))
                return
            tail = await _tail_to_end(self._jobs.ledger, spec, reason)
            if tail is None or await self.end_queued(spec, tail, cancellation(reason)):
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
        entry = await _end(self._jobs.ledger, spec, tail, error, node, self._jobs.limits)
        self._ended.add(EndedJob(spec.job_id, ended_key(spec), spec.key, entry.at))
        self._credentials.revoke_later(spec.job_id)

    async def cancel_children(self, children: list[str]) -> None:
        """Cancel the jobs that were delegated by a job that has ended."""
        for job_id in children:
            spec = await self._jobs.ledger.spec(job_id)
            if spec is not None:
                with suppress(InvalidRequestError):
                    await self.cancel(spec, "the job that delegated it has ended")


async def cancel_in_store(ledger: Ledger, spec: JobSpec, reason: str | None, limits: Limits) -> None:
    """
    Cancel a job from a process that is no node: end it if it waits in a queue, else ask the node that runs it.

    Raises:
        InvalidRequestError: the job has already ended.

    """
    while (tail := await _tail_to_end(ledger, spec, reason)) is not None:
        with suppress(ConflictError):
            await _end(ledger, spec, tail, cancellation(reason), "", limits)
            return


async def _tail_to_end(ledger: Ledger, spec: JobSpec, reason: str | None) -> tuple[int, JobEntry] | None:
    """Return the newest entry of a job that waits in its queue; ask the node that runs it, and return None."""
    tail = await ledger.tail(spec.job_id)
    if tail is None or tail[1].ended:
        raise _already_ended()
    if not tail[1].node:
        return tail
    await ledger.store.table(CANCELS).put(spec.job_id, b"", expires_in=_CANCEL_KEPT)
    await ledger.store.log(CONTROL).append(encode(Control(cancel=spec.job_id, reason=reason)))
    return None


async def _end(
    ledger: Ledger, spec: JobSpec, tail: tuple[int, JobEntry], error: ARCPError, node: str, limits: Limits
) -> JobEntry:
    last, before = tail
    outcome = error_outcome(error, before.run, limits.event_bytes)
    payload = msgspec.Raw(outcome.payload)
    entry = JobEntry("error", before.run, before.epoch + 1, node, time.time(), payload)
    await ledger.end(spec, [entry], last, outcome.status, before.node)
    return entry


def _already_ended() -> InvalidRequestError:
    return InvalidRequestError("The job has already ended", details={"field": "job_id"})


async def follow_control(jobs: RunningJobs, every: float) -> None:
    """Read cancellations that other nodes request: when the log signals a change, and every `every` seconds."""
    log = jobs.ledger.store.log(CONTROL)
    async with log.watch() as signal:
        await _follow(jobs, log, signal, every)


async def _follow(jobs: RunningJobs, log: Log, signal: Signal, every: float) -> None:
    position = 0
    while True:
        seen = signal.count
        try:
            if not position:
                position = (await log.bounds()).last + 1
            for stored in await log.read(position):
                position = stored.seq + 1
                request = _read_control(stored.value)
                job = jobs.get(request.cancel or request.signal)
                if job is not None and request.signal:
                    job.signalled.notify()
                elif job is not None:
                    job.stop(cancellation(request.reason))
                if stored.seq % _CONTROL_KEPT == 0:
                    await log.trim(stored.seq - _CONTROL_KEPT)
        except TrimmedError as trimmed:
            position = trimmed.first
        except StoreError:
            _log.warning("requests of other nodes cannot be read: the store failed")
            await asyncio.sleep(1.0)
        await signal.wait(seen, every)
        # SQLite signals every commit of every job. This pause limits the reads; a cancellation can wait for it.
        await asyncio.sleep(_CONTROL_PAUSE)
