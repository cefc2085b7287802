"""A session that has a connection on this node: its principal, its features and its subscriptions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from amends.arcp.runtime.credentials.provider import without_secret
from amends.arcp.runtime.entries import JobEntry
from amends.arcp.runtime.jobs.result_assembly import is_streamed
from amends.arcp.runtime.server.delivery import Delivery
from amends.arcp.runtime.server.feeds import SUBMITTED, Feed
from amends.arcp.runtime.server.refusals import refusal
from amends.arcp.runtime.server.session_log import Attached
from amends.arcp.transports import Connection
from amends.arcp.wire.messages import Accepted
from amends.errors.arcp import JobNotFoundError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node

__all__ = ["Session"]

_DROPPED_KINDS = {"progress": b'{"kind":"progress"', "result_chunk": b'{"kind":"result_chunk"'}
"""Events that are sent only to sessions that negotiated the feature of the same name (6.2)."""


class Session(Delivery):
    """One session while it has a connection on this node."""

    __slots__ = (
        "_assembles",
        "_excluded_prefixes",
        "acked",
        "features",
        "feeds",
        "last_ping",
        "last_received",
        "principal",
        "revision",
        "row",
        "unconfirmed",
        "writer",
    )

    def __init__(
        self,
        node: Node,
        id: str,
        principal: str,
        features: frozenset[str],
        connection: Connection,
        *,
        next_event: int = 1,
        log_end: int = 0,
    ) -> None:
        super().__init__(node, id, connection, next_event, log_end)
        self.principal = principal
        self.features = features
        self.feeds: dict[str, Feed] = {}
        self.acked = 0
        self.unconfirmed = False
        """Whether the client has not sent a message since it got its new resume token."""
        self.row: Any = None
        self.revision = 0
        self.last_received = self.last_ping = self.last_sent
        self.writer: asyncio.Task[None] | None = None
        self._excluded_prefixes = tuple(
            start for feature, start in _DROPPED_KINDS.items() if feature not in features
        )
        self._assembles = "result_chunk" not in features

    # -- subscriptions

    def enqueue_event(self, feed: Feed, number: int, entry: JobEntry) -> None:
        """Queue an entry of a job's log, to be sent under the session's next event number."""
        if self.excludes(entry):
            return
        if feed.hides_credentials:
            entry = without_secret(entry)
        if entry.kind != "event":
            self.remove_feed(feed)
            if self.must_assemble(entry):
                self._unassembled += 1
        self._queue.append((feed, number, entry))
        self._bytes += len(entry.payload)
        self._schedule_flush()

    def excludes(self, entry: JobEntry) -> bool:
        """Whether an event belongs to a feature that this session did not negotiate."""
        return (
            bool(self._excluded_prefixes)
            and entry.kind == "event"
            and bytes(entry.payload).startswith(self._excluded_prefixes)
        )

    def must_assemble(self, entry: JobEntry) -> bool:
        """Whether this entry ends a streamed result that this session gets as a whole."""
        return self._assembles and is_streamed(entry)

    def remove_feed(self, feed: Feed) -> None:
        """Remove the feed of a job that has ended."""
        self.feeds.pop(feed.job_id, None)
        feed.stop(self.node)

    def subscribe(self, feed: Feed, *, recorded: bool = False) -> None:
        """Subscribe to a job. `recorded`: the subscription is already in the session's log."""
        if self.closing:
            return
        old = self.feeds.get(feed.job_id)
        if old is not None:
            old.stop(self.node)
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
        child = msgspec.json.decode(accepted, type=Accepted)
        if not self.closing and child.job_id not in self.feeds:
            feed = Feed(self, child.job_id, child.trace_id or "", 2, SUBMITTED)
            self.subscribe(feed)
            self.send_message(
                "job.accepted", msgspec.Raw(accepted), job_id=child.job_id, trace=child.trace_id
            )
            feed.begin(self.node)

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
            feed.stop(self.node)
            self._queue.append(job_id)
            self._schedule_flush()

    # -- acknowledged events

    def acknowledge(self, number: int) -> None:
        """Record that the client has processed all events up to this number."""
        if self.acked < number < self.next_event:
            self.acked = number

    async def trim(self) -> None:
        """Write a snapshot to the session's log, and remove events that were acknowledged or exceed `events_kept`."""
        # Events in the queue have no number yet, so the snapshot needs their feeds, also of jobs that have ended.
        waiting = [item[0] for item in self._queue if item.__class__ is tuple]
        needed = max(self.acked + 1, self.next_event - self.node.limits.events_kept)
        await self._session_log.trim(self.next_event, [*self.feeds.values(), *waiting], needed)

    async def drop(self) -> None:
        """Detach the session from its connection; it can be resumed."""
        await self.node.drop(self)

    def stop(self) -> None:
        """End all subscriptions and drop all queued messages, because the connection has ended."""
        for feed in self.feeds.values():
            feed.stop(self.node)
        self.feeds.clear()
        self.stop_sending()
