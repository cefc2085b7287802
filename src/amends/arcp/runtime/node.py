"""The parts of a running node, and how they are connected. What other nodes need to see is in the store, not here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from amends.arcp.leases import Lease
from amends.arcp.runtime.agents import Agents
from amends.arcp.runtime.cluster.dispatch import Dispatcher
from amends.arcp.runtime.cluster.maintenance import Maintenance
from amends.arcp.runtime.cluster.membership import Membership
from amends.arcp.runtime.cluster.quota import Capacity, Quota
from amends.arcp.runtime.cluster.retention import EndedJobs
from amends.arcp.runtime.cluster.takeover import Takeover
from amends.arcp.runtime.credentials.lifecycle import CredentialLifecycle
from amends.arcp.runtime.credentials.provider import CredentialProvider
from amends.arcp.runtime.entries import NODES, NodeRow
from amends.arcp.runtime.jobs.answers import Answers
from amends.arcp.runtime.jobs.cancel import Cancellation, follow_control
from amends.arcp.runtime.jobs.delegate import Delegation, Families
from amends.arcp.runtime.jobs.run import Runner
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.arcp.runtime.jobs.signals import Signals
from amends.arcp.runtime.jobs.submit import Submissions
from amends.arcp.runtime.ledger import Ledger
from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.server.connection import Server
from amends.arcp.runtime.server.handshake import Handshake
from amends.arcp.runtime.server.heartbeat import ping_sessions, renew_sessions
from amends.arcp.runtime.server.job_listing import JobListing, MayObserve
from amends.arcp.runtime.server.sessions import Sessions
from amends.arcp.runtime.tasks import Tasks
from amends.arcp.wire import FEATURES, STEPS, new_id
from amends.durable.workers import Workers
from amends.stores import Store, StoreError, Traits

__all__ = ["Node"]


class Node:
    """Creates the parts of a node from the bottom up. No part refers to the node itself."""

    def __init__(
        self,
        store: Store,
        *,
        name: str,
        agents: Agents,
        limits: Limits,
        exclusive: bool,
        authenticate: Callable[[str], Awaitable[str | None]],
        may_observe: MayObserve | None,
        provider: CredentialProvider | None,
        default_lease: Lease,
        anonymous: bool,
    ) -> None:
        self.store = store
        self.name = name
        self.id = new_id("node")
        self.exclusive = exclusive
        """Whether no other node uses this store, so that it need not be polled."""
        self._limits = limits
        self._agents = agents
        self.started = time.time()
        every = _pause(store.traits, exclusive=exclusive)
        self._every = every

        self.tasks = tasks = Tasks(immediate=store.traits.immediate)
        self.ledger = ledger = Ledger(store, self.id, limits)
        self.capacity = capacity = Capacity(limits, agents)
        self.quota = quota = Quota(ledger, limits, exclusive=exclusive)
        workers = Workers(store, NODES, NodeRow, expires_in=limits.node_lease)
        self.membership = members = Membership(workers, self.id, agents, self._row, exclusive)
        self.ended = ended = EndedJobs(ledger, limits, tasks)
        self.jobs = jobs = RunningJobs(ledger, limits, tasks, members, capacity, quota, exclusive=exclusive)
        credentials = CredentialLifecycle(provider, ledger, limits, tasks, jobs)
        self.cancellation = cancel = Cancellation(jobs, ended, credentials)
        self.runner = runner = Runner(jobs, ended, cancel, credentials)
        jobs.conclude_abandoned = runner.conclude_abandoned
        families = Families(jobs)
        runner.delegate = Delegation(
            jobs, members, quota, families, runner, cancel, credentials, default_lease
        ).delegate

        self.sessions = sessions = Sessions(jobs)
        submissions = Submissions(jobs, members, quota, ended, runner, credentials, default_lease)
        listing = JobListing(jobs, credentials, may_observe)
        features = tuple(one for one in FEATURES if provider is not None or one != "provisioned_credentials")
        features += (STEPS,)
        handshake = Handshake(name, limits, sessions, members, authenticate, features, anonymous)
        signals, answers = Signals(jobs), Answers(jobs)
        self.server = Server(
            jobs, capacity, sessions, handshake, submissions, listing, cancel, signals, answers
        )

        self.dispatcher = Dispatcher(agents, jobs, capacity, quota, runner, cancel, credentials, every)
        self.takeover = Takeover(jobs, members, capacity, quota, ended, cancel, runner)
        self.maintenance = Maintenance(jobs, sessions, members, quota, ended, self.takeover, credentials)
        self._dispatching: asyncio.Task[None] | None = None

    def _row(self) -> NodeRow:
        return NodeRow(
            name=self.name,
            started=self.started,
            agents=self._agents.offers(),
            running=self.capacity.running,
            room=self._limits.running,
            sessions=len(self.sessions.attached),
            draining=self.capacity.draining,
            ended=dict(self.runner.counts),
            busy=self.quota.reported(),
        )

    async def start(self) -> None:
        """Register this node in the store, and start the background tasks."""
        await self.membership.announce()
        if not self.exclusive:
            await self.ended.take_over()
        supervise = self.tasks.supervise
        self._dispatching = supervise(self.dispatcher.dispatch)
        supervise(partial(ping_sessions, self.sessions, self._limits, self.tasks))
        supervise(partial(renew_sessions, self.sessions, self._limits))
        supervise(partial(self.membership.keep_announcing, self.takeover.drop_lost_jobs))
        supervise(self.maintenance.maintain)
        if self._every is not None:
            supervise(partial(follow_control, self.jobs, self._every))

    async def stop_dispatch(self) -> None:
        """Take no more jobs."""
        if self._dispatching is not None:
            await self.dispatcher.stop(self._dispatching)
        with suppress(StoreError):
            # The row keeps the node's agents: jobs submitted now wait for another node that has them.
            await self.membership.announce()

    async def halt(self) -> None:
        """Stop at once, without writing anything."""
        self.runner.closed = self.capacity.draining = True
        for task in list(self.tasks.running):
            task.cancel()
        if self.tasks.running:
            await asyncio.wait(list(self.tasks.running), timeout=5.0)
        attached = list(self.sessions.attached.values())
        await asyncio.gather(*(session.connection.close(1001, "") for session in attached))


def _pause(traits: Traits, *, exclusive: bool) -> float | None:
    """Return the seconds between reads of a shared store; None if no other node changes it."""
    if exclusive:
        return None
    if traits.notifies:
        return 5.0
    return 0.02 if traits.immediate else 0.05
