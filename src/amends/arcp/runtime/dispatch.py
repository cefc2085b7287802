"""
Taking jobs from the queues: of agents that are registered here, while there is room for another one.

A queue only hands jobs over. From the entry that says who works on it, a job is its node's, and the node's own row
vouches for it: nothing has to be renewed per job.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from amends.arcp.runtime.admission import begin, spent
from amends.arcp.runtime.agents import Agent
from amends.arcp.runtime.cancel import cancellation, end_waiting
from amends.arcp.runtime.entries import queue_of
from amends.arcp.runtime.job import Job
from amends.arcp.runtime.runner import run
from amends.stores import ConflictError, Lease, LeaseLostError, StoreError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node

__all__ = ["dispatch", "rest"]

_log = logging.getLogger("amends.arcp")
_WAIT = 5.0
_NEW_AGENTS = 5.0
"""Seconds between looks at what is registered: for what another thread has registered. Anything else is heard of at once."""
_LONGEST_REST = 10.0
_TAKERS = 16
"""How many jobs of one agent are being begun at once."""

T = TypeVar("T")


async def dispatch(node: Node, every: float | None) -> None:
    """Take what there is, whenever there is room; look `every` so many seconds, or only when called."""
    if node.called:
        await _wait_at_all(node)
    while not node.draining:
        with suppress(TimeoutError):
            async with asyncio.timeout(every):
                await node.wanted.wait()
        node.wanted.clear()
        try:
            while await _round(node):
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


# -- where a queue makes whoever asks wait until there is something


async def _wait_at_all(node: Node) -> None:
    """Wait at the queue of every agent, also of those that are registered later."""
    waiting: dict[str, _Takers] = {}
    while not node.draining:
        seen = node.agents.changed.count
        for agent in node.agents.all():
            if agent.ref not in waiting:
                waiting[agent.ref] = _Takers(node, agent)
        await node.agents.changed.wait(seen, _NEW_AGENTS)
    while tasks := [task for takers in waiting.values() for task in takers.tasks]:
        await asyncio.wait(tasks)


class _Takers:
    """
    Those who wait at one queue: one while nothing comes, and another one for everybody who was given something.

    To begin a job takes a row of exchanges with the store, each of which waits for the one before. Those of several jobs
    travel together.
    """

    def __init__(self, node: Node, agent: Agent) -> None:
        self._node = node
        self._agent = agent
        self._queue = node.store.queue(queue_of(agent.ref), lease=node.limits.node_lease)
        self._waiting = 0
        self.tasks: set[asyncio.Task[None]] = set()
        self._another()

    def _another(self) -> None:
        if len(self.tasks) < _TAKERS and not self._node.draining:
            task = self._node.duty(self._wait)
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def _wait(self) -> None:
        node, agent = self._node, self._agent
        while not node.draining:
            self._waiting += 1
            lease = None
            try:
                if node.running >= node.limits.running:
                    node.backlog.add(agent.ref)
                    node.wanted.clear()
                    await _unless_draining(node, node.wanted.wait())
                    continue
                # Where some are known to wait, the first answer of "none" lets others begin here at once again.
                wait = 0.0 if agent.ref in node.backlog else _WAIT
                lease = await _unless_draining(node, self._queue.take(wait=wait))
            except StoreError:
                _log.warning("nothing can be taken from the queue of %s: the store fails", agent.ref)
                await asyncio.sleep(1.0)
                continue
            finally:
                self._waiting -= 1
            if lease is None:
                node.backlog.discard(agent.ref)
                if self._waiting:
                    return
            else:
                await self._given(lease)

    async def _given(self, lease: Lease) -> None:
        node = self._node
        try:
            if node.running >= node.limits.running:
                await lease.give_back()
            else:
                if not self._waiting:
                    self._another()
                with suppress(LeaseLostError):
                    await _take(node, self._agent, lease)
        except StoreError:
            _log.warning("a job of %s cannot be taken: the store fails", self._agent.ref)
            await asyncio.sleep(1.0)


async def _unless_draining(node: Node, waiting: Awaitable[T]) -> T:
    """Wait where a node that stops may interrupt: a job is taken and begun, or not taken."""
    task = asyncio.current_task()
    assert task is not None
    node.interruptible.add(task)
    try:
        return await waiting
    finally:
        node.interruptible.discard(task)


async def rest(node: Node, dispatching: asyncio.Task[None]) -> None:
    """Take nothing more; what is just being taken is begun."""
    node.draining = True
    node.wanted.set()
    node.agents.changed.notify()
    for task in list(node.interruptible):
        task.cancel()
    await asyncio.wait([dispatching], timeout=_LONGEST_REST)
    with suppress(StoreError):
        # Its agents stay offered: what comes in the meantime waits for whoever takes its place.
        await node.announce()


async def _take(node: Node, agent: Agent, lease: Lease) -> None:
    """Begin what a queue has handed over, if it is still to be begun."""
    # Before anybody waits: whoever looks for room in the meantime must not find this place free.
    node.reserve()
    job: Job | None = None
    try:
        job = await _begun(node, agent, lease)
    finally:
        if job is None:
            node.release()
    if job is None:
        return
    try:
        if job.run > 1 or job.epoch > 1:
            job.budget = await spent(node, job.order)
        if node.credentials is not None:
            await node.credentials.found(job)
    except BaseException:
        # Written down, and not run: the keeper sees to it.
        node.quota.ended(job.order.principal)
        job.lost()
        raise
    node.spawn(run(job))
    with suppress(StoreError):
        await lease.done()


async def _begun(node: Node, agent: Agent, lease: Lease) -> Job | None:
    """Write down that this node has a job; None where it is not to be had."""
    job_id = lease.value.decode()
    order, tail = await node.ledger.standing(job_id)
    if order is None or tail is None or tail[1].ended or tail[1].node:
        # It has ended, or somebody has it: the keeper sees to it if that one is dead.
        await lease.done()
        return None
    # One that was never begun is cancelled in its log.
    if tail[1].again and await node.ledger.cancelled(job_id):
        ended = await end_waiting(node, order, tail, cancellation(None))
        await (lease.done() if ended else lease.give_back())
        return None
    # However long the store takes: until the job runs here, the keeper is not to think it was given up.
    node.placing.add(job_id)
    try:
        mark = await node.ledger.start(order, tail)
    except ConflictError:
        await lease.give_back()
        return None
    finally:
        node.placing.discard(job_id)
    job = begin(node, order, agent, mark, tail[0] + 1)
    node.quota.taken(order.principal)
    node.quota.began(order.principal)
    if tail[1].again:
        job.emit("status", {"phase": "restarted", "message": "The node that ran it before is gone"})
    return job
