"""
A job this node runs: its place in its log, the events on their way there, and who listens.

Events are written before anybody sees them. An agent's calls put them into an outbox; whoever finds no write under way
begins one, and it takes along what comes in the meantime: many events, one commit. A write that finds somebody else's
entry in its place says that the job was taken over: it is over here, without a word.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from amends.arcp.leases import Budget, Lease
from amends.arcp.runtime.batch import Steps
from amends.arcp.runtime.entries import JobEntry, JobSpec, SessionEntry, encode, session_log
from amends.arcp.wire import now_text
from amends.arcp.wire.messages import Event
from amends.errors.arcp import ARCPError, InternalError
from amends.stores import ConflictError, StoreError, StoreUnavailableError

if TYPE_CHECKING:
    from amends.arcp.runtime.agents import Agent
    from amends.arcp.runtime.feeds import Feed
    from amends.arcp.runtime.node import Node

__all__ = ["ENDED", "ENDING", "RUNNING", "Job"]

RUNNING, ENDING, ENDED = "running", "ending", "ended"

_log = logging.getLogger("amends.arcp")
_PAUSE = 0.05
_NO_LEASE, _NO_BUDGET = Lease(), Budget()


class Job:
    """One run of a job, on the node that owns it."""

    __slots__ = (
        "_flushing",
        "_held",
        "_idle",
        "_timers",
        "_writes",
        "agent",
        "budget",
        "children",
        "credentials",
        "epoch",
        "events",
        "expired",
        "feeds",
        "last",
        "lease",
        "node",
        "order",
        "outbox",
        "phase",
        "result_id",
        "run",
        "stopping",
        "task",
        "waiters",
    )

    def __init__(self, node: Node, order: JobSpec, agent: Agent, *, run: int, epoch: int, last: int) -> None:
        self.node = node
        self.order = order
        self.agent = agent
        self.run = run
        self.epoch = epoch
        self.last = last
        self.lease = Lease(order.grants, order.expires_at) if order.grants or order.expires_at else _NO_LEASE
        self.budget = self.lease.budget if order.grants else _NO_BUDGET
        self.phase = RUNNING
        self.stopping: ARCPError | None = None
        self.expired: ARCPError | None = None
        self.task: asyncio.Task[None] | None = None
        self.feeds: list[Feed] = []
        self.outbox: list[JobEntry] = []
        self.events = 0
        self.children: dict[str, None] = {}
        self.credentials: list[dict[str, Any]] | None = None
        self.waiters: list[asyncio.Future[JobEntry]] = []
        self.result_id: str | None = None
        self._flushing = False
        self._held = 0
        self._writes: list[asyncio.Future[None]] = []
        self._idle: asyncio.Future[None] | None = None
        self._timers: list[asyncio.TimerHandle] = []

    # -- what the agent says

    def emit(self, kind: str, body: dict[str, Any]) -> None:
        """
        Say something about the job. What a job says after its end is dropped.

        Raises:
            InternalError: the job has said too much, or too much at once.

        """
        if self.phase is not RUNNING:
            return
        limits = self.node.limits
        self.events += 1
        if self.events > limits.events_per_job:
            raise _beyond("events_per_job", limits.events_per_job)
        payload = encode(Event(kind, now_text(), body, self.run if self.run > 1 else None))
        if len(payload) > limits.event_bytes:
            raise _beyond("event_bytes", limits.event_bytes)
        self._put(self.mark("event", payload))

    def adopted(self, accepted: bytes) -> None:
        """Write down that another job works for this one, for whoever listens to this one."""
        self._put(self.mark("child", accepted))

    def _put(self, mark: JobEntry) -> None:
        self.outbox.append(mark)
        self._held += len(mark.payload)
        if not self._flushing:
            self._flushing = True
            self.node.promptly(self._flush())

    def write_down(self) -> None:
        """Write a job that was only begun: it is about to wait, and others will look for it."""
        if self.outbox and not self._flushing and self.phase is RUNNING:
            self._flushing = True
            self.node.promptly(self._flush())

    def mark(self, kind: str, payload: bytes) -> JobEntry:
        """An entry of this run."""
        return JobEntry(kind, self.run, self.epoch, self.node.id, time.time(), msgspec.Raw(payload))

    async def room(self) -> None:
        """Wait while the store, or somebody who listens, cannot keep up. Whoever does not read is dropped in time."""
        limits = self.node.limits
        while len(self.outbox) >= limits.buffered or self._held > limits.buffered_bytes:
            waiter: asyncio.Future[None] = self.node.loop.create_future()
            self._writes.append(waiter)
            await waiter
        for feed in tuple(self.feeds):
            if feed.session.full:
                await feed.session.room()

    # -- writing it down

    async def _flush(self) -> None:
        try:
            while self.outbox and self.phase is not ENDED:
                marks, self.outbox = self.outbox, []
                self._held = 0
                write = partial(self.node.ledger.write, self.order, marks, self.last)
                if not await self._persist(write, len(marks)):
                    return
                self._committed(marks)
                self._go_on()
        finally:
            self._flushing = False
            self._go_on()
            if self._idle is not None and not self._idle.done():
                self._idle.set_result(None)

    def _go_on(self) -> None:
        if self._writes:
            writes, self._writes = self._writes, []
            for waiter in writes:
                if not waiter.done():
                    waiter.set_result(None)

    async def end(self, kind: str, payload: bytes, status: str) -> bool:
        """Write the terminal entry, behind whatever is left to write; False when the job was taken over."""
        self.phase = ENDING
        for timer in self._timers:
            timer.cancel()
        if self._flushing:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle
        if self.node.joins and any(feed.session.speaking for feed in self.feeds):
            # A turn for those who have something to say (that the job was accepted, usually): once they are quiet,
            # this end is numbered in its own transaction instead of one more.
            await asyncio.sleep(0)
        if self.phase is ENDED:
            return False
        marks = [*self.outbox, self.mark(kind, payload)]
        self.outbox = []
        told = self._claimed(marks)

        def also(steps: Steps) -> None:
            for feed, (_, entry) in told.items():
                feed.session.note(steps, entry)

        def fenced() -> bool:
            """A session goes on elsewhere: the job ends without it."""
            found = bool(told)
            for feed in told:
                feed.session.unclaim()
            told.clear()
            return found

        write = partial(self.node.ledger.end, self.order, marks, self.last, status, self.node.id, also)
        written = await self._persist(write, len(marks), fenced)
        for feed, (frames, _) in told.items():
            if written:
                feed.tell(frames)
            else:
                feed.session.unclaim()
        if written:
            self._committed(marks)
            self.phase = ENDED
            for waiter in self.waiters:
                if not waiter.done():
                    waiter.set_result(marks[-1])
        return written

    def _claimed(self, marks: list[JobEntry]) -> dict[Feed, tuple[list[tuple[int, JobEntry]], SessionEntry]]:
        """The sessions that are told in the same transaction: those that have nothing else to number just now."""
        if not self.node.joins:
            return {}
        found = {}
        for feed in self.feeds:
            claim = feed.claimed(self.last + 1, marks)
            if claim is not None:
                found[feed] = claim
        return found

    def _committed(self, marks: list[JobEntry]) -> None:
        first = self.last + 1
        self.last += len(marks)
        for feed in tuple(self.feeds):
            feed.push(first, marks)

    async def _persist(
        self, write: Callable[[], Awaitable[None]], count: int, fenced: Callable[[], bool] | None = None
    ) -> bool:
        """Do a write of `count` entries; one whose answer was lost is looked up before it is believed to be ours."""
        give_up = 0.0
        while True:
            try:
                await write()
                return True
            except ConflictError as conflict:
                if session_log("") in conflict.what and fenced is not None and fenced():
                    continue
                if await self._mine(count):
                    return True
                break
            except StoreUnavailableError:
                now = self.node.loop.time()
                give_up = give_up or now + self.node.limits.node_lease
                if now > give_up:
                    _log.warning("job %s is given up: its store does not answer", self.order.job_id)
                    break
                await asyncio.sleep(_PAUSE)
            except StoreError:
                _log.exception("job %s is given up: its store fails", self.order.job_id)
                break
        self.lost()
        return False

    async def _mine(self, count: int) -> bool:
        """Whether what stands there is what an earlier try of ours has written."""
        try:
            tail = await self.node.ledger.tail(self.order.job_id)
        except StoreError:
            return False
        return (
            tail is not None
            and tail[0] == self.last + count
            and (tail[1].epoch, tail[1].node) == (self.epoch, self.node.id)
        )

    # -- stopping

    def after(self, seconds: float, act: Any, *given: Any) -> None:
        """Do something later, unless the job has ended by then."""
        self._timers.append(self.node.loop.call_later(seconds, act, *given))

    def stop(self, why: ARCPError) -> None:
        """Tell the agent to stop, once; when it has not after the grace, the job ends without it."""
        if self.phase is not RUNNING or self.stopping is not None:
            return
        self.stopping = why
        self.after(self.node.limits.cancel_grace, self.node.abandon, self)
        self._interrupt()

    def lost(self) -> None:
        """Somebody else has the job (or the store is gone): stop, and say nothing."""
        if self.phase is ENDED:
            return
        running = self.phase is RUNNING
        self.phase = ENDED
        self.outbox.clear()
        self._held = 0
        self._go_on()
        for timer in self._timers:
            timer.cancel()
        self.node.gone(self)
        for waiter in self.waiters:
            if not waiter.done():
                waiter.cancel()
        if running:
            self._interrupt()

    def _interrupt(self) -> None:
        # From inside its own task a cancellation would strike wherever it waits next, also in our own steps.
        if self.task is not None and self.task is asyncio.current_task():
            self.node.loop.call_soon(self._cancel)
        else:
            self._cancel()

    def _cancel(self) -> None:
        if self.task is not None and self.phase is not ENDING:
            self.task.cancel()


def _beyond(limit: str, value: int) -> InternalError:
    return InternalError(
        "The job went beyond a limit of this runtime",
        retryable=False,
        details={"limit": limit, "value": value},
    )
