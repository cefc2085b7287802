"""
Take jobs from the queues of the agents that are registered on this node, while it has capacity.

The queue is used only to hand a job to a node. Once the job's log has an entry with the node's id, the job belongs to
that node for as long as the node renews its own row, so no lease has to be renewed per job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from amends.arcp.runtime.agents import Agent, Agents
from amends.arcp.runtime.cluster.quota import Capacity, Quota
from amends.arcp.runtime.credentials.lifecycle import CredentialLifecycle
from amends.arcp.runtime.entries import queue_of
from amends.arcp.runtime.jobs.cancel import Cancellation, cancellation
from amends.arcp.runtime.jobs.job import Job
from amends.arcp.runtime.jobs.run import Runner
from amends.arcp.runtime.jobs.running import RunningJobs, restore
from amends.logs import logger
from amends.stores import ConflictError, Lease, LeaseLostError, Queue, StoreError

__all__ = ["Dispatcher"]

_log = logger("amends.arcp")
_WAIT = 5.0
_AGENTS_POLL = 5.0
"""Seconds between checks for agents registered by another thread; other registrations wake the dispatcher at once."""
_STOP_TIMEOUT = 10.0
_TAKERS = 16
"""How many jobs of one agent may be in the process of being started."""

T = TypeVar("T")


@dataclass(eq=False)
class Dispatcher:
    """Starts queued jobs on one node."""

    _agents: Agents
    _jobs: RunningJobs
    capacity: Capacity
    _quota: Quota
    _runner: Runner
    _cancel: Cancellation
    _credentials: CredentialLifecycle
    _every: float | None
    """
    Seconds between two reads of the queues; None if only `Capacity.queue_wakeup` causes a read. On stores that notify,
    tasks wait at the queues instead.
    """
    _interruptible: set[asyncio.Task[None]] = field(default_factory=set)
    """Tasks that wait for a queue and hold no message; they may be cancelled when the node stops."""

    async def dispatch(self) -> None:
        """Take jobs while there is capacity, until the node stops."""
        capacity = self.capacity
        if self._jobs.ledger.store.traits.notifies:
            await self._wait_at_all_queues()
        while not capacity.draining:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await capacity.queue_wakeup.wait()
            capacity.queue_wakeup.clear()
            try:
                while await self.take_one_of_each():
                    pass
            except StoreError:
                _log.warning("no jobs can be taken from the queues: the store failed")
                await asyncio.sleep(1.0)

    async def take_one_of_each(self) -> bool:
        """Take one job of every agent of the highest priority that has any. Returns whether there was any."""
        found = False
        for group in self._agents.by_priority():
            for agent in group:
                if self.capacity.full or self.capacity.draining:
                    return False
                if not self.capacity.admits(agent.ref):
                    continue
                lease = await self.queue(agent).take()
                if lease is None:
                    self.capacity.queue_is_empty(agent.ref)
                    continue
                with suppress(LeaseLostError):
                    if not self.capacity.admits(agent.ref):
                        # A job of a client took the agent's last place meanwhile.
                        self.capacity.add_to_backlog(agent.ref)
                        await lease.give_back()
                        continue
                    found = True
                    await self.take(agent, lease)
            if found:
                return True
        return False

    def queue(self, agent: Agent) -> Queue:
        """Return the queue of an agent."""
        return self._jobs.ledger.store.queue(queue_of(agent.ref), lease=self._jobs.limits.node_lease)

    async def _wait_at_all_queues(self) -> None:
        """Wait at the queue of every agent, including agents that are registered later."""
        waiting: dict[str, _Takers] = {}
        while not self.capacity.draining:
            seen = self._agents.changed.count
            for agent in self._agents.all():
                if agent.ref not in waiting:
                    waiting[agent.ref] = _Takers(self, agent)
            await self._agents.changed.wait(seen, _AGENTS_POLL)
        while tasks := [task for takers in waiting.values() for task in takers.tasks]:
            await asyncio.wait(tasks)

    def supervise(self, takers: _Takers) -> asyncio.Task[None]:
        """Start a task that waits at a queue."""
        return self._jobs.tasks.supervise(takers.wait)

    async def interruptible(self, waiting: Awaitable[T]) -> T:
        """Await in a way that `stop` may cancel: the task holds no message at this point."""
        task = asyncio.current_task()
        assert task is not None
        self._interruptible.add(task)
        try:
            return await waiting
        finally:
            self._interruptible.discard(task)

    async def stop(self, dispatching: asyncio.Task[None]) -> None:
        """Stop taking jobs; a job that has been taken from its queue is still started."""
        self.capacity.draining = True
        self.capacity.queue_wakeup.set()
        self._agents.changed.notify()
        for task in list(self._interruptible):
            task.cancel()
        await asyncio.wait([dispatching], timeout=_STOP_TIMEOUT)

    # -- starting a job

    async def take(self, agent: Agent, lease: Lease) -> None:
        """Start the job of a queue message, unless it has ended or another node has it."""
        # Reserve before the first await, so that no other task uses the same place.
        self.capacity.reserve(agent.ref)
        job: Job | None = None
        try:
            job = await self._start(agent, lease)
        finally:
            if job is None:
                self.capacity.release(agent.ref)
        if job is None:
            return
        try:
            if job.run > 1 or job.epoch > 1:
                await restore(self._jobs.ledger, job)
            await self._credentials.assign_stored(job)
        except BaseException:
            # The run is in the store but does not start here; the takeover of orphans handles it.
            job.drop()
            raise
        self._jobs.tasks.spawn(self._runner.run(job))
        with suppress(StoreError):
            await lease.done()

    async def _start(self, agent: Agent, lease: Lease) -> Job | None:
        """Write to the job's log that this node runs it. Returns None if the job cannot be started."""
        ledger = self._jobs.ledger
        job_id = lease.value.decode()
        spec, tail = await ledger.spec_and_tail(job_id)
        if spec is None or tail is None or tail[1].ended or tail[1].node:
            # The job has ended or another node has it. If that node is dead, the takeover of orphans handles the job.
            await lease.done()
            return None
        # Only requeued jobs are checked: cancelling a job that never started ends it in its log.
        if tail[1].requeued and await ledger.is_cancelled(job_id):
            ended = await self._cancel.end_queued(spec, tail, cancellation(None))
            await (lease.done() if ended else lease.give_back())
            return None
        try:
            # While the store is slow, this job must not be considered abandoned. Its place is reserved already.
            entry = await self.capacity.write(job_id, agent.ref, ledger.start(spec, tail), here=False)
        except ConflictError:
            await lease.give_back()
            return None
        job = self._jobs.create(spec, agent, entry, tail[0] + 1)
        self._quota.job_dequeued(spec.principal)
        self._quota.job_started(spec.principal)
        if tail[1].requeued:
            job.emit("status", {"phase": "restarted", "message": "The node that ran the job before is gone"})
        return job


class _Takers:
    """
    The tasks that wait at one queue: one while the queue is empty, and one more for every task that has a message.

    Starting a job takes several exchanges with the store, one after another. Several takers do that for several jobs at
    the same time.
    """

    def __init__(self, dispatcher: Dispatcher, agent: Agent) -> None:
        self._dispatcher = dispatcher
        self._capacity = dispatcher.capacity
        self._agent = agent
        self._queue = dispatcher.queue(agent)
        self._waiting = 0
        self.tasks: set[asyncio.Task[None]] = set()
        self._add_taker()

    def _add_taker(self) -> None:
        if len(self.tasks) < _TAKERS and not self._capacity.draining:
            task = self._dispatcher.supervise(self)
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def wait(self) -> None:
        """Wait for messages and start their jobs, until the node stops or another taker waits."""
        dispatcher, capacity, agent = self._dispatcher, self._capacity, self._agent
        while not capacity.draining:
            self._waiting += 1
            lease = None
            try:
                if not capacity.admits(agent.ref):
                    capacity.backlog.add(agent.ref)
                    capacity.queue_wakeup.clear()
                    await dispatcher.interruptible(capacity.queue_wakeup.wait())
                    continue
                # If the queue may have a backlog, do not wait: an empty answer shows that new jobs can start directly.
                wait = 0.0 if agent.ref in capacity.backlog else _WAIT
                lease = await dispatcher.interruptible(self._queue.take(wait=wait))
            except StoreError:
                _log.warning("no jobs of %s can be taken from its queue: the store failed", agent.ref)
                await asyncio.sleep(1.0)
                continue
            finally:
                self._waiting -= 1
            if lease is None:
                capacity.queue_is_empty(agent.ref)
                if self._waiting:
                    return
            else:
                await self._handle_lease(lease)

    async def _handle_lease(self, lease: Lease) -> None:
        try:
            if not self._capacity.admits(self._agent.ref):
                self._capacity.backlog.add(self._agent.ref)
                await lease.give_back()
            else:
                if not self._waiting:
                    self._add_taker()
                with suppress(LeaseLostError):
                    await self._dispatcher.take(self._agent, lease)
        except StoreError:
            _log.warning("a job of %s could not be taken from its queue: the store failed", self._agent.ref)
            await asyncio.sleep(1.0)
