"""A session with a connection: whose it is, what it can, and which jobs it listens to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from amends.arcp.runtime.credentials import discreet
from amends.arcp.runtime.delivery import Outgoing
from amends.arcp.runtime.entries import JobEntry
from amends.arcp.runtime.feeds import SUBMITTED, Feed
from amends.arcp.runtime.refusal import refusal
from amends.arcp.runtime.result_assembly import streamed
from amends.arcp.runtime.session_log import Attached
from amends.arcp.transports import Connection
from amends.arcp.wire.messages import Accepted
from amends.errors.arcp import JobNotFoundError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node

__all__ = ["Session"]

_DROPPED_KINDS = {"progress": b'{"kind":"progress"', "result_chunk": b'{"kind":"result_chunk"'}
"""Events nobody may be sent who did not name their feature (6.2)."""


class Session(Outgoing):
    """One session while it has a connection on this node."""

    __slots__ = (
        "_refused_kinds",
        "_whole",
        "acked",
        "features",
        "feeds",
        "heard",
        "pinged",
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
        """The client has not shown yet that it has its new token."""
        self.row: Any = None
        self.revision = 0
        self.heard = self.pinged = self.sent
        self.writer: asyncio.Task[None] | None = None
        self._refused_kinds = tuple(
            start for feature, start in _DROPPED_KINDS.items() if feature not in features
        )
        self._whole = "result_chunk" not in features

    # -- listening to jobs

    def event(self, feed: Feed, number: int, mark: JobEntry) -> None:
        """Send an entry of a job's log, under the session's next number."""
        if self.refuses(mark):
            return
        if feed.guarded:
            mark = discreet(mark)
        if mark.kind != "event":
            self.ended(feed)
            if self.parted(mark):
                self._parted += 1
        self._queue.append((feed, number, mark))
        self._bytes += len(mark.payload)
        self._ring()

    def refuses(self, mark: JobEntry) -> bool:
        """Whether an event belongs to a feature this session did not name."""
        return (
            bool(self._refused_kinds)
            and mark.kind == "event"
            and bytes(mark.payload).startswith(self._refused_kinds)
        )

    def parted(self, mark: JobEntry) -> bool:
        """Whether it is the end of a streamed result that this session has to be sent whole."""
        return self._whole and streamed(mark)

    def ended(self, feed: Feed) -> None:
        """The job has: there is nothing more to listen to."""
        self.feeds.pop(feed.job_id, None)
        feed.stop(self.node)

    def attach(self, feed: Feed, *, noted: bool = False) -> None:
        """Listen to a job from now on; `noted`: that was written down already."""
        if self.closing:
            return
        old = self.feeds.get(feed.job_id)
        if old is not None:
            old.stop(self.node)
        self.feeds[feed.job_id] = feed
        if not noted:
            self._queue.append(Attached(feed.job_id, feed.numbered, feed.mode))
            self._ring()

    def entitle(self, feed: Feed) -> None:
        """A session that listens to a job has now asked for it, too."""
        feed.mode |= SUBMITTED
        self._queue.append(Attached(feed.job_id, -1, feed.mode))
        self._ring()

    def adopt(self, accepted: bytes) -> None:
        """A job this session asked for has delegated: the session listens to the other one too (10.1)."""
        child = msgspec.json.decode(accepted, type=Accepted)
        if not self.closing and child.job_id not in self.feeds:
            feed = Feed(self, child.job_id, child.trace_id or "", 2, SUBMITTED)
            self.attach(feed)
            self.say("job.accepted", msgspec.Raw(accepted), job_id=child.job_id, trace=child.trace_id)
            feed.begin(self.node)

    def detach(self, job_id: str) -> None:
        """There is nothing left to listen to: the job is no longer kept. Whoever waits for its end is told."""
        feed = self.feeds.get(job_id)
        if feed is not None:
            self.leave(job_id)
            self.say("job.error", refusal(JobNotFoundError(), of_job=True), job_id=job_id, trace=feed.trace)

    def leave(self, job_id: str) -> None:
        """Listen to it no more."""
        feed = self.feeds.pop(job_id, None)
        if feed is not None:
            feed.stop(self.node)
            self._queue.append(job_id)
            self._ring()

    # -- what its client has

    def acknowledge(self, number: int) -> None:
        """The client has processed everything up to this number."""
        if self.acked < number < self.next_event:
            self.acked = number

    async def trim(self) -> None:
        """Write down where everything stands, and forget what was acknowledged or is too old to be replayed."""
        # What waits to be numbered counts as not sent, also of jobs whose end is among it.
        waiting = [item[0] for item in self._queue if item.__class__ is tuple]
        needed = max(self.acked + 1, self.next_event - self.node.limits.events_kept)
        await self._numbering.trim(self.next_event, [*self.feeds.values(), *waiting], needed)

    async def drop(self) -> None:
        """Part from the connection; the session can be resumed."""
        await self.node.drop(self)

    def stop(self) -> None:
        """The connection is over: listen to nothing, and hold nobody up."""
        for feed in self.feeds.values():
            feed.stop(self.node)
        self.feeds.clear()
        self.silence()
