"""
A job that runs on this node: its position in its log, the events that are not written yet, and its subscribers.

Events are written to the store before any subscriber gets them. An agent's calls append events to an outbox. If no write
is in progress, the call starts one; it repeats until the outbox is empty, so one commit contains many events. A write
that finds another node's entry at its position means that the job was taken over: the run stops here without an end.
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
from amends.arcp.runtime.entries import JobEntry, JobSpec, SessionEntry, encode, job_log
from amends.arcp.wire import now_text
from amends.arcp.wire.messages import Event
from amends.durable.batch import Batch
from amends.errors.arcp import ARCPError, InternalError
from amends.stores import ConflictError, StoreError, StoreUnavailableError

if TYPE_CHECKING:
    from amends.arcp.runtime.agents import Agent
    from amends.arcp.runtime.node import Node
    from amends.arcp.runtime.server.feeds import Feed

__all__ = ["ENDED", "ENDING", "RUNNING", "Job"]

RUNNING, ENDING, ENDED = "running", "ending", "ended"

_log = logging.getLogger("amends.arcp")
_PAUSE = 0.05
_NO_LEASE, _NO_BUDGET = Lease(), Budget()


class Job:
    """One run of a job, on the node that owns it."""

    __slots__ = (
        "_flushing",
        "_idle",
        "_outbox_bytes",
        "_timers",
        "_write_waiters",
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
        "outbox",
        "phase",
        "result_id",
        "run",
        "spec",
        "stopping",
        "task",
        "waiters",
    )

    def __init__(self, node: Node, spec: JobSpec, agent: Agent, *, run: int, epoch: int, last: int) -> None:
        self.node = node
        self.spec = spec
        self.agent = agent
        self.run = run
        self.epoch = epoch
        self.last = last
        self.lease = Lease(spec.grants, spec.expires_at) if spec.grants or spec.expires_at else _NO_LEASE
        self.budget = self.lease.budget if spec.grants else _NO_BUDGET
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
        self._outbox_bytes = 0
        self._write_waiters: list[asyncio.Future[None]] = []
        self._idle: asyncio.Future[None] | None = None
        self._timers: list[asyncio.TimerHandle] = []

    # -- events

    def emit(self, kind: str, body: dict[str, Any]) -> None:
        """
        Queue an event to be written to the job's log. Events after the end of the run are dropped.

        Raises:
            InternalError: the job has exceeded `Limits.events_per_job` or `Limits.event_bytes`.

        """
        if self.phase is not RUNNING:
            return
        limits = self.node.limits
        self.events += 1
        if self.events > limits.events_per_job:
            raise _limit_error("events_per_job", limits.events_per_job)
        payload = encode(Event(kind, now_text(), body, self.run if self.run > 1 else None))
        if len(payload) > limits.event_bytes:
            raise _limit_error("event_bytes", limits.event_bytes)
        self._put(self.entry("event", payload))

    def record_child(self, accepted: bytes) -> None:
        """Write to the log that this job delegated another one, for the sessions subscribed to this one."""
        self._put(self.entry("child", accepted))

    def _put(self, entry: JobEntry) -> None:
        self.outbox.append(entry)
        self._outbox_bytes += len(entry.payload)
        if not self._flushing:
            self._flushing = True
            self.node.run_or_spawn(self._flush())

    def write_accepted(self) -> None:
        """Write a job that has only been started in memory, because its agent is about to wait."""
        if self.outbox and not self._flushing and self.phase is RUNNING:
            self._flushing = True
            self.node.run_or_spawn(self._flush())

    def entry(self, kind: str, payload: bytes) -> JobEntry:
        """Create an entry of this run."""
        return JobEntry(kind, self.run, self.epoch, self.node.id, time.time(), msgspec.Raw(payload))

    async def wait_for_room(self) -> None:
        """Wait while the store or a subscribed session cannot keep up; `heartbeat` drops sessions that do not read."""
        limits = self.node.limits
        while len(self.outbox) >= limits.buffered or self._outbox_bytes > limits.buffered_bytes:
            waiter: asyncio.Future[None] = self.node.loop.create_future()
            self._write_waiters.append(waiter)
            await waiter
        for feed in tuple(self.feeds):
            if feed.session.full:
                await feed.session.wait_for_room()

    # -- writing

    async def _flush(self) -> None:
        try:
            while self.outbox and self.phase is not ENDED:
                entries, self.outbox = self.outbox, []
                self._outbox_bytes = 0
                write = partial(self.node.ledger.write, self.spec, entries, self.last)
                if not await self._persist(write, len(entries)):
                    return
                self._publish(entries)
                self._release_writers()
        finally:
            self._flushing = False
            self._release_writers()
            if self._idle is not None and not self._idle.done():
                self._idle.set_result(None)

    def _release_writers(self) -> None:
        if self._write_waiters:
            waiters, self._write_waiters = self._write_waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    async def end(self, kind: str, payload: bytes, status: str) -> bool:
        """Write the remaining events and the terminal entry. Returns False if the job was taken over."""
        self.phase = ENDING
        for timer in self._timers:
            timer.cancel()
        if self._flushing:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle
        if self.node.combines_writes and any(feed.session.has_unnumbered for feed in self.feeds):
            # Let these sessions send first (usually `job.accepted`). Once their queues are empty, the transaction of
            # this job's end can include the event numbers, which saves a second transaction.
            await asyncio.sleep(0)
        if self.phase is ENDED:
            return False
        entries = [*self.outbox, self.entry(kind, payload)]
        self.outbox = []
        claims = self._claim_feeds(entries)

        def add_claims(steps: Batch) -> None:
            for feed, (_, session_entry) in claims.items():
                feed.session.add_to(steps, session_entry)

        def release_claims() -> bool:
            """Give up the claims after a session was resumed elsewhere; the job's end is written without them."""
            had_claims = bool(claims)
            for feed in claims:
                feed.session.release_claim()
            claims.clear()
            return had_claims

        write = partial(self.node.ledger.end, self.spec, entries, self.last, status, self.node.id, add_claims)
        written = await self._persist(write, len(entries), release_claims)
        for feed, (frames, _) in claims.items():
            if written:
                feed.send_claimed(frames)
            else:
                feed.session.release_claim()
        if written:
            self._publish(entries)
            self.phase = ENDED
            for waiter in self.waiters:
                if not waiter.done():
                    waiter.set_result(entries[-1])
        return written

    def _claim_feeds(
        self, entries: list[JobEntry]
    ) -> dict[Feed, tuple[list[tuple[int, JobEntry]], SessionEntry]]:
        """Reserve event numbers in the sessions that have nothing else to number at the moment."""
        if not self.node.combines_writes:
            return {}
        claims = {}
        for feed in self.feeds:
            claim = feed.claim(self.last + 1, entries)
            if claim is not None:
                claims[feed] = claim
        return claims

    def _publish(self, entries: list[JobEntry]) -> None:
        first = self.last + 1
        self.last += len(entries)
        for feed in tuple(self.feeds):
            feed.push(first, entries)

    async def _persist(
        self,
        write: Callable[[], Awaitable[None]],
        count: int,
        release_claims: Callable[[], bool] | None = None,
    ) -> bool:
        """
        Write `count` entries. Returns False, and drops the job, if the job was taken over or the store failed.

        After a conflict, the log shows whether an earlier try, whose answer was lost, had succeeded.
        """
        give_up = 0.0
        while True:
            try:
                await write()
                return True
            except ConflictError as conflict:
                if (
                    conflict.name != job_log(self.spec.job_id)
                    and release_claims is not None
                    and release_claims()
                ):
                    continue
                if await self._is_own_write(count):
                    return True
                break
            except StoreUnavailableError:
                now = self.node.loop.time()
                give_up = give_up or now + self.node.limits.node_lease
                if now > give_up:
                    _log.warning(
                        "job %s is dropped by this node: the store has not answered for %s s",
                        self.spec.job_id,
                        self.node.limits.node_lease,
                    )
                    break
                await asyncio.sleep(_PAUSE)
            except StoreError:
                _log.exception("job %s is dropped by this node: the store failed", self.spec.job_id)
                break
        self.drop()
        return False

    async def _is_own_write(self, count: int) -> bool:
        """Whether the newest entry of the log is the last of `count` entries that an earlier try has written."""
        try:
            tail = await self.node.ledger.tail(self.spec.job_id)
        except StoreError:
            return False
        return (
            tail is not None
            and tail[0] == self.last + count
            and (tail[1].epoch, tail[1].node) == (self.epoch, self.node.id)
        )

    # -- stopping

    def after(self, seconds: float, act: Any, *given: Any) -> None:
        """Call a function after some seconds, unless the job has ended by then."""
        self._timers.append(self.node.loop.call_later(seconds, act, *given))

    def stop(self, why: ARCPError) -> None:
        """Cancel the agent, once. If it is still running after the grace period, the job ends without it."""
        if self.phase is not RUNNING or self.stopping is not None:
            return
        self.stopping = why
        self.after(self.node.limits.cancel_grace, self.node.abandon, self)
        self._interrupt()

    def drop(self) -> None:
        """Stop the run without writing an end, because another node has the job or the store failed."""
        if self.phase is ENDED:
            return
        running = self.phase is RUNNING
        self.phase = ENDED
        self.outbox.clear()
        self._outbox_bytes = 0
        self._release_writers()
        for timer in self._timers:
            timer.cancel()
        self.node.remove_job(self)
        for waiter in self.waiters:
            if not waiter.done():
                waiter.cancel()
        if running:
            self._interrupt()

    def _interrupt(self) -> None:
        # If the agent's own task calls this, cancel later: an immediate cancellation could hit the runtime's own steps.
        if self.task is not None and self.task is asyncio.current_task():
            self.node.loop.call_soon(self._cancel)
        else:
            self._cancel()

    def _cancel(self) -> None:
        if self.task is not None and self.phase is not ENDING:
            self.task.cancel()


def _limit_error(limit: str, value: int) -> InternalError:
    return InternalError(
        "The job exceeded a limit of this runtime",
        retryable=False,
        details={"limit": limit, "value": value},
    )
