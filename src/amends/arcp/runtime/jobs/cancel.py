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
from typing import TYPE_CHECKING

import msgspec

from amends.arcp.runtime.entries import CANCELS, CONTROL, Control, JobEntry, JobSpec, encode
from amends.arcp.runtime.jobs.run import error_payload, schedule_eviction
from amends.arcp.runtime.node import EndedJob
from amends.errors.arcp import CancelledError, InvalidRequestError
from amends.stores import ConflictError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node

__all__ = ["cancel", "cancel_children", "cancellation", "end_queued"]

_CANCEL_KEPT = 86_400.0
_LONGEST_REASON = 512


def cancellation(reason: str | None) -> CancelledError:
    """Return the error that a cancelled job ends with."""
    details = {"reason": reason[:_LONGEST_REASON]} if reason else None
    return CancelledError("The job was cancelled", details=details)


async def cancel(node: Node, spec: JobSpec, reason: str | None) -> None:
    """
    End a job, or ask the node that runs it to end it.

    Raises:
        InvalidRequestError: the job has already ended.

    """
    while True:
        job = node.jobs.get(spec.job_id)
        if job is not None:
            if job.phase != "running":
                raise _already_ended()
            job.stop(cancellation(reason))
            return
        tail = await node.ledger.tail(spec.job_id)
        if tail is None or tail[1].ended:
            raise _already_ended()
        if tail[1].node:
            await node.store.table(CANCELS).put(spec.job_id, b"", expires_in=_CANCEL_KEPT)
            await node.store.log(CONTROL).append(encode(Control(cancel=spec.job_id, reason=reason)))
            return
        if await end_queued(node, spec, tail, cancellation(reason)):
            return


async def end_queued(node: Node, spec: JobSpec, tail: tuple[int, JobEntry], error: CancelledError) -> bool:
    """End a job that waits in its queue. Returns False if another node has taken it."""
    last, before = tail
    payload, status = error_payload(error.fault, before.run, node.limits.event_bytes)
    entry = JobEntry("error", before.run, before.epoch + 1, "", time.time(), msgspec.Raw(payload))
    try:
        await node.ledger.end(spec, [entry], last, status, before.node)
    except ConflictError:
        return False
    node.start_queued_feeds(spec.job_id)
    schedule_eviction(node, EndedJob(spec.job_id, spec.principal, spec.key, time.time()))
    if node.credentials is not None:
        node.spawn(node.credentials.revoke(spec.job_id))
    return True


async def cancel_children(node: Node, children: list[str]) -> None:
    """Cancel the jobs that were delegated by a job that has ended."""
    for job_id in children:
        spec = await node.ledger.spec(job_id)
        if spec is not None:
            with suppress(InvalidRequestError):
                await cancel(node, spec, "the job that delegated it has ended")


def _already_ended() -> InvalidRequestError:
    return InvalidRequestError("The job has already ended", details={"field": "job_id"})
