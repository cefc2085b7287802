"""
Periodic tasks of a node: its heartbeat, the takeover of jobs from dead nodes, requests of other nodes, and retention.

A job that was running when its node died runs again only if its agent was registered as `repeatable`. Any other job may
have had its effect, so its run ends with INTERNAL_ERROR and `in_doubt`. Its idempotency key returns that error, and the
job never runs again by itself.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from amends.arcp.runtime.entries import (
    ACTIVE,
    CONTROL,
    SESSIONS,
    Control,
    JobEntry,
    JobSpec,
    Summary,
    session_log,
)
from amends.arcp.runtime.jobs.cancel import cancel_children, cancellation
from amends.arcp.runtime.jobs.run import error_payload, schedule_eviction, status_of
from amends.arcp.runtime.node import EndedJob
from amends.errors.arcp import ARCPError, InternalError
from amends.stores import ConflictError, Log, StoreError, TrimmedError
from amends.stores.signal import Signal

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node

__all__ = ["evict", "follow_control", "heartbeat", "in_doubt", "maintain", "take_over_retention", "waiting"]

_log = logging.getLogger("amends.arcp")
_read_control = msgspec.json.Decoder(Control).decode
_FULL_SCAN = 9
"""Every so many rounds the jobs of all nodes are checked; the jobs of a dead node are checked as soon as it is noticed."""
_CONTROL_KEPT = 1_000
_CONTROL_PAUSE = 0.02


def in_doubt(why: str) -> InternalError:
    """Return the error for a run that may have had its effect."""
    return InternalError(why, details={"in_doubt": True, "executed": "maybe"})


async def heartbeat(node: Node) -> None:
    """Renew this node's row three times per lease, independently of all other work."""
    drop_lost_jobs = partial(_drop_lost_jobs, node)
    await node.workers.keep_announcing(node.announce, log=_log, after_lapse=drop_lost_jobs)


async def maintain(node: Node) -> None:
    """Do all other periodic work, three times per lease unless a round takes longer."""
    for number in itertools.count():
        try:
            await node.sessions.expire()
            await evict(node)
            if node.exclusive:
                with node.quota.counting() as meanwhile:
                    rows = [row async for _, row in node.ledger.active("")]
                node.quota.update(rows, (), meanwhile)
            else:
                await node.refresh_peers()
                gone = set(node.dead_peers)
                await recover_orphans(node, None if number % _FULL_SCAN == 0 else {node.id, "", *gone})
                if any(_is_responsible(node, one) for one in gone):
                    # The dead node would have deleted its ended jobs later.
                    await take_over_retention(node)
                node.dead_peers -= gone
            if node.credentials is not None:
                await node.credentials.clean_up()
        except StoreError:
            _log.warning("a round of maintenance failed: the store failed")
        await asyncio.sleep(node.limits.node_lease / 3)


# -- jobs of dead nodes


async def _drop_lost_jobs(node: Node) -> None:
    """Drop jobs that another node took over while this node did not renew its row."""
    for job in list(node.jobs.values()):
        tail = await node.ledger.tail(job.spec.job_id)
        if tail is None or (tail[1].epoch, tail[1].node) != (job.epoch, node.id):
            job.drop()


async def recover_orphans(node: Node, owners: set[str] | None = None) -> None:
    """
    Take over jobs that no live node works on: of these owners ("" for queued jobs), or of all.

    With None every node reads the rows of all jobs, so this is done only from time to time.
    """
    selected = [None] if owners is None else sorted(owners)
    peer_jobs = node.peer_jobs
    with node.quota.counting() as meanwhile:
        rows = [found for owner in selected async for found in node.ledger.active(owner)]
        # Read the nodes after the jobs: a node writes its row before it takes its first job, so an owner without a row
        # is dead and cannot be a node that has just started.
        await node.refresh_peers()
    alive = {node.id, *node.peers}
    node.waiting = waiting(row for owner, row in rows if not owner)
    node.quota.update((row for owner, row in rows if not owner), peer_jobs, meanwhile)
    now = node.loop.time()
    node.queued_since = {
        row.job_id: node.queued_since.get(row.job_id, now) for owner, row in rows if not owner
    }
    for owner, row in rows:
        if owner == node.id:
            await _recover_own(node, row)
        elif owner and owner not in alive:
            with suppress(ConflictError):
                await _take_over(node, owner, row)
        elif not owner and _overdue(node, row) and _is_responsible(node, row.job_id):
            # Without transactions, a crash may have happened before the job was put into its queue.
            await _take_over(node, owner, row)


def waiting(rows: Iterable[Summary]) -> dict[str, tuple[int, float]]:
    """Return for each agent the number of queued jobs and the creation time of the oldest."""
    found: dict[str, tuple[int, float]] = {}
    for row in rows:
        count, oldest = found.get(row.agent, (0, row.created))
        found[row.agent] = (count + 1, min(oldest, row.created))
    return found


def _overdue(node: Node, row: Summary) -> bool:
    """
    Whether a job has been queued for longer than a lease.

    The row has the time of the submitter's clock, which may be ahead of this node's, so the time for which this node has
    seen the job in its queue counts too.
    """
    lease = node.limits.node_lease
    seen_for = node.loop.time() - node.queued_since[row.job_id]
    return time.time() - row.created > lease or seen_for > lease


def _is_responsible(node: Node, job_id: str) -> bool:
    """Whether this node handles a queued job (or dead node): each live node handles a share of them."""
    return node.id == max((node.id, *node.peers), key=lambda one: zlib.crc32(f"{one}/{job_id}".encode()))


async def _recover_own(node: Node, row: Summary) -> None:
    """Take over a job of this node that it does not run, because the store failed when the job was started."""
    if row.job_id in node.jobs or row.job_id in node.being_written:
        return
    tail = await node.ledger.tail(row.job_id)
    # A younger job may be about to start.
    if tail is None or time.time() - tail[1].at > node.limits.node_lease:
        with suppress(ConflictError):
            await _take_over(node, node.id, row)


async def _take_over(node: Node, owner: str, row: Summary) -> None:
    spec, tail = await node.ledger.spec_and_tail(row.job_id)
    stale = f"{owner or '-'}/{row.job_id}"
    if spec is None or tail is None:
        await node.store.table(ACTIVE).delete(stale)
        return
    entry = tail[1]
    if entry.ended:
        await node.ledger.repair(spec, tail, status_of(entry.kind, entry.payload), owner)
        schedule_eviction(node, EndedJob(spec.job_id, spec.principal, spec.key, entry.at))
    elif entry.node != owner:
        # The node that wrote the newest entry crashed before it wrote the active row. Write that row; the next round
        # checks the job under its new owner.
        await node.ledger.write_owner(spec, entry)
        if not entry.node:
            await node.ledger.put_in_queue(spec)
        await node.store.table(ACTIVE).delete(stale)
    elif not owner:
        if not node.store.supports_transactions:
            await node.ledger.put_in_queue(spec)
    elif await node.ledger.is_cancelled(spec.job_id):
        await end_orphan(node, spec, tail, cancellation(None))
    elif spec.repeatable:
        _log.warning("job %s is put back into its queue: node %s no longer runs it", spec.job_id, owner)
        await node.ledger.requeue(spec, tail)
        node.taken_over += 1
        node.backlog.add(spec.agent)
        node.queue_wakeup.set()
    else:
        _log.warning(
            "job %s ends in doubt: node %s no longer runs it (trace %s)", spec.job_id, owner, spec.trace
        )
        await end_orphan(
            node, spec, tail, in_doubt("The node that ran the job is gone; the job may have had its effect")
        )
        node.taken_over += 1
        node.counts["INTERNAL_ERROR"] += 1


async def end_orphan(node: Node, spec: JobSpec, tail: tuple[int, JobEntry], error: ARCPError) -> None:
    """End a run on behalf of its dead node."""
    last, before = tail
    payload, status = error_payload(error.fault, before.run, node.limits.event_bytes)
    entry = JobEntry("error", before.run, before.epoch + 1, node.id, time.time(), msgspec.Raw(payload))
    await node.ledger.end(spec, [entry], last, status, before.node)
    schedule_eviction(node, EndedJob(spec.job_id, spec.principal, spec.key, entry.at))
    children = [row.job_id async for _, row in node.ledger.active() if row.parent == spec.job_id]
    await cancel_children(node, children)
    if node.credentials is not None:
        node.spawn(node.credentials.revoke(spec.job_id))


# -- requests of other nodes


async def follow_control(node: Node, every: float) -> None:
    """Read cancellations that other nodes request: when the log signals a change, and every `every` seconds."""
    log = node.store.log(CONTROL)
    async with log.watch() as signal:
        await _follow(node, log, signal, every)


async def _follow(node: Node, log: Log, signal: Signal, every: float) -> None:
    position = 0
    while True:
        seen = signal.count
        try:
            if not position:
                position = (await log.bounds()).last + 1
            for stored in await log.read(position):
                position = stored.seq + 1
                request = _read_control(stored.value)
                job = node.jobs.get(request.cancel)
                if job is not None:
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


# -- retention


async def evict(node: Node) -> None:
    """Delete ended jobs that are older than the limits allow, or too many."""
    for retention in node.retained:
        await retention.expire()


async def take_over_retention(node: Node) -> None:
    """Schedule the deletion of ended jobs that other nodes left, and delete logs of sessions that no longer exist."""
    rows = [row async for row in node.ledger.ended()]
    for row in sorted(rows, key=lambda row: row.ended):
        schedule_eviction(node, EndedJob(row.job_id, row.principal, row.key, row.ended))
    prefix = session_log("")
    for name in (await node.store.names())["logs"]:
        if (
            name.startswith(prefix)
            and await node.store.table(SESSIONS).get(name.removeprefix(prefix)) is None
        ):
            await node.store.log(name).drop()
