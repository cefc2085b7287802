"""
The limit of unfinished jobs per principal, counted over all nodes, and the places for running jobs on this node.

Every submission checks it, so the check only adds two numbers in this node's memory: jobs that run here, and jobs known
elsewhere. The latter are queued jobs, and jobs that other nodes report for principals with at least a tenth of the limit
there. Each round of `maintain` refreshes both. The numbers can be out of date, and meanwhile each node may admit a
principal up to the limit. A submission is never rejected because of an outdated number: before that, the jobs of the
principal are counted in the store.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from amends.arcp.runtime.agents import Agents
from amends.arcp.runtime.entries import Summary
from amends.arcp.runtime.ledger import Ledger
from amends.arcp.runtime.limits import Limits
from amends.errors.arcp import InternalError

__all__ = ["Capacity", "Quota"]

_REPORTED_SHARE = 10
"""A node reports a principal's jobs to others from one tenth of the limit on."""
_FRESH = 0.25
"""Seconds for which a count is reused, because clients that are rejected often repeat the submission."""
_REMEMBERED = 1_000

T = TypeVar("T")


class Quota:
    """The numbers of unfinished jobs per principal, as one node knows them."""

    def __init__(self, ledger: Ledger, limits: Limits, *, exclusive: bool) -> None:
        """`exclusive`: no other node uses the store, so only queued jobs are elsewhere."""
        self._ledger = ledger
        self._limit = limits.jobs_per_principal
        self._exclusive = exclusive
        self._loop = asyncio.get_running_loop()
        self.here: dict[str, int] = {}
        """Jobs of each principal that run on this node."""
        self.elsewhere: Counter[str] = Counter()
        """Jobs of each principal that are queued or run on other nodes, as far as known."""
        self._recent: dict[str, tuple[float, int]] = {}
        self._scans: dict[object, Counter[str]] = {}

    @contextmanager
    def counting(self) -> Generator[Counter[str]]:
        """Collect the jobs that this node queues while the caller reads the store, since the read may miss them."""
        scan = object()
        self._scans[scan] = Counter()
        try:
            yield self._scans[scan]
        finally:
            del self._scans[scan]

    async def admit(self, principal: str) -> None:
        """
        Count another job of a principal on this node; `job_ended` takes that back.

        If the principal seems to have too many jobs, they are counted in the store first.

        Raises:
            InternalError: the principal has reached its limit.

        """
        limit = self._limit
        known = self.here.get(principal, 0) + self.elsewhere.get(principal, 0)
        if known >= limit and await self._count(principal) >= limit:
            raise InternalError(
                "The principal has too many unfinished jobs",
                details={"limit": "jobs_per_principal", "value": limit},
            )
        self.job_started(principal)

    async def _count(self, principal: str) -> int:
        now = self._loop.time()
        at, elsewhere = self._recent.get(principal, (0.0, 0))
        if now - at > _FRESH or not at:
            # Jobs of this node are in `here`; some of them may not be in the store yet.
            elsewhere = 0
            with self.counting() as meanwhile:
                async for owner, row in self._ledger.active("" if self._exclusive else None):
                    elsewhere += owner != self._ledger.node and row.principal == principal
            if len(self._recent) >= _REMEMBERED:
                self._recent.clear()
            self._recent[principal] = (now, elsewhere)
            self.elsewhere[principal] = elsewhere + meanwhile[principal]
        # Read after the count: other jobs may have started meanwhile.
        return self.here.get(principal, 0) + elsewhere

    def job_started(self, principal: str) -> None:
        """Count a job that starts on this node."""
        self.here[principal] = self.here.get(principal, 0) + 1

    def job_ended(self, principal: str) -> None:
        """Count a job that has ended on this node or left it."""
        left = self.here.get(principal, 0) - 1
        if left > 0:
            self.here[principal] = left
        else:
            self.here.pop(principal, None)

    def job_queued(self, principal: str) -> None:
        """Count a job that was put into a queue."""
        self.elsewhere[principal] += 1
        for scan in self._scans.values():
            scan[principal] += 1

    def job_dequeued(self, principal: str) -> None:
        """Count a job that was taken from a queue."""
        if self.elsewhere[principal] > 1:
            self.elsewhere[principal] -= 1
        else:
            del self.elsewhere[principal]

    def reported(self) -> dict[str, int]:
        """Return the numbers of jobs that this node reports to the others."""
        least = self._limit / _REPORTED_SHARE
        return {principal: count for principal, count in self.here.items() if count >= least}

    def update(
        self, waiting: Iterable[Summary], peers: Iterable[dict[str, int]], meanwhile: Mapping[str, int]
    ) -> None:
        """
        Replace `elsewhere` by the queued jobs, the reports of other nodes, and the jobs queued here during the read.

        Jobs in `meanwhile` may be counted twice, which `admit` corrects. Omitting them could admit one job too many.
        """
        elsewhere = Counter(row.principal for row in waiting)
        elsewhere.update(meanwhile)
        for reported in peers:
            elsewhere.update(reported)
        self.elsewhere = elsewhere


@dataclass(eq=False)
class Capacity:
    """The places for running jobs on one node."""

    _limits: Limits
    _agents: Agents
    running: int = 0
    """Places that are taken: running jobs, and jobs that are about to run."""
    running_of: Counter[str] = field(default_factory=Counter)
    """The same for each agent that limits its concurrency."""
    _started: dict[str, deque[float]] = field(default_factory=dict)
    """When the last jobs of agents with a rate started."""
    _timers: dict[str, asyncio.TimerHandle] = field(default_factory=dict)
    draining: bool = False
    """Whether the node stops and takes no more jobs."""
    backlog: set[str] = field(default_factory=set)
    """Agents whose queues are known to have jobs."""
    queue_wakeup: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the queues should be read."""
    being_written: set[str] = field(default_factory=set)
    """Jobs that are being written to the store by this node."""

    @property
    def full(self) -> bool:
        """Whether no place is free."""
        return self.running >= self._limits.running

    def has_room(self, agent: str) -> bool:
        """Whether a new job of this agent can start here at once, without overtaking jobs in its queue."""
        return not self.full and not self.draining and agent not in self.backlog and self.admits(agent)

    def limit_of(self, agent: str) -> str:
        """Return the name of the limit that keeps a job of this agent from starting here now; "" if none does."""
        if self.full:
            return "running"
        registered = self._agents.lookup(agent)
        if registered is None:
            return ""
        limits = registered.limits
        if limits.concurrency is not None and self.running_of[registered.ref] >= limits.concurrency:
            return "concurrency"
        return "rate" if limits.rate is not None and self._must_wait(registered.ref, limits.rate) else ""

    def admits(self, agent: str) -> bool:
        """Whether the agent's own limits allow another job now, and none of a higher priority waits for a place."""
        if self.limit_of(agent):
            return False
        if not self.backlog:
            return True
        registered = self._agents.lookup(agent)
        own = 0 if registered is None else registered.limits.priority
        for other in self.backlog:
            waiting = self._agents.lookup(other)
            if waiting is not None and waiting.limits.priority > own and not self.limit_of(other):
                return False
        return True

    def _must_wait(self, agent: str, rate: tuple[int, float]) -> bool:
        """Whether as many jobs as the rate allows started within its time. The queues are read again when one may start."""
        most, period = rate
        started = self._started.get(agent)
        if started is None or len(started) < most:
            return False
        loop = asyncio.get_running_loop()
        left = started[0] + period - loop.time()
        if left <= 0:
            return False
        timer = self._timers.get(agent)
        if timer is None or timer.when() <= loop.time():
            self._timers[agent] = loop.call_later(left, self.queue_wakeup.set)
        return True

    async def write(self, job_id: str, agent: str, write: Awaitable[T], *, here: bool) -> T:
        """Mark a job as being written, and reserve its place if it starts here; the place is freed if the write fails."""
        if here:
            self.reserve(agent)
        self.being_written.add(job_id)
        try:
            return await write
        except BaseException:
            if here:
                self.release(agent)
            raise
        finally:
            self.being_written.discard(job_id)

    def reserve(self, agent: str) -> None:
        """Reserve a place for a running job of an agent (`name@version`)."""
        self.running += 1
        registered = self._agents.lookup(agent)
        if registered is None:
            return
        if registered.limits.concurrency is not None:
            self.running_of[agent] += 1
        if registered.limits.rate is not None:
            started = self._started.setdefault(agent, deque(maxlen=registered.limits.rate[0]))
            started.append(asyncio.get_running_loop().time())

    def release(self, agent: str) -> None:
        """Free the place of a job."""
        self.running -= 1
        if agent in self.running_of:
            self.running_of[agent] -= 1
        if self.backlog:
            self.queue_wakeup.set()

    def add_to_backlog(self, agent: str) -> None:
        """Record that the queue of an agent has a job."""
        self.backlog.add(agent)
        self.queue_wakeup.set()

    def queue_is_empty(self, agent: str) -> None:
        """Record that the queue of an agent had no job; agents of a lower priority may start theirs."""
        if agent in self.backlog:
            self.backlog.discard(agent)
            if self.backlog:
                self.queue_wakeup.set()
