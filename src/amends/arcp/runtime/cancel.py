"""
Ending a job on request (section 7.4), wherever it is: running here, running elsewhere, or still in a queue.

A job that runs here is told to stop. One in a queue is ended in its log, behind the entry that was looked at: a node
that takes it at the same moment is either first, and is told, or too late, and leaves it. One that runs elsewhere is
named in a log that every node reads, and in a table for a node that takes the job over.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from amends.arcp.runtime.entries import CANCELS, CONTROL, Control, JobEntry, JobSpec, encode
from amends.arcp.runtime.node import Ended
from amends.arcp.runtime.runner import error_payload, keep
from amends.errors.arcp import CancelledError, InvalidRequestError
from amends.stores import ConflictError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node

__all__ = ["cancel", "cancel_children", "cancellation", "end_waiting"]

_REMEMBERED = 86_400.0
_LONGEST_REASON = 512


def cancellation(reason: str | None) -> CancelledError:
    """Why the job ends."""
    details = {"reason": reason[:_LONGEST_REASON]} if reason else None
    return CancelledError("The job was cancelled", details=details)


async def cancel(node: Node, order: JobSpec, reason: str | None) -> None:
    """
    See to it that a job ends.

    Raises:
        InvalidRequestError: it has ended.

    """
    while True:
        job = node.jobs.get(order.job_id)
        if job is not None:
            if job.phase != "running":
                raise _ended()
            job.stop(cancellation(reason))
            return
        tail = await node.ledger.tail(order.job_id)
        if tail is None or tail[1].ended:
            raise _ended()
        if tail[1].node:
            await node.store.table(CANCELS).put(order.job_id, b"", expires_in=_REMEMBERED)
            await node.store.log(CONTROL).append(encode(Control(cancel=order.job_id, reason=reason)))
            return
        if await end_waiting(node, order, tail, cancellation(reason)):
            return


async def end_waiting(node: Node, order: JobSpec, tail: tuple[int, JobEntry], error: CancelledError) -> bool:
    """End a job nobody works on; False when somebody has taken it."""
    last, before = tail
    payload, status = error_payload(error.fault, before.run, node.limits.event_bytes)
    mark = JobEntry("error", before.run, before.epoch + 1, "", time.time(), msgspec.Raw(payload))
    try:
        await node.ledger.end(order, [mark], last, status, before.node)
    except ConflictError:
        return False
    node.bring(order.job_id)
    keep(node, Ended(order.job_id, order.principal, order.key, time.time()))
    if node.credentials is not None:
        node.spawn(node.credentials.revoke(order.job_id))
    return True


async def cancel_children(node: Node, children: list[str]) -> None:
    """A job that has ended leaves nobody behind who works for it."""
    for job_id in children:
        order = await node.ledger.order(job_id)
        if order is not None:
            with suppress(InvalidRequestError):
                await cancel(node, order, "the job that asked for it has ended")


def _ended() -> InvalidRequestError:
    return InvalidRequestError("The job has ended", details={"field": "job_id"})
