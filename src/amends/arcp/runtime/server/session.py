"""A session that has a connection on this node: its principal, its features and its subscriptions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from decimal import Decimal

import msgspec

from amends.arcp.leases import Budget
from amends.arcp.runtime.credentials.provider import without_secret
from amends.arcp.runtime.entries import JobEntry, SessionRow
from amends.arcp.runtime.jobs.outcome import readable_error, refusal
from amends.arcp.runtime.jobs.result_stream import is_streamed
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.arcp.runtime.server.delivery import Delivery
from amends.arcp.runtime.server.feeds import SUBMITTED, Feed
from amends.arcp.runtime.server.session_log import Attached, Detached, QueuedEvent, Subscription
from amends.arcp.transports import Connection
from amends.arcp.wire.messages import Accepted
from amends.errors.arcp import ARCPError, JobNotFoundError
from amends.stores import StoreError

__all__ = ["Session"]

_log = logging.getLogger("amends.arcp")
_OPTIONAL_KINDS = frozenset({"progress", "result_chunk"})
"""Events that are sent only to sessions that negotiated the feature of the same name (6.2)."""


_read_accepted = msgspec.json.Decoder(Accepted, float_hook=Decimal).decode


class Session(Delivery):
    """One session while it has a connection on this node."""

    __slots__ = (
        "_assembles",
        "_detach",
        "_excluded",
        "_lagging",
        "acked",
        "features",
        "feeds",
        "last_ping",
        "last_received",
        "principal",
        "renewed",
        "revision",
        "row",
        "sdk",
        "unconfirmed",
        "writer",
    )

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
        features = frozenset(row.features)
        self.features = features
        self.feeds: dict[str, Feed] = {}
        self.acked = 0
        self.sdk = ""
        """The published SDK that the client is of (python, typescript), if it is one: it does not read all that is valid."""
        self.unconfirmed = False
        """Whether the client has not sent a message since it got its new resume token."""
        self.last_received = self.last_ping = self.last_sent
        self.writer: asyncio.Task[None] | None = None
        self._detach = detach
        self._excluded = _OPTIONAL_KINDS - features
        self._lagging = False
        """Whether a status event reported that the client acknowledges too slowly."""
        self._assembles = "result_chunk" not in features

    # -- subscriptions

    def is_subscribed(self, feed: Subscription) -> bool:
        """Whether this is the session's current subscription to its job."""
        return self.feeds.get(feed.job_id) is feed

    def enqueue_event(
        self, feed: Subscription, position: int, entry: JobEntry, *, hides_credentials: bool
    ) -> None:
        """Queue an entry of a job's log, to be sent under the session's next event number."""
        if self.excludes(entry):
            return
        if hides_credentials:
            entry = without_secret(entry)
        if entry.kind != "event":
            self.end_subscription(feed)
        self._queue.append(QueuedEvent(feed, position, entry, self.must_assemble(entry)))
        self._bytes += len(entry.payload)
        self._schedule_flush()
        if not self._lagging and self._lag > self.jobs.limits.unacknowledged:
            self._report_lag(feed.job_id)

    def excludes(self, entry: JobEntry) -> bool:
        """Whether an event belongs to a feature that this session did not negotiate."""
        return entry.label in self._excluded

    def encode_entry(self, job_id: str, trace: str, entry: JobEntry, number: int) -> bytes:
        """Encode an entry of a job's log as a message that this session's client reads."""
        if self.sdk:
            entry = readable_error(entry, self.sdk)
        return super().encode_entry(job_id, trace, entry, number)

    @property
    def amounts_as_text(self) -> bool:
        """Whether the client reads budgets only as text, though 7.1 has numbers."""
        return self.sdk == "python"

    def must_assemble(self, entry: JobEntry) -> bool:
        """Whether this entry ends a streamed result that this session gets as a whole."""
        return self._assembles and is_streamed(entry)

    def end_subscription(self, feed: Subscription) -> None:
        """Remove the subscription to a job that has ended."""
        current = self.feeds.pop(feed.job_id, None)
        if current is not None:
            current.stop()
        if isinstance(feed, Feed) and feed is not current:
            feed.stop()

    def subscribe(self, feed: Feed, *, recorded: bool = False) -> None:
        """Subscribe to a job. `recorded`: the subscription is already in the session's log."""
        if self.closing:
            return
        old = self.feeds.get(feed.job_id)
        if old is not None:
            old.stop()
        self.feeds[feed.job_id] = feed
        if not recorded:
            self._queue.append(Attached(feed.job_id, feed.numbered, feed.mode))
            self._schedule_flush()

    def mark_submitted(self, feed: Feed) -> None:
        """Record that a session that is subscribed to a job has also submitted it."""
        feed.mode |= SUBMITTED
        self._queue.append(Attached(feed.job_id, -1, feed.mode))
        self._schedule_flush()

    def follow_child(self, accepted: bytes) -> None:
        """Subscribe to a job that was delegated by a job of this session (10.1)."""
        child = _read_accepted(accepted)
        if not self.closing and child.job_id not in self.feeds:
            feed = Feed(self, child.job_id, child.trace_id or "", 2, SUBMITTED)
            self.subscribe(feed)
            payload: Accepted | msgspec.Raw = msgspec.Raw(accepted)
            if child.budget and self.amounts_as_text:
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
            self._queue.append(Detached(job_id))
            self._schedule_flush()

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
        if self.closing:
            return
        self.stop()
        try:
            await self._detach(self)
        except StoreError:
            _log.warning("session %s could not be stored as detached: the store failed", self.id)
        if self.writer is not None and self.writer is not asyncio.current_task():
            self.writer.cancel()
        await self.connection.close(1001, "")

    def stop(self) -> None:
        """End all subscriptions and drop all queued messages, because the connection has ended."""
        for feed in self.feeds.values():
            feed.stop()
        self.feeds.clear()
        self.stop_sending()
