"""
What has to be seen to now and then: being alive, jobs of dead nodes, words from other nodes, and forgetting.

A job that was running when its node died is run again only if its agent was registered as `repeatable`. Any other may
have had its effect: its run ends with INTERNAL_ERROR and `in_doubt`, its key answers so, and nobody runs it blindly.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from amends.arcp.runtime.cancel import cancel_children, cancellation
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
from amends.arcp.runtime.node import Ended
from amends.arcp.runtime.runner import error_payload, keep, status_of
from amends.errors.arcp import ARCPError, InternalError
from amends.stores import ConflictError, Log, StoreError, TrimmedError
from amends.stores.signal import Signal

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node

__all__ = ["evict", "heartbeat", "in_doubt", "inherit", "listen", "maintain", "waiting"]

_log = logging.getLogger("amends.arcp")
_read_control = msgspec.json.Decoder(Control).decode
_AT_ONCE = 64
_EVERYTHING = 9
"""Rounds between two looks at the jobs of all nodes: who is seen to go is looked at in that round."""
_WORDS_KEPT = 1_000
_BREATH = 0.02


def in_doubt(why: str) -> InternalError:
    """The end of a run that may have had its effect."""
    return InternalError(why, details={"in_doubt": True, "executed": "maybe"})


async def heartbeat(node: Node) -> None:
    """Say that this node is alive, three times per lease, whatever else there is to do."""
    lease = node.limits.node_lease
    said = node.loop.time()
    wary = said
    while True:
        begun = node.loop.time()
        try:
            await node.announce()
            # From the beginning of the one before to the end of this one: its row may have been gone in between.
            if node.loop.time() - said > lease:
                wary = node.loop.time() + lease
            said = begun
            if begun < wary:
                # Also a while later: who found the row gone may be taking over only now.
                await _still_mine(node)
        except StoreError:
            _log.warning("the store does not answer")
        await asyncio.sleep(max(0.0, lease / 3 - (node.loop.time() - begun)))


async def maintain(node: Node) -> None:
    """See to everything else, three times per lease where that does not take longer."""
    for number in itertools.count():
        try:
            await node.sessions.expire()
            await evict(node)
            if node.alone:
                with node.quota.looking() as meanwhile:
                    rows = [row async for _, row in node.ledger.active("")]
                node.quota.heard(rows, (), meanwhile)
            else:
                await node.meet()
                gone = set(node.departed)
                await recover_orphans(node, None if number % _EVERYTHING == 0 else {node.id, "", *gone})
                if any(_looks(node, one) for one in gone):
                    # Nobody else would forget what it has ended.
                    await inherit(node)
                node.departed -= gone
            if node.credentials is not None:
                await node.credentials.settle()
        except StoreError:
            _log.warning("the store does not answer")
        await asyncio.sleep(node.limits.node_lease / 3)


# -- jobs of nodes that are gone


async def _still_mine(node: Node) -> None:
    """This node was away for longer than its lease: whatever was taken over in the meantime is let go."""
    for job in list(node.jobs.values()):
        tail = await node.ledger.tail(job.order.job_id)
        if tail is None or (tail[1].epoch, tail[1].node) != (job.epoch, node.id):
            job.lost()


async def recover_orphans(node: Node, owners: set[str] | None = None) -> None:
    """
    See to jobs nobody works on: of these owners ("" for those that wait), or of all.

    Looking at all of them costs every node what all nodes together have to do: that is for now and then.
    """
    asked = [None] if owners is None else sorted(owners)
    busy = node.busy
    with node.quota.looking() as meanwhile:
        rows = [found for owner in asked async for found in node.ledger.active(owner)]
        # In this order: a node says that it lives before it takes anything, so whoever has a job and is not heard of
        # now is dead, and not just born.
        await node.meet()
    alive = {node.id, *node.peers}
    node.waiting = waiting(row for owner, row in rows if not owner)
    node.quota.heard((row for owner, row in rows if not owner), busy, meanwhile)
    for owner, row in rows:
        if owner == node.id:
            await _given_up(node, row)
        elif owner and owner not in alive:
            with suppress(ConflictError):
                await _take_over(node, owner, row)
        elif not owner and time.time() - row.created > node.limits.node_lease and _looks(node, row.job_id):
            # Where there are no transactions, a crash may have come between the row and the queue.
            await _take_over(node, owner, row)


def waiting(rows: Iterable[Summary]) -> dict[str, tuple[int, float]]:
    """How many jobs of each agent, and since when the oldest."""
    found: dict[str, tuple[int, float]] = {}
    for row in rows:
        count, oldest = found.get(row.agent, (0, row.created))
        found[row.agent] = (count + 1, min(oldest, row.created))
    return found


def _looks(node: Node, job_id: str) -> bool:
    """Whether this node is the one to look at a job that waits: each of those that live has its share."""
    return node.id == max((node.id, *node.peers), key=lambda one: zlib.crc32(f"{one}/{job_id}".encode()))


async def _given_up(node: Node, row: Summary) -> None:
    """A job this node has, and does not run: the store failed when it was begun, or for longer than a lease."""
    if row.job_id in node.jobs or row.job_id in node.placing:
        return
    tail = await node.ledger.tail(row.job_id)
    # A younger one may be about to begin.
    if tail is None or time.time() - tail[1].at > node.limits.node_lease:
        with suppress(ConflictError):
            await _take_over(node, node.id, row)


async def _take_over(node: Node, owner: str, row: Summary) -> None:
    order, tail = await node.ledger.standing(row.job_id)
    stale = f"{owner or '-'}/{row.job_id}"
    if order is None or tail is None:
        await node.store.table(ACTIVE).delete(stale)
        return
    mark = tail[1]
    if mark.ended:
        await node.ledger.mend(order, tail, status_of(mark.kind, mark.payload), owner)
        keep(node, Ended(order.job_id, order.principal, order.key, mark.at))
    elif mark.node != owner:
        # Whoever changed its owner did not come to say so; under that one's name it is looked at again.
        await node.ledger.note_owner(order, mark)
        if not mark.node:
            await node.ledger.put_in_queue(order)
        await node.store.table(ACTIVE).delete(stale)
    elif not owner:
        if not node.store.supports_transactions:
            await node.ledger.put_in_queue(order)
    elif await node.ledger.cancelled(order.job_id):
        await end_for(node, order, tail, cancellation(None))
    elif order.repeatable:
        _log.warning("job %s of a dead node is put back into its queue", order.job_id)
        await node.ledger.requeue(order, tail)
        node.taken_over += 1
        node.backlog.add(order.agent)
        node.wanted.set()
    else:
        _log.warning("job %s of a dead node is in doubt (trace %s)", order.job_id, order.trace)
        await end_for(
            node, order, tail, in_doubt("The node that ran the job is gone; it may have had its effect")
        )
        node.taken_over += 1
        node.counts["INTERNAL_ERROR"] += 1


async def end_for(node: Node, order: JobSpec, tail: tuple[int, JobEntry], error: ARCPError) -> None:
    """End a run whose node cannot."""
    last, before = tail
    payload, status = error_payload(error.fault, before.run, node.limits.event_bytes)
    mark = JobEntry("error", before.run, before.epoch + 1, node.id, time.time(), msgspec.Raw(payload))
    await node.ledger.end(order, [mark], last, status, before.node)
    keep(node, Ended(order.job_id, order.principal, order.key, mark.at))
    children = [row.job_id async for _, row in node.ledger.active() if row.parent == order.job_id]
    await cancel_children(node, children)
    if node.credentials is not None:
        node.spawn(node.credentials.revoke(order.job_id))


# -- words from other nodes


async def listen(node: Node, every: float) -> None:
    """Hear what other nodes ask of this one's jobs: when the log's bell rings, and `every` so many seconds."""
    log = node.store.log(CONTROL)
    async with log.watch() as bell:
        await _hear(node, log, bell, every)


async def _hear(node: Node, log: Log, bell: Signal, every: float) -> None:
    place = 0
    while True:
        seen = bell.count
        try:
            if not place:
                place = (await log.bounds()).last + 1
            for entry in await log.read(place):
                place = entry.seq + 1
                word = _read_control(entry.value)
                job = node.jobs.get(word.cancel)
                if job is not None:
                    job.stop(cancellation(word.reason))
                if entry.seq % _WORDS_KEPT == 0:
                    await log.trim(entry.seq - _WORDS_KEPT)
        except TrimmedError as trimmed:
            place = trimmed.first
        except StoreError:
            _log.warning("other nodes cannot be heard: the store fails")
            await asyncio.sleep(1.0)
        await bell.wait(seen, every)
        # A file's bell rings for every commit of every job: a look now and then is soon enough for a cancellation.
        await asyncio.sleep(_BREATH)


# -- forgetting


async def evict(node: Node) -> None:
    """Forget ended jobs that are too old or too many."""
    limits = node.limits
    if node.evicting:
        return
    node.evicting = True
    try:
        for ended, most, age in (
            (node.ended, limits.finished, limits.finished_for),
            (node.keyed, limits.keyed, limits.key_window),
        ):
            while ended and (len(ended) > most or ended[0].at + age < time.time()):
                batch = [
                    ended.popleft()
                    for _ in range(min(_AT_ONCE, max(1, len(ended) - most)))
                    if len(ended) > most or ended[0].at + age < time.time()
                ]
                if node.prompt:
                    for one in batch:
                        await _forget(node, one)
                else:
                    # Together, they share their commits.
                    await asyncio.gather(*(_forget(node, one) for one in batch))
    finally:
        node.evicting = False


async def _forget(node: Node, ended: Ended) -> None:
    if ended.key is not None:
        # It may run again under its key, or have done so: then it is not this end that counts.
        tail = await node.ledger.tail(ended.job_id)
        if tail is not None and not (tail[1].ended and tail[1].at <= ended.at):
            return
    await node.ledger.forget(ended.job_id, ended.principal, ended.key)


async def inherit(node: Node) -> None:
    """Take on what earlier nodes have left to be forgotten: ended jobs, and logs of sessions that are gone."""
    rows = [row async for row in node.ledger.ended()]
    for row in sorted(rows, key=lambda row: row.ended):
        keep(node, Ended(row.job_id, row.principal, row.key, row.ended))
    prefix = session_log("")
    for name in (await node.store.names())["logs"]:
        if (
            name.startswith(prefix)
            and await node.store.table(SESSIONS).get(name.removeprefix(prefix)) is None
        ):
            await node.store.log(name).drop()
