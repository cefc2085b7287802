"""One node: what its parts share. Everything that other nodes must see stands in the store, never here."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

import msgspec

from amends.arcp.runtime.agents import Agents, Offer, merged
from amends.arcp.runtime.batch import done_at_once
from amends.arcp.runtime.entries import NODES, NodeRow, encode
from amends.arcp.runtime.job import RUNNING, Job
from amends.arcp.runtime.ledger import Ledger
from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.quota import Quota
from amends.arcp.runtime.sessions import Sessions
from amends.arcp.wire import new_id
from amends.stores import Store, StoreError

if TYPE_CHECKING:
    from amends.arcp.runtime.credential_lifecycle import Issued
    from amends.arcp.runtime.feeds import Feed
    from amends.arcp.runtime.session import Session

__all__ = ["Ended", "Node"]

_log = logging.getLogger("amends.arcp")
_FRESH = 1.0
_AGAIN = 1.0
"""Seconds before a duty that failed is taken up again."""
_read_node = msgspec.json.Decoder(NodeRow).decode


class Ended(msgspec.Struct, frozen=True, gc=False):
    """A job that has ended here, and is kept for a while."""

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
        alone: bool,
        authenticate: Callable[[str], Awaitable[str | None]],
        may_observe: Callable[[str, str], bool | Awaitable[bool]] | None,
        credentials: Issued | None,
    ) -> None:
        self.store = store
        self.name = name
        self.id = new_id("node")
        self.agents = agents
        self.limits = limits
        self.alone = alone
        """Nobody else has this store: nothing needs to be looked for there."""
        self.prompt = store.url.startswith("memory:")
        """Writes are done when they are begun."""
        self.called = store.url.startswith("nats:")
        """The store says when there is something: nothing has to be looked for now and then."""
        self.joins = store.supports_transactions and not self.prompt
        """A transaction costs a wait: what belongs together is written together."""
        self.authenticate = authenticate
        self.may_observe = may_observe
        self.credentials = credentials
        self.loop = asyncio.get_running_loop()
        self.started = time.time()
        self.ledger = Ledger(store, self.id, limits)
        self.sessions = Sessions(self)
        self.jobs: dict[str, Job] = {}
        self.backlog: set[str] = set()
        """Agents whose queues are known to hold something."""
        self.wanted = asyncio.Event()
        """Something can be taken from a queue."""
        self.ended: deque[Ended] = deque()
        self.keyed: deque[Ended] = deque()
        self.interruptible: set[asyncio.Task[Any]] = set()
        """Those who wait for something to be taken, and hold nothing."""
        self.placing: set[str] = set()
        """Jobs that are being written down."""
        self.running = 0
        self.draining = False
        self.strangers = 0
        self.quota = Quota(self)
        self.busy: list[dict[str, int]] = []
        """For whom the other nodes work most."""
        self.peers: dict[str, tuple[Offer, ...]] = {}
        """The other nodes that are alive, and what they can run."""
        self.departed: set[str] = set()
        """Those that are no longer, whoever noticed it, and whom the keeper has not seen to yet."""
        self.counts: Counter[str] = Counter()
        """Jobs that ended here, by code of their error; those that succeeded under ""."""
        self.taken_over = 0
        """Jobs of dead nodes this one has seen to."""
        self.waiting: dict[str, tuple[int, float]] = {}
        """How many jobs of each agent wait in its queue, and since when the oldest; as last looked at."""
        self.closed = False
        self.evicting = False
        self._peers_at = 0.0
        self.idle: dict[str, list[Feed]] = {}
        """Who listens to jobs that wait in the queue of a store nobody else has: they can only begin here."""
        self._tasks: set[asyncio.Task[Any]] = set()

    # -- tasks

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Have something done beside; what it raises is logged."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def duty(self, work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        """
        Have something done for as long as the node lives.

        A failure nobody thought of must not leave a node that is alive to all others and does only part of its work.
        """
        return self.spawn(self._kept(work))

    async def _kept(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            try:
                await work()
            except Exception:  # noqa: BLE001 - whatever it is, the work is still to be done
                _log.exception("a part of the runtime failed; it is begun anew")
                await asyncio.sleep(_AGAIN)
            else:
                return

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a part of the runtime failed", exc_info=error)

    def promptly(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done now, where the store makes nobody wait; else beside."""
        if self.prompt:
            done_at_once(work)
        else:
            self.spawn(work)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """
        The same as `spawn`, for work that keeps its failures to itself; cheaper by a callback.

        It has to call `finished` as its last act.
        """
        self._tasks.add(self.loop.create_task(work))

    def finished(self) -> None:
        """The last act of what was begun."""
        task = asyncio.current_task()
        if task is not None:
            self._tasks.discard(task)

    @property
    def tasks(self) -> set[asyncio.Task[Any]]:
        """What is under way."""
        return self._tasks

    # -- agents

    def offers(self) -> dict[str, tuple[str, ...]]:
        """What all nodes together can run, as far as this one has heard."""
        return merged([self.agents.offers(), *self.peers.values()])

    async def known(self, reference: str | None = None) -> dict[str, tuple[str, ...]]:
        """The same, heard anew where it may be out of date; of one agent, where nobody is known to have it."""
        if self.alone:
            return self.offers()
        offers = self.offers()
        name, _, version = (reference or "").partition("@")
        here = name in offers and (not version or version in offers[name])
        if not here or self.loop.time() - self._peers_at > _FRESH:
            await self.meet()
            offers = self.offers()
        return offers

    async def meet(self) -> None:
        """Hear which other nodes are alive."""
        found: dict[str, tuple[Offer, ...]] = {}
        busy: list[dict[str, int]] = []
        async for row in self.store.table(NODES).scan():
            if row.key != self.id:
                peer = _read_node(row.value)
                found[row.key] = peer.agents
                if peer.busy:
                    busy.append(peer.busy)
        self.departed |= self.peers.keys() - found.keys()
        self.peers, self.busy = found, busy
        self._peers_at = self.loop.time()

    async def announce(self) -> None:
        """Say that this node is alive, and what it can run."""
        row = NodeRow(
            name=self.name,
            started=self.started,
            agents=self.agents.offers(),
            running=self.running,
            room=self.limits.running,
            sessions=len(self.sessions.attached),
            draining=self.draining,
            ended=dict(self.counts),
            busy=self.quota.said(),
        )
        await self.store.table(NODES).put(self.id, encode(row), expires_in=self.limits.node_lease)

    async def repeatable(self, name: str, version: str) -> bool:
        """Whether an agent may be run again after a crash, as whoever has it says."""
        agent = self.agents.get(name, version)
        if agent is not None:
            return agent.repeatable
        offers = [offer for peer in self.peers.values() for offer in peer if offer.name == name]
        having = [offer for offer in offers if version in offer.versions]
        return bool(having) and all(version in offer.repeatable for offer in having)

    # -- jobs

    def has_room(self, agent: str) -> bool:
        """Whether a job can begin here at once, past nobody who waits longer."""
        return self.running < self.limits.running and not self.draining and agent not in self.backlog

    def reserve(self) -> None:
        """Take one of the places for running jobs."""
        self.running += 1

    def release(self) -> None:
        """Give it back."""
        self.running -= 1
        if self.backlog:
            self.wanted.set()

    def begun(self, job: Job) -> None:
        """A job that has its place runs here from now on."""
        self.jobs[job.order.job_id] = job
        self.bring(job.order.job_id)

    def gone(self, job: Job) -> None:
        """It does so no more."""
        if self.jobs.get(job.order.job_id) is job:
            del self.jobs[job.order.job_id]
            self.release()
            feeds, job.feeds = job.feeds, []
            for feed in feeds:
                # It goes on elsewhere, and so does whoever listens.
                feed.live = False
                feed.begin(self)

    def bring(self, job_id: str) -> None:
        """Something has happened to a job that waited: whoever listens is told."""
        for feed in self.idle.pop(job_id, ()):
            if feed.session.feeds.get(job_id) is feed:
                feed.begin(self)

    def abandon(self, job: Job) -> None:
        """An agent that was told to stop has not: its job ends without it."""
        if job.phase is RUNNING:
            from amends.arcp.runtime.runner import conclude

            self.spawn(conclude(job, job.stopping))

    # -- sessions

    async def drop(self, session: Session) -> None:
        """Part a session from its connection; it can be resumed."""
        if session.closing:
            return
        session.stop()
        try:
            await self.sessions.leave(session)
        except StoreError:
            _log.warning("session %s could not be written down as left", session.id)
        if session.writer is not None and session.writer is not asyncio.current_task():
            session.writer.cancel()
        await session.connection.close(1001, "")
