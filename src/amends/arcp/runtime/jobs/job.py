"""
A job that runs on this node: its position in its log, the events that are not written yet, and its subscribers.

Events are written to the store before any subscriber gets them. An agent's calls append events to an outbox. If no write
is in progress, the call starts one; it repeats until the outbox is empty, so one commit contains many events. A write
that finds another node's entry at its position means that the job was taken over: the run stops here without an end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from amends.arcp.leases import Budget, Lease
from amends.arcp.runtime.agents import Agent
from amends.arcp.runtime.entries import JobEntry, JobSpec, encode
from amends.arcp.runtime.jobs.outcome import Outcome
from amends.arcp.runtime.jobs.steps import JobSteps
from amends.arcp.runtime.ledger import Ledger
from amends.arcp.runtime.limits import Limits
from amends.arcp.runtime.tasks import Tasks
from amends.arcp.wire import now_text
from amends.arcp.wire.messages import Event
from amends.core.decision import State
from amends.errors.arcp import ARCPError, InvalidRequestError
from amends.logs import logger
from amends.stores import ConflictError, StoreError, StoreUnavailableError
from amends.stores.signal import Signal

__all__ = ["ENDED", "ENDING", "RUNNING", "Follower", "Host", "Job"]

RUNNING, ENDING, ENDED = "running", "ending", "ended"

_log = logger("amends.arcp")
_PAUSE = 0.05
_NO_LEASE, _NO_BUDGET = Lease(), Budget()


class Host(Protocol):
    """What a job uses of the node that runs it."""

    limits: Limits
    ledger: Ledger
    tasks: Tasks

    def remove(self, job: Job) -> None:
        """Remove a job that has ended or belongs to another node."""

    def abandon(self, job: Job) -> None:
        """End a job whose agent did not stop within the grace period."""


class Job:
    """One run of a job, on the node that owns it."""

    def __init__(self, host: Host, spec: JobSpec, agent: Agent, *, run: int, epoch: int, last: int) -> None:
        self.host = host
        self.node = host.ledger.node
        """The id of the node that runs the job."""
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
        self.followers: list[Follower] = []
        self.outbox: list[JobEntry] = []
        self.events = 0
        self.children: dict[str, None] = {}
        self._steps: JobSteps | None = None
        self.tries = State()
        """The calls of the agent in this run, where a failed one may be repeated."""
        self.credentials: list[dict[str, object]] | None = None
        self.secrets: set[str] = set()
        """Every value that its credentials have had."""
        self.waiters: list[asyncio.Future[JobEntry]] = []
        self._signalled: Signal | None = None
        self._flushing = False
        self._outbox_bytes = 0
        self._written = asyncio.Event()
        """Set after a write, and when no further one will follow."""
        self._timers: list[asyncio.TimerHandle] = []
        self._wall_offset = 0.0
        self.set_clock(spec.created)

    def give_credentials(self, credentials: list[dict[str, object]]) -> None:
        """Replace the credentials that the agent and the submitter see."""
        self.credentials = credentials
        self.secrets.update(str(each["value"]) for each in credentials)

    @property
    def steps(self) -> JobSteps:
        """The durable steps of this run."""
        if self._steps is None:
            self._steps = JobSteps(self, self.host.ledger)
        return self._steps

    @property
    def signalled(self) -> Signal:
        """Notified when a signal was sent to the job."""
        if self._signalled is None:
            self._signalled = Signal()
        return self._signalled

    @property
    def is_running(self) -> bool:
        """Whether the run has not begun to end."""
        return self.phase is RUNNING

    # -- the lease's clock

    def set_clock(self, latest: float) -> None:
        """
        Start the clock of the lease; `latest` is the latest time in the job's log.

        The rest of the lease is the smaller of what is left by the log and by this machine's clock. From here on it is
        measured by the event loop's clock, so that setting the machine's clock changes nothing.
        """
        self._wall_offset = max(time.time(), latest) - self.host.tasks.loop.time()

    def now(self) -> float:
        """Return the time by which the lease is checked, in seconds since the epoch."""
        return self._wall_offset + self.host.tasks.loop.time()

    # -- events

    def emit(self, kind: str, body: dict[str, object]) -> None:
        """
        Queue an event to be written to the job's log. Events after the end of the run are dropped.

        Raises:
            InvalidRequestError: the job has exceeded `Limits.events_per_job` or `Limits.event_bytes`.

        """
        if self.phase is RUNNING:
            self._put(self.event_entry(kind, body))

    def event_entry(self, kind: str, body: dict[str, object]) -> JobEntry:
        """
        Create the entry of an event, and count it.

        Raises:
            InvalidRequestError: see `emit`.

        """
        limits = self.host.limits
        self.events += 1
        if self.events > limits.events_per_job:
            raise _limit_error("events_per_job", limits.events_per_job)
        payload = encode(Event(kind, now_text(), body, self.run if self.run > 1 else None))
        if len(payload) > limits.event_bytes:
            raise _limit_error("event_bytes", limits.event_bytes)
        return self.entry("event", payload, kind)

    def record_child(self, accepted: bytes) -> None:
        """Write to the log that this job delegated another one, for the sessions subscribed to this one."""
        self._put(self.entry("child", accepted))

    async def write_step(self, *entries: JobEntry) -> None:
        """
        Write entries together, and wait until they are stored.

        Raises:
            CancelledError: another node has the job.

        """
        if self.phase is ENDED:
            raise asyncio.CancelledError
        for entry in entries[:-1]:
            self.outbox.append(entry)
            self._outbox_bytes += len(entry.payload)
        self._put(entries[-1])
        while self.phase is not ENDED and (self._flushing or entries[-1] in self.outbox):
            await self._next_write()
        if self.phase is ENDED:
            raise asyncio.CancelledError

    def note_step(self, entry: JobEntry) -> None:
        """Write an entry soon, without waiting."""
        if self.phase is RUNNING:
            self._put(entry)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the node."""
        return self.host.tasks.loop

    def _put(self, entry: JobEntry) -> None:
        self.outbox.append(entry)
        self._outbox_bytes += len(entry.payload)
        if not self._flushing:
            self._flushing = True
            self.host.tasks.run_or_spawn(self._flush())

    def entry(self, kind: str, payload: bytes, label: str = "") -> JobEntry:
        """Create an entry of this run."""
        return JobEntry(kind, self.run, self.epoch, self.node, self.now(), msgspec.Raw(payload), label)

    async def wait_for_room(self) -> None:
        """Wait while the store or a subscribed session cannot keep up; `heartbeat` drops sessions that do not read."""
        limits = self.host.limits
        while len(self.outbox) >= limits.buffered or self._outbox_bytes > limits.buffered_bytes:
            await self._next_write()
        for follower in tuple(self.followers):
            if follower.full:
                await follower.wait_for_room()

    # -- writing

    async def _flush(self) -> None:
        try:
            while self.outbox and self.phase is not ENDED:
                entries, self.outbox = self.outbox, []
                self._outbox_bytes = 0
                write = partial(self.host.ledger.write, self.spec, entries, self.last)
                if not await self._persist(write, len(entries)):
                    return
                self._publish(entries)
                self._written.set()
        finally:
            self._flushing = False
            self._written.set()

    async def _next_write(self) -> None:
        self._written.clear()
        await self._written.wait()

    async def end(self, outcome: Outcome) -> bool:
        """Write the remaining events and the terminal entry. Returns False if the job was taken over."""
        self.phase = ENDING
        for timer in self._timers:
            timer.cancel()
        while self._flushing:
            await self._next_write()
        if self.phase is ENDED:
            return False
        entries = [*self.outbox, self.entry(outcome.kind, outcome.payload, outcome.label)]
        self.outbox = []
        ledger = self.host.ledger
        write = partial(ledger.end, self.spec, entries, self.last, outcome.status, self.node)
        written = await self._persist(write, len(entries))
        if written:
            self._publish(entries)
            self.phase = ENDED
            for waiter in self.waiters:
                if not waiter.done():
                    waiter.set_result(entries[-1])
        return written

    def _publish(self, entries: list[JobEntry]) -> None:
        first = self.last + 1
        self.last += len(entries)
        for follower in tuple(self.followers):
            follower.push(first, entries)

    async def _persist(self, write: Callable[[], Awaitable[None]], count: int) -> bool:
        """
        Write `count` entries. Returns False, and drops the job, if the job was taken over or the store failed.

        After a conflict, the log shows whether an earlier try, whose answer was lost, had succeeded.
        """
        give_up = 0.0
        while True:
            try:
                await write()
                return True
            except ConflictError:
                if await self._is_own_write(count):
                    return True
                break
            except StoreUnavailableError:
                now = self.host.tasks.loop.time()
                give_up = give_up or now + self.host.limits.node_lease
                if now > give_up:
                    _log.warning(
                        "job %s is dropped by this node: the store has not answered for %s s",
                        self.spec.job_id,
                        self.host.limits.node_lease,
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
            tail = await self.host.ledger.tail(self.spec.job_id)
        except StoreError:
            return False
        return (
            tail is not None
            and tail[0] == self.last + count
            and (tail[1].epoch, tail[1].node) == (self.epoch, self.node)
        )

    # -- stopping

    def after(self, seconds: float, act: Callable[..., Any], *given: object) -> None:
        """Call a function after some seconds, unless the job has ended by then."""
        self._timers.append(self.host.tasks.loop.call_later(seconds, act, *given))

    def stop(self, why: ARCPError) -> None:
        """Cancel the agent, once. If it is still running after the grace period, the job ends without it."""
        if self.phase is not RUNNING or self.stopping is not None:
            return
        self.stopping = why
        self.after(self.host.limits.cancel_grace, self.host.abandon, self)
        self._interrupt()

    def drop(self) -> None:
        """Stop the run without writing an end, because another node has the job or the store failed."""
        if self.phase is ENDED:
            return
        running = self.phase is RUNNING
        self.phase = ENDED
        self.outbox.clear()
        self._outbox_bytes = 0
        self._written.set()
        for timer in self._timers:
            timer.cancel()
        self.host.remove(self)
        for waiter in self.waiters:
            if not waiter.done():
                waiter.cancel()
        if running:
            self._interrupt()

    def _interrupt(self) -> None:
        # If the agent's own task calls this, cancel later: an immediate cancellation could hit the runtime's own steps.
        if self.task is not None and self.task is asyncio.current_task():
            self.host.tasks.loop.call_soon(self._cancel)
        else:
            self._cancel()

    def _cancel(self) -> None:
        if self.task is not None and self.phase is not ENDING:
            self.task.cancel()


def _limit_error(limit: str, value: int) -> InvalidRequestError:
    return InvalidRequestError(
        "The job exceeded a limit of this runtime",
        details={"limit": limit, "value": value},
    )


class Follower(Protocol):
    """A subscription to a job that runs on this node."""

    @property
    def full(self) -> bool:
        """Whether it cannot keep up."""

    async def wait_for_room(self) -> None:
        """Wait until it is no longer full."""

    def push(self, first: int, entries: Sequence[JobEntry]) -> None:
        """Take entries that were written; `first` is the number of the first one in the job's log."""

    def begin(self) -> None:
        """Continue with the job's log, because the job has left this node or has left its queue."""
