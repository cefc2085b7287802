"""
Take jobs from the queues of the agents that are registered on this node, while it has capacity.

The queue is used only to hand a job to a node. Once the job's log has an entry with the node's id, the job belongs to
that node for as long as the node renews its own row, so no lease has to be renewed per job.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from amends.arcp.runtime.agents import Agent
from amends.arcp.runtime.entries import queue_of
from amends.arcp.runtime.jobs.cancel import cancellation, end_queued
from amends.arcp.runtime.jobs.job import Job
from amends.arcp.runtime.jobs.run import run
from amends.arcp.runtime.jobs.submit import create_job, remaining_budget
from amends.stores import ConflictError, Lease, LeaseLostError, StoreError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node

__all__ = ["dispatch", "stop_dispatch"]

_log = logging.getLogger("amends.arcp")
_WAIT = 5.0
_AGENTS_POLL = 5.0
"""Seconds between checks for agents registered by another thread; other registrations wake the dispatcher at once."""
_STOP_TIMEOUT = 10.0
_TAKERS = 16
"""How many jobs of one agent may be in the process of being started."""

T = TypeVar("T")


async def dispatch(node: Node, every: float | None) -> None:
    """
    Take jobs while there is capacity.

    The queues are read `every` so many seconds, or only after `Node.queue_wakeup` is set if `every` is None. On stores
    that notify, tasks wait at the queues instead.
    """
    if node.notified:
        await _wait_at_all_queues(node)
    while not node.draining:
        with suppress(TimeoutError):
            async with asyncio.timeout(every):
                await node.queue_wakeup.wait()
        node.queue_wakeup.clear()
        try:
            while await _take_one_of_each(node):
                pass
        except StoreError:
            _log.warning("no jobs can be taken from the queues: the store failed")
            await asyncio.sleep(1.0)


async def _take_one_of_each(node: Node) -> bool:
    """Take one job of every agent. Returns whether there was any."""
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


# -- stores whose queues let a consumer wait for the next message


async def _wait_at_all_queues(node: Node) -> None:
    """Wait at the queue of every agent, including agents that are registered later."""
    waiting: dict[str, _Takers] = {}
    while not node.draining:
        seen = node.agents.changed.count
        for agent in node.agents.all():
            if agent.ref not in waiting:
                waiting[agent.ref] = _Takers(node, agent)
        await node.agents.changed.wait(seen, _AGENTS_POLL)
    while tasks := [task for takers in waiting.values() for task in takers.tasks]:
        await asyncio.wait(tasks)


class _Takers:
    """
    The tasks that wait at one queue: one while the queue is empty, and one more for every task that has a message.

    Starting a job takes several exchanges with the store, one after another. Several takers do that for several jobs at
    the same time.
    """

    def __init__(self, node: Node, agent: Agent) -> None:
        self._node = node
        self._agent = agent
        self._queue = node.store.queue(queue_of(agent.ref), lease=node.limits.node_lease)
        self._waiting = 0
        self.tasks: set[asyncio.Task[None]] = set()
        self._add_taker()

    def _add_taker(self) -> None:
        if len(self.tasks) < _TAKERS and not self._node.draining:
            task = self._node.supervise(self._wait)
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
                    node.queue_wakeup.clear()
                    await _interruptible(node, node.queue_wakeup.wait())
                    continue
                # If the queue may have a backlog, do not wait: an empty answer shows that new jobs can start directly.
                wait = 0.0 if agent.ref in node.backlog else _WAIT
                lease = await _interruptible(node, self._queue.take(wait=wait))
            except StoreError:
                _log.warning("no jobs of %s can be taken from its queue: the store failed", agent.ref)
                await asyncio.sleep(1.0)
                continue
            finally:
                self._waiting -= 1
            if lease is None:
                node.backlog.discard(agent.ref)
                if self._waiting:
                    return
            else:
                await self._handle_lease(lease)

    async def _handle_lease(self, lease: Lease) -> None:
        node = self._node
        try:
            if node.running >= node.limits.running:
                await lease.give_back()
            else:
                if not self._waiting:
                    self._add_taker()
                with suppress(LeaseLostError):
                    await _take(node, self._agent, lease)
        except StoreError:
            _log.warning("a job of %s could not be taken from its queue: the store failed", self._agent.ref)
            await asyncio.sleep(1.0)


async def _interruptible(node: Node, waiting: Awaitable[T]) -> T:
    """Await in a way that `stop_dispatch` may cancel: the task holds no message at this point."""
    task = asyncio.current_task()
    assert task is not None
    node.interruptible.add(task)
    try:
        return await waiting
    finally:
        node.interruptible.discard(task)


async def stop_dispatch(node: Node, dispatching: asyncio.Task[None]) -> None:
    """Stop taking jobs; a job that has been taken from its queue is still started."""
    node.draining = True
    node.queue_wakeup.set()
    node.agents.changed.notify()
    for task in list(node.interruptible):
        task.cancel()
    await asyncio.wait([dispatching], timeout=_STOP_TIMEOUT)
    with suppress(StoreError):
        # The row keeps the node's agents: jobs submitted now wait for another node that has them.
        await node.announce()


async def _take(node: Node, agent: Agent, lease: Lease) -> None:
    """Start the job of a queue message, unless it has ended or another node has it."""
    # Reserve before the first await, so that no other task uses the same place.
    node.reserve()
    job: Job | None = None
    try:
        job = await _start(node, agent, lease)
    finally:
        if job is None:
            node.release()
    if job is None:
        return
    try:
        if job.run > 1 or job.epoch > 1:
            job.budget = await remaining_budget(node, job.spec)
        if node.credentials is not None:
            await node.credentials.assign_stored(job)
    except BaseException:
        # The run is in the store but does not start here; `recover_orphans` handles it.
        job.drop()
        raise
    node.spawn(run(job))
    with suppress(StoreError):
        await lease.done()


async def _start(node: Node, agent: Agent, lease: Lease) -> Job | None:
    """Write to the job's log that this node runs it. Returns None if the job cannot be started."""
    job_id = lease.value.decode()
    spec, tail = await node.ledger.spec_and_tail(job_id)
    if spec is None or tail is None or tail[1].ended or tail[1].node:
        # The job has ended or another node has it. If that node is dead, `recover_orphans` handles the job.
        await lease.done()
        return None
    # Only requeued jobs are checked: cancelling a job that never started ends it in its log.
    if tail[1].requeued and await node.ledger.is_cancelled(job_id):
        ended = await end_queued(node, spec, tail, cancellation(None))
        await (lease.done() if ended else lease.give_back())
        return None
    # While the store is slow, `recover_orphans` must not consider this job abandoned.
    node.being_written.add(job_id)
    try:
        entry = await node.ledger.start(spec, tail)
    except ConflictError:
        await lease.give_back()
        return None
    finally:
        node.being_written.discard(job_id)
    job = create_job(node, spec, agent, entry, tail[0] + 1)
    node.quota.job_dequeued(spec.principal)
    node.quota.job_started(spec.principal)
    if tail[1].requeued:
        job.emit("status", {"phase": "restarted", "message": "The node that ran the job before is gone"})
    return job
