"""
A session that has a connection on this node: its principal, its features, and its subscriptions to jobs.

A subscription is a `Feed`: which entry of the job's log comes next, and how entries reach the session. While the job runs on
this node, its commits push the entries to the feed (*live*), without a task. A task reads entries from the log that were
written earlier or by another node, and makes the feed live when it catches up with a job that runs here. A job that waits in
the queue of an exclusive store needs no task, because only this node can start it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from decimal import Decimal

import msgspec

from amends.arcp.leases import Budget
from amends.arcp.runtime.credentials.provider import without_secret
from amends.arcp.runtime.entries import FRAME_TYPES, JobEntry, SessionRow, job_log
from amends.arcp.runtime.jobs.outcome import refusal
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.arcp.runtime.ledger import read_entry
from amends.arcp.runtime.server.delivery import Attached, Delivery, Detached, QueuedEvent, Subscription
from amends.arcp.transports import Connection
from amends.arcp.wire.messages import Accepted
from amends.errors.arcp import ARCPError, JobNotFoundError
from amends.logs import logger
from amends.stores import StoreError
from amends.stores.signal import Signal

__all__ = ["OUTCOME", "SUBMITTED", "Feed", "Session"]

_log = logger("amends.arcp")

SUBMITTED = 1
"""The session submitted the job (or repeated its key), and may cancel it."""
OUTCOME = 2
"""Send only the end of the run and the chunks of its result, as the answer to a repeated key."""

_FASTEST, _SLOWEST = 0.02, 0.5
_MISSED_SIGNAL = 5.0
"""Seconds between reads on a store that signals every entry, for signals that were lost with a connection."""


class Feed(Subscription):
    """One session's subscription to one job."""

    def __init__(self, session: Session, job_id: str, trace: str, start: int, mode: int) -> None:
        super().__init__(job_id, trace, start, mode)
        self.session = session
        self.next = start
        """The number of the next entry to push."""
        self.hides_credentials = False
        """Whether the job belongs to another principal, so that credentials are removed from its events."""
        self._jobs = session.jobs
        self._live = False
        self._task: asyncio.Task[None] | None = None

    def begin(self, *, waiting: bool = False) -> None:
        """Start pushing entries, beginning with the stored ones. `waiting`: the job is known to be in its queue."""
        self._live = False
        if not self.session.is_subscribed(self):
            return
        if self._try_live():
            return
        if waiting and self._jobs.exclusive and self.job_id not in self._jobs:
            self._jobs.wait_in_queue(self.job_id, self)
        else:
            self._task = self._jobs.tasks.spawn(self._follow())

    def _try_live(self) -> bool:
        """Let the job push its entries, if it runs here and this feed has all entries so far."""
        job = self._jobs.get(self.job_id)
        if job is None or job.last + 1 != self.next:
            return False
        self._live = True
        job.followers.append(self)
        return True

    # -- entries of a job that runs on this node

    @property
    def full(self) -> bool:
        """Whether the session cannot keep up."""
        return self.session.full

    async def wait_for_room(self) -> None:
        """Wait until the session has room."""
        await self.session.wait_for_room()

    def push(self, first: int, entries: Sequence[JobEntry]) -> None:
        """Queue entries for the session; `first` is the number of the first one in the job's log."""
        self.next = first + len(entries)
        session = self.session
        for number, entry in enumerate(entries, first):
            if entry.kind in FRAME_TYPES and (not self.mode & OUTCOME or _belongs_to_outcome(entry)):
                session.enqueue_event(self, number, entry)
            elif entry.kind == "child" and self.mode == SUBMITTED:
                session.follow_child(entry.payload)

    def stop(self) -> None:
        """Stop pushing entries."""
        if self._live:
            self._live = False
            job = self._jobs.get(self.job_id)
            if job is not None and self in job.followers:
                job.followers.remove(self)
        if self._task is not None:
            self._task.cancel()
            self._task = None

    # -- entries that were written earlier, or by another node

    async def _follow(self) -> None:
        store = self._jobs.ledger.store
        try:
            if not store.traits.notifies:
                await self._read_log(None)
                return
            async with store.log(job_log(self.job_id)).watch() as signal:
                await self._read_log(signal)
        except Exception:  # noqa: BLE001 - the feed cannot continue, so the client has to resume the session
            _log.exception(
                "session %s: its connection is closed because job %s could not be followed",
                self.session.id,
                self.job_id,
            )
            # In a task of its own: dropping the session cancels this one.
            self._jobs.tasks.spawn(self.session.drop())

    async def _read_log(self, signal: Signal | None) -> None:
        pause, longest = _FASTEST, _SLOWEST if signal is None else _MISSED_SIGNAL
        while True:
            seen = 0 if signal is None else signal.count
            pushed = page = [] if signal is None else signal.entries(self.next)
            if not pushed:
                try:
                    page = await self._jobs.ledger.entries(self.job_id, self.next)
                except StoreError:
                    page = []
            for stored in page:
                entry = read_entry(stored.value)
                self.push(stored.seq, (entry,))
                if entry.ended and not self.session.is_subscribed(self):
                    # The session has removed the feed: this was the end of the job.
                    return
                await self.session.wait_for_room()
            if self._try_live():
                self._task = None
                return
            if page:
                pause = _FASTEST
            if not pushed and (len(page) > 1 or (page and signal is None)):
                continue
            if pause >= longest and await self._is_deleted():
                self.session.report_deleted(self.job_id)
                return
            if signal is None:
                await asyncio.sleep(pause)
            else:
                await signal.wait(seen, max(pause, _SLOWEST))
            pause = min(pause * 2, longest)

    async def _is_deleted(self) -> bool:
        """Whether the job is no longer in the store; False if the store does not answer."""
        try:
            return await self._jobs.ledger.is_deleted(self.job_id)
        except StoreError:
            return False


def _belongs_to_outcome(entry: JobEntry) -> bool:
    return entry.kind != "event" or entry.label == "result_chunk"


_OPTIONAL_KINDS = frozenset({"progress", "result_chunk"})
"""Events that are sent only to sessions that negotiated the feature of the same name (6.2)."""


_read_accepted = msgspec.json.Decoder(Accepted, float_hook=Decimal).decode


class Session(Delivery):
    """One session while it has a connection on this node."""

    def __init__(
        self,
        jobs: RunningJobs,
        id: str,
        row: SessionRow,
        connection: Connection,
        detach: Callable[[Session], Awaitable[None]],
        *,
        next_event: int = 1,
        log_end: int = 0,
    ) -> None:
        """`detach` is called once, when the session loses its connection."""
        super().__init__(jobs, id, connection, next_event, log_end)
        self.row = row
        self.revision = 0
        """The revision of the row in the store."""
        self.renewed = self.last_sent
        """When the row was last written, by the event loop's clock."""
        self.principal = row.principal
        self.features = frozenset(row.features)
        self.feeds: dict[str, Feed] = {}
        self.acked = 0
        self.unconfirmed = False
        """Whether the client has not sent a message since it got its new resume token."""
        self.last_received = self.last_ping = self.last_sent
        self.writer: asyncio.Task[None] | None = None
        self._detach = detach
        self._excluded = _OPTIONAL_KINDS - self.features
        self._lagging = False
        """Whether a status event reported that the client acknowledges too slowly."""
        self.assembles = "result_chunk" not in self.features

    # -- subscriptions

    def is_subscribed(self, feed: Feed) -> bool:
        """Whether this is the session's current subscription to its job."""
        return self.feeds.get(feed.job_id) is feed

    def enqueue_event(self, feed: Feed, position: int, entry: JobEntry) -> None:
        """Queue an entry of a job's log, to be sent under the session's next event number."""
        if entry.label in self._excluded:
            return
        if feed.hides_credentials:
            entry = without_secret(entry)
        if entry.kind != "event":
            for ended in {feed, self.feeds.pop(feed.job_id, feed)}:
                ended.stop()
        self.enqueue(QueuedEvent(feed, position, entry), len(entry.payload))
        if not self._lagging and self._lag > self.jobs.limits.unacknowledged:
            self._report_lag(feed.job_id)

    def subscribe(self, feed: Feed) -> None:
        """Subscribe to a job."""
        if self.closing:
            return
        old = self.feeds.get(feed.job_id)
        if old is not None:
            old.stop()
        self.feeds[feed.job_id] = feed
        self.enqueue(Attached(feed.job_id, feed.numbered, feed.mode), 0)

    def mark_submitted(self, feed: Feed) -> None:
        """Record that a session that is subscribed to a job has also submitted it."""
        feed.mode |= SUBMITTED
        self.enqueue(Attached(feed.job_id, -1, feed.mode), 0)

    def follow_child(self, accepted: bytes) -> None:
        """Subscribe to a job that was delegated by a job of this session (10.1)."""
        child = _read_accepted(accepted)
        if not self.closing and child.job_id not in self.feeds:
            feed = Feed(self, child.job_id, child.trace_id or "", 2, SUBMITTED)
            self.subscribe(feed)
            payload: Accepted | msgspec.Raw = msgspec.Raw(accepted)
            if child.budget and self.peer.amounts_as_text:
                child.budget = Budget.read(child.budget).counters()
                payload = child
            self.send_message("job.accepted", payload, job_id=child.job_id, trace=child.trace_id)
            feed.begin()

    def report_deleted(self, job_id: str) -> None:
        """End the subscription to a job that is no longer stored, with an error for clients that wait for its end."""
        feed = self.feeds.get(job_id)
        if feed is not None:
            self.unsubscribe(job_id)
            self.send_message(
                "job.error", refusal(JobNotFoundError(), of_job=True), job_id=job_id, trace=feed.trace
            )

    def unsubscribe(self, job_id: str) -> None:
        """End the subscription to a job."""
        feed = self.feeds.pop(job_id, None)
        if feed is not None:
            feed.stop()
            self.enqueue(Detached(job_id), 0)

    # -- acknowledged events

    def acknowledge(self, number: int) -> None:
        """Record that the client has processed all events up to this number."""
        if self.acked < number < self.next_event:
            self.acked = number
            if self._lag <= self.jobs.limits.unacknowledged // 2:
                self._lagging = False

    @property
    def _lag(self) -> int:
        """How many events the client has not acknowledged; 0 if it does not acknowledge at all."""
        return self.next_event - 1 + len(self._queue) - self.acked if "ack" in self.features else 0

    def _report_lag(self, job_id: str) -> None:
        """Report once, as a status of the job that is being sent, that the client acknowledges too slowly (6.5)."""
        job = self.jobs.get(job_id)
        if job is not None and job.is_running:
            self._lagging = True
            lag, limit = self._lag, self.jobs.limits.unacknowledged
            with suppress(ARCPError):
                message = f"{lag} events are not acknowledged; the limit is {limit}"
                job.emit("status", {"phase": "back_pressure", "message": message})

    async def trim(self) -> None:
        """Write a snapshot to the session's log, and remove events that were acknowledged or exceed `events_kept`."""
        # Events in the queue have no number yet, so the snapshot needs their feeds, also of jobs that have ended.
        waiting = [item.subscription for item in self._queue if isinstance(item, QueuedEvent)]
        needed = max(self.acked + 1, self.next_event - self.jobs.limits.events_kept)
        await self._session_log.trim(self.next_event, [*self.feeds.values(), *waiting], needed)

    async def drop(self) -> None:
        """Detach the session from its connection and close that; the session can be resumed."""
        if await self._leave_connection():
            await self.connection.close(1001, "")

    async def drop_soon(self) -> None:
        """Detach the session from its connection, and close that in the background: it takes seconds if the client is gone."""
        if await self._leave_connection():
            self.jobs.tasks.spawn(self.connection.close(1001, ""))

    async def _leave_connection(self) -> bool:
        """Detach the session from its connection. Returns False if it was detached before."""
        if self.closing:
            return False
        self.stop()
        try:
            await self._detach(self)
        except StoreError:
            _log.warning("session %s could not be stored as detached: the store failed", self.id)
        if self.writer is not None and self.writer is not asyncio.current_task():
            self.writer.cancel()
        return True

    def stop(self) -> None:
        """End all subscriptions and drop all queued messages, because the connection has ended."""
        for feed in self.feeds.values():
            feed.stop()
        self.feeds.clear()
        self.stop_sending()
