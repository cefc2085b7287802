"""
Taking jobs from the queues: of agents that are registered here, while there is room for another one.

A queue only hands jobs over. From the entry that says who works on it, a job is its node's, and the node's own row
vouches for it: nothing has to be renewed per job.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from amends.arcp.runtime.admission import begin, spent
from amends.arcp.runtime.agents import Agent
from amends.arcp.runtime.cancel import cancellation, end_waiting
from amends.arcp.runtime.entries import queue_of
from amends.arcp.runtime.runner import run
from amends.stores import ConflictError, Lease, LeaseLostError, StoreError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node

__all__ = ["dispatch"]

_log = logging.getLogger("amends.arcp")


async def dispatch(node: Node, every: float | None) -> None:
    """Take what there is, whenever there is room; look `every` so many seconds, or only when called."""
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(every):
                await node.wanted.wait()
        node.wanted.clear()
        try:
            while not node.draining and await _round(node):
                pass
        except StoreError:
            _log.warning("nothing can be taken from the queues: the store fails")
            await asyncio.sleep(1.0)


async def _round(node: Node) -> bool:
    """One job of every agent; whether there was any."""
    found = False
    for agent in node.agents.all():
        if node.running >= node.limits.running or node.draining:
            return False
        lease = await node.store.queue(queue_of(agent.ref), lease=node.limits.node_lease).take()
        if lease is None:
            node.backlog.discard(agent.ref)
        else:
            found = True
            with suppress(LeaseLostError):
                await _take(node, agent, lease)
    return found


async def _take(node: Node, agent: Agent, lease: Lease) -> None:
    job_id = lease.value.decode()
    order, tail = await node.ledger.order(job_id), await node.ledger.tail(job_id)
    if order is None or tail is None or tail[1].ended or tail[1].node:
        # It has ended, or somebody has it: the keeper sees to it if that one is dead.
        await lease.done()
        return
    if await node.ledger.cancelled(job_id):
        if await end_waiting(node, order, tail, cancellation(None)):
            await lease.done()
        return
    node.reserve()
    try:
        mark = await node.ledger.start(order, tail)
    except ConflictError:
        node.release()
        await lease.give_back()
        return
    except BaseException:
        node.release()
        raise
    job = begin(node, order, agent, mark, tail[0] + 1)
    node.accepted(order.principal)
    if mark.run > 1 or mark.epoch > 1:
        job.budget = await spent(node, order)
    if tail[1].again:
        job.emit("status", {"phase": "restarted", "message": "The node that ran it before is gone"})
    if node.credentials is not None:
        job.credentials = await node.credentials.of(job_id)
    node.spawn(run(job))
    with suppress(StoreError):
        await lease.done()
