"""The state that the parts of one node share. Everything that other nodes need to see is in the store, not here."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

import msgspec

from amends.arcp.runtime.agents import Agents, Offer, merge_offers
from amends.arcp.runtime.cluster.quota import Quota
from amends.arcp.runtime.entries import NODES, NodeRow
from amends.arcp.runtime.jobs.job import RUNNING, Job
from amends.arcp.runtime.ledger import Ledger
from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.server.sessions import Sessions
from amends.arcp.wire import new_id
from amends.durable.batch import run_without_waiting
from amends.durable.retention import Retention
from amends.durable.workers import Workers
from amends.stores import Store, StoreError

if TYPE_CHECKING:
    from amends.arcp.runtime.credentials.lifecycle import CredentialLifecycle
    from amends.arcp.runtime.server.feeds import Feed
    from amends.arcp.runtime.server.session import Session

__all__ = ["EndedJob", "Node"]

_log = logging.getLogger("amends.arcp")
_FRESH = 1.0
_RESTART_PAUSE = 1.0
"""Seconds before a supervised task that failed is restarted."""


class EndedJob(msgspec.Struct, frozen=True, gc=False):
    """An ended job that is stored until its retention time is over."""

    job_id: str
    principal: str
    key: str | None
    at: float


class Node:
    """The shared state of a running runtime."""

    def __init__(
        self,
        store: Store,
        *,
        name: str,
        agents: Agents,
        limits: Limits,
        exclusive: bool,
        authenticate: Callable[[str], Awaitable[str | None]],
        may_observe: Callable[[str, str], bool | Awaitable[bool]] | None,
        credentials: CredentialLifecycle | None,
    ) -> None:
        self.store = store
        self.name = name
        self.id = new_id("node")
        self.agents = agents
        self.limits = limits
        self.exclusive = exclusive
        """Whether no other node uses this store, so that it need not be polled."""
        self.synchronous = store.url.startswith("memory:")
        """Whether writes complete without waiting."""
        self.notified = store.url.startswith("nats:")
        """Whether the store notifies this node of changes, so that it need not be polled."""
        self.combines_writes = store.supports_transactions and not self.synchronous
        """Whether transactions make callers wait, so that related changes are written in one transaction."""
        self.authenticate = authenticate
        self.may_observe = may_observe
        self.credentials = credentials
        self.loop = asyncio.get_running_loop()
        self.started = time.time()
        self.ledger = Ledger(store, self.id, limits)
        self.sessions = Sessions(self)
        self.jobs: dict[str, Job] = {}
        self.backlog: set[str] = set()
        """Agents whose queues are known to have jobs."""
        self.queue_wakeup = asyncio.Event()
        """Set when the queues should be read."""
        self.workers = Workers(store, NODES, NodeRow, expires_in=limits.node_lease)
        self.retained = (
            self._retention(limits.finished, limits.finished_for),
            self._retention(limits.keyed, limits.key_window),
        )
        """Ended jobs without and with an idempotency key."""
        self.interruptible: set[asyncio.Task[Any]] = set()
        """Tasks that wait for a queue and hold no message; they may be cancelled when the node stops."""
        self.being_written: set[str] = set()
        """Jobs that are being written to the store by this node."""
        self.running = 0
        self.draining = False
        self.handshakes = 0
        self.quota = Quota(self)
        self.peer_jobs: list[dict[str, int]] = []
        """The jobs per principal that other nodes reported; see `quota`."""
        self.peers: dict[str, tuple[Offer, ...]] = {}
        """The other live nodes and the agents they offer."""
        self.dead_peers: set[str] = set()
        """Nodes whose rows have disappeared and that `maintain` has not handled yet."""
        self.counts: Counter[str] = Counter()
        """Jobs that ended on this node, by error code; successful jobs under ""."""
        self.taken_over = 0
        """Jobs of dead nodes that this node has taken over."""
        self.waiting: dict[str, tuple[int, float]] = {}
        """For each agent the number of queued jobs and the creation time of the oldest, as of the last round."""
        self.queued_since: dict[str, float] = {}
        """By the event loop's clock: when this node first saw each queued job in the store."""
        self.closed = False
        self._peers_at = 0.0
        self.queued_feeds: dict[str, list[Feed]] = {}
        """Feeds of jobs that wait in the queue of an exclusive store; only this node can start those jobs."""
        self._tasks: set[asyncio.Task[Any]] = set()

    # -- tasks

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine in a task of the node; an exception is logged."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)
        return task

    def supervise(self, work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        """
        Run something for as long as the node lives, and restart it after an exception.

        Without the restart, the node would renew its row and appear alive while a part of its work is no longer done.
        """
        return self.spawn(self._restart_on_failure(work))

    async def _restart_on_failure(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            try:
                await work()
            except Exception:  # noqa: BLE001 - the work has to be restarted after any failure
                _log.exception(
                    "the background task %s failed; it is restarted in %s s", _name_of(work), _RESTART_PAUSE
                )
                await asyncio.sleep(_RESTART_PAUSE)
            else:
                return

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            name = getattr(task.get_coro(), "__qualname__", "")
            _log.error("the background task %s failed", name, exc_info=error)

    def run_or_spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine at once if the store never waits; otherwise spawn it."""
        if self.synchronous:
            run_without_waiting(work)
        else:
            self.spawn(work)

    def spawn_bare(self, work: Coroutine[Any, Any, None]) -> None:
        """
        Run a coroutine that handles its own exceptions in a task. Unlike `spawn` it needs no callback.

        The coroutine has to call `discard_current_task` at its end.
        """
        self._tasks.add(self.loop.create_task(work))

    def discard_current_task(self) -> None:
        """End a coroutine that was started by `spawn_bare`."""
        task = asyncio.current_task()
        if task is not None:
            self._tasks.discard(task)

    @property
    def tasks(self) -> set[asyncio.Task[Any]]:
        """The tasks that are running."""
        return self._tasks

    # -- agents

    def offers(self) -> dict[str, tuple[str, ...]]:
        """Return the agents of all nodes with their versions, as of the last `refresh_peers`."""
        return merge_offers([self.agents.offers(), *self.peers.values()])

    async def known_agents(self, reference: str | None = None) -> dict[str, tuple[str, ...]]:
        """Return `offers`, refreshed if it is older than a second or does not include the referenced agent."""
        if self.exclusive:
            return self.offers()
        offers = self.offers()
        name, _, version = (reference or "").partition("@")
        here = name in offers and (not version or version in offers[name])
        if not here or self.loop.time() - self._peers_at > _FRESH:
            await self.refresh_peers()
            offers = self.offers()
        return offers

    async def refresh_peers(self) -> None:
        """Read from the store which other nodes are alive."""
        found: dict[str, tuple[Offer, ...]] = {}
        peer_jobs: list[dict[str, int]] = []
        for id, (peer, _) in (await self.workers.alive()).items():
            if id != self.id:
                found[id] = peer.agents
                if peer.busy:
                    peer_jobs.append(peer.busy)
        self.dead_peers |= self.peers.keys() - found.keys()
        self.peers, self.peer_jobs = found, peer_jobs
        self._peers_at = self.loop.time()

    async def announce(self) -> None:
        """Write this node's row: that it is alive, its agents and its counters."""
        row = NodeRow(
            name=self.name,
            started=self.started,
            agents=self.agents.offers(),
            running=self.running,
            room=self.limits.running,
            sessions=len(self.sessions.attached),
            draining=self.draining,
            ended=dict(self.counts),
            busy=self.quota.reported(),
        )
        await self.workers.announce(self.id, row)

    async def repeatable(self, name: str, version: str) -> bool:
        """Whether every node that has this version of an agent registered it as repeatable."""
        agent = self.agents.get(name, version)
        if agent is not None:
            return agent.repeatable
        offers = [offer for peer in self.peers.values() for offer in peer if offer.name == name]
        having = [offer for offer in offers if version in offer.versions]
        return bool(having) and all(version in offer.repeatable for offer in having)

    # -- jobs

    def _retention(self, most: int, age: float) -> Retention[EndedJob]:
        return Retention(
            self._delete, ended=lambda one: one.at, most=most, age=age, together=not self.synchronous
        )

    async def _delete(self, ended: EndedJob) -> None:
        if ended.key is not None:
            # The job may have run again under its key. Then a later end decides when it is deleted.
            tail = await self.ledger.tail(ended.job_id)
            if tail is not None and not (tail[1].ended and tail[1].at <= ended.at):
                return
        await self.ledger.delete(ended.job_id, ended.principal, ended.key)

    def has_room(self, agent: str) -> bool:
        """Whether a new job of this agent can start here at once, without overtaking jobs in its queue."""
        return self.running < self.limits.running and not self.draining and agent not in self.backlog

    def reserve(self) -> None:
        """Reserve a place for a running job."""
        self.running += 1

    def release(self) -> None:
        """Free the place of a job."""
        self.running -= 1
        if self.backlog:
            self.queue_wakeup.set()

    def add_job(self, job: Job) -> None:
        """Add a job that has reserved its place."""
        old = self.jobs.get(job.spec.job_id)
        if old is not None:
            # Another node had taken the job over, and this node has started it again before it noticed.
            old.drop()
        self.jobs[job.spec.job_id] = job
        self.start_queued_feeds(job.spec.job_id)

    def remove_job(self, job: Job) -> None:
        """Remove a job that has ended or belongs to another node, and free its place."""
        if self.jobs.get(job.spec.job_id) is job:
            del self.jobs[job.spec.job_id]
            self.quota.job_ended(job.spec.principal)
            self.release()
            feeds, job.feeds = job.feeds, []
            for feed in feeds:
                # The job continues on another node, so the feed reads its log.
                feed.live = False
                feed.begin(self)

    def start_queued_feeds(self, job_id: str) -> None:
        """Start the feeds that waited for a queued job, because the job has started or ended."""
        for feed in self.queued_feeds.pop(job_id, ()):
            if feed.session.feeds.get(job_id) is feed:
                feed.begin(self)

    def abandon(self, job: Job) -> None:
        """End a job whose agent did not stop within the grace period."""
        if job.phase is RUNNING:
            from amends.arcp.runtime.jobs.run import conclude

            self.spawn(conclude(job, job.stopping))

    # -- sessions

    async def drop(self, session: Session) -> None:
        """Detach a session from its connection and close that; the session can be resumed."""
        if session.closing:
            return
        session.stop()
        try:
            await self.sessions.detach(session)
        except StoreError:
            _log.warning("session %s could not be stored as detached: the store failed", session.id)
        if session.writer is not None and session.writer is not asyncio.current_task():
            session.writer.cancel()
        await session.connection.close(1001, "")


def _name_of(work: Callable[..., Any]) -> str:
    return str(getattr(getattr(work, "func", work), "__qualname__", work))
