"""
A session with a connection: what it is sent, in one order, numbered before it leaves.

One task per session takes what has come together, writes the order of its events into the session's log, then sends.
So whoever resumes the session, on whatever node, gets the same events under the same numbers. The events themselves
stand in the jobs' logs; the session's log points there. What waits here is bounded: beyond `buffered` agents are
slowed and requests wait; a reader that takes nothing at all loses its connection, and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from amends.arcp.runtime.entries import FRAME_TYPES, Batch, Mark, encode, session_log
from amends.arcp.runtime.feeds import SUBMITTED, Feed
from amends.arcp.runtime.steps import Steps, done_at_once
from amends.arcp.transports import Connection, ConnectionLost
from amends.arcp.wire import VERSION, Envelope, message_id, write
from amends.arcp.wire.messages import Accepted
from amends.stores import ConflictError, StoreError

if TYPE_CHECKING:
    from amends.arcp.runtime.job import Job
    from amends.arcp.runtime.node import Node

__all__ = ["Session", "snapshot"]

_log = logging.getLogger("amends.arcp")

_SNAPSHOT_EVERY = 128
"""Entries of a session's log between two that the log can be trimmed to."""

_DROPPED_KINDS = {"progress": b'{"kind":"progress"', "result_chunk": b'{"kind":"result_chunk"'}
"""Events nobody may be sent who did not name their feature (6.2)."""


class _Attached(NamedTuple):
    """In the order of things to be sent: from here on the job is listened to."""

    job_id: str
    start: int
    mode: int


class Session:
    """One session while it has a connection on this node."""

    __slots__ = (
        "_bytes",
        "_claimed",
        "_flushes",
        "_flying",
        "_held",
        "_kept_from",
        "_log",
        "_log_end",
        "_queue",
        "_refused_kinds",
        "_rooms",
        "_since_snapshot",
        "_snapshots",
        "_soon",
        "_wake",
        "acked",
        "closing",
        "connection",
        "features",
        "feeds",
        "heard",
        "id",
        "newborn",
        "next_event",
        "node",
        "pinged",
        "principal",
        "revision",
        "row",
        "sending",
        "sent",
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
        self.node = node
        self.id = id
        self.principal = principal
        self.features = features
        self.connection = connection
        self.next_event = next_event
        self.feeds: dict[str, Feed] = {}
        self.acked = 0
        self.closing = False
        self.unconfirmed = False
        """The client has not shown yet that it has its new token."""
        self.row: Any = None
        self.revision = 0
        self.heard = self.sent = self.pinged = node.loop.time()
        self.sending: float | None = None
        """Since when a message waits to be taken."""
        self.writer: asyncio.Task[None] | None = None
        self._log = node.store.log(session_log(id))
        self._log_end = log_end
        self._queue: list[Any] = []
        self._bytes = 0
        self._flying = 0
        self._wake: asyncio.Future[None] | None = None
        self._rooms: list[asyncio.Future[None]] = []
        self._flushes: list[asyncio.Future[None]] = []
        self._snapshots: list[tuple[int, int]] = [(next_event, log_end)] if log_end else []
        self._since_snapshot = 0
        self._soon = False
        self._held = False
        self._claimed = False
        self.newborn: Job | None = None
        """A job that was begun in this step of the event loop, and is not written down."""
        self._kept_from = 0
        self._refused_kinds = tuple(
            start for feature, start in _DROPPED_KINDS.items() if feature not in features
        )

    # -- what is to be sent

    def post(self, frame: bytes) -> None:
        """Send a message that has no number."""
        if self.closing:
            return
        self._queue.append(frame)
        self._bytes += len(frame)
        self._ring()

    def say(self, type: str, payload: Any, *, job_id: str | None = None, trace: str | None = None) -> None:
        """The same, made here."""
        self.post(self.written(type, payload, job_id, trace))

    def written(self, type: str, payload: Any, job_id: str | None, trace: str | None) -> bytes:
        """A message of this session."""
        return write(Envelope(VERSION, message_id(), type, self.id, trace, job_id, None, payload))

    def event(self, feed: Feed, number: int, mark: Mark) -> None:
        """Send an entry of a job's log, under the session's next number."""
        if self.refuses(mark):
            return
        if mark.kind != "event":
            self.ended(feed)
        self._queue.append((feed, number, mark))
        self._bytes += len(mark.payload)
        self._ring()

    def refuses(self, mark: Mark) -> bool:
        """Whether an event belongs to a feature this session did not name."""
        return (
            bool(self._refused_kinds)
            and mark.kind == "event"
            and bytes(mark.payload).startswith(self._refused_kinds)
        )

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
            self._queue.append(_Attached(feed.job_id, feed.numbered, feed.mode))
            self._ring()

    def entitle(self, feed: Feed) -> None:
        """A session that listens to a job has now asked for it, too."""
        feed.mode |= SUBMITTED
        self._queue.append(_Attached(feed.job_id, -1, feed.mode))
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
        """Listen to it no more."""
        feed = self.feeds.pop(job_id, None)
        if feed is not None:
            feed.stop(self.node)
            self._queue.append(job_id)
            self._ring()

    # -- how much waits

    @property
    def full(self) -> bool:
        """Whether more waits for the connection than should."""
        limits = self.node.limits
        return len(self._queue) + self._flying >= limits.buffered or self._bytes >= limits.buffered_bytes

    async def room(self) -> None:
        """Wait until there is room, or nobody to wait for."""
        while self.full and not self.closing:
            waiter = self.node.loop.create_future()
            self._rooms.append(waiter)
            await waiter

    async def flushed(self, within: float = 5.0) -> None:
        """Wait until everything that was to be sent has been, but not for ever."""
        if self._queue or self._flying:
            waiter = self.node.loop.create_future()
            self._flushes.append(waiter)
            await asyncio.wait([waiter], timeout=within)

    def _ring(self) -> None:
        if not self.node.prompt:
            self._wake_writer()
        elif not self._soon and not self._held:
            self._soon = True
            self.node.loop.call_soon(self.flush)

    def _wake_writer(self) -> None:
        if self._wake is not None and not self._wake.done() and not self._claimed:
            self._wake.set_result(None)

    def _make_room(self) -> None:
        if self._rooms:
            rooms, self._rooms = self._rooms, []
            _release(rooms)

    # -- sending it

    async def write(self) -> None:
        """Number, write down and send what comes, until the connection is gone or another node has the session."""
        try:
            while not self.closing:
                if not self._queue or self._claimed:
                    self._wake = self.node.loop.create_future()
                    await self._wake
                    self._wake = None
                    continue
                items, self._queue = self._queue, []
                self._bytes = 0
                await self._number(items)
                await self.send(self._frames(items))
                if self._since_snapshot >= _SNAPSHOT_EVERY:
                    await self._trim()
                self._make_room()
                if self._flushes and not self._queue:
                    flushes, self._flushes = self._flushes, []
                    _release(flushes)
        except ConnectionLost:
            pass
        except ConflictError:
            _log.info("session %s goes on at another connection", self.id)
        except StoreError:
            _log.exception("session %s loses its connection: the store fails", self.id)
        finally:
            await self.node.drop(self)

    def hold(self) -> None:
        """A request is looked at: what it and those behind it have to say is put together until somebody waits."""
        self._held = self.node.prompt

    def go_on(self) -> None:
        """Whoever held it has to wait: what there is goes out, and a job that was begun is written down."""
        self._held = False
        job, self.newborn = self.newborn, None
        if job is not None:
            job.write_down()
        if self._queue:
            self.flush()

    def flush(self) -> None:
        """Do the same at once, where neither store nor connection makes anybody wait; else leave it to the task."""
        self._soon = False
        if not self._queue or self._wake is None or self._wake.done() or self._held:
            return
        if self.closing or not self.node.prompt or self._since_snapshot >= _SNAPSHOT_EVERY:
            self._wake_writer()
            return
        items, self._queue = self._queue, []
        self._bytes = 0
        try:
            done_at_once(self._number(items))
        except ConflictError:
            self.node.spawn(self.node.drop(self))
            return
        frames = self._frames(items)
        if not frames:
            return
        if self.connection.post(frames):
            self.sent = self.node.loop.time()
            self._make_room()
            flushes, self._flushes = self._flushes, []
            _release(flushes)
        else:
            # They have their numbers: as they are they go first.
            self._queue[:0] = frames
            self._bytes += sum(map(len, frames))
            self._wake_writer()

    async def send(self, frames: list[bytes]) -> None:
        """Hand frames to the connection; the heartbeat sees to it that this does not last for ever."""
        if not frames:
            return
        self.sending = self.node.loop.time()
        self._flying = len(frames)
        try:
            if len(frames) == 1:
                await self.connection.send(frames[0])
            else:
                await self.connection.send_all(frames)
        finally:
            self._flying = 0
            self.sent = self.node.loop.time()
            self.sending = None

    async def _number(self, items: list[Any]) -> None:
        """Write down the order of what is about to be sent."""
        events: list[tuple[str, int, bool]] = []
        attached: list[tuple[str, int, int]] = []
        detached: list[str] = []
        number = self.next_event
        for item in items:
            kind: type = item.__class__
            if kind is tuple:
                feed, entry, mark = item
                events.append((feed.job_id, entry, mark.kind != "event"))
                feed.numbered = entry + 1
            elif kind is _Attached or kind is str:
                if events or (kind is str and attached):
                    # An entry is read in this order: who no longer listens, who does, what was said.
                    await self._note(Batch(number, tuple(events), tuple(attached), tuple(detached)))
                    number += len(events)
                    events, attached, detached = [], [], []
                if kind is str:
                    detached.append(item)
                else:
                    attached.append(item)
        if events or attached or detached:
            await self._note(Batch(number, tuple(events), tuple(attached), tuple(detached)))

    async def _note(self, entry: Batch) -> None:
        self._log_end = await self._log.append(encode(entry), last=self._log_end)
        self._since_snapshot += 1

    def _frames(self, items: list[Any]) -> list[bytes]:
        frames: list[bytes] = []
        for item in items:
            if item.__class__ is bytes:
                frames.append(item)
            elif item.__class__ is tuple:
                feed, _, mark = item
                frames.append(self.framed(feed.job_id, feed.trace, mark, self.next_event))
                self.next_event += 1
        return frames

    def framed(self, job_id: str, trace: str, mark: Mark, number: int) -> bytes:
        """An entry of a job's log as this session is sent it."""
        return write(
            Envelope(
                VERSION, message_id(), FRAME_TYPES[mark.kind], self.id, trace, job_id, number, mark.payload
            )
        )

    # -- numbering in somebody else's transaction

    @property
    def speaking(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._queue)

    def claim(self) -> bool:
        """
        Take the right to number, for a job that writes its entries and their numbers in one transaction.

        Given while nobody else numbers, on stores where a transaction is worth a wait. `noted` or `unclaim` ends it.
        """
        idle = self._wake is not None and not self._wake.done() and not self._queue
        if not idle or self.closing or self._claimed or not self.node.joins:
            return False
        self._claimed = True
        return True

    def note(self, steps: Steps, entry: Batch) -> None:
        """Number it there."""
        steps.append(self._log.name, encode(entry), last=self._log_end)

    def noted(self, frames: list[bytes], events: int) -> None:
        """It was written: send it, before whatever has come since."""
        self._log_end += 1
        self._since_snapshot += 1
        self.next_event += events
        if not self.closing:
            self._queue[:0] = frames
            self._bytes += sum(map(len, frames))
        self.unclaim()

    def unclaim(self) -> None:
        """Whoever waits may number again."""
        self._claimed = False
        if self._queue:
            self._wake_writer()

    # -- forgetting what nobody will ask for

    def acknowledge(self, number: int) -> None:
        """The client has processed everything up to this number."""
        if self.acked < number < self.next_event:
            self.acked = number

    async def _trim(self) -> None:
        """Write a snapshot, and forget what lies before the newest one that leaves enough to replay."""
        # What waits to be numbered counts as not sent, also of jobs whose end is among it.
        waiting = [item[0] for item in self._queue if item.__class__ is tuple]
        entry = Batch(self.next_event, feeds=snapshot([*self.feeds.values(), *waiting]))
        self._log_end = await self._log.append(encode(entry), last=self._log_end)
        self._snapshots.append((self.next_event, self._log_end))
        self._since_snapshot = 0
        needed = max(self.acked + 1, self.next_event - self.node.limits.events_kept)
        found = bisect_right(self._snapshots, (needed, 1 << 62)) - 1
        if found > 0 or (found == 0 and self._snapshots[0][1] > self._kept_from):
            self._kept_from = self._snapshots[found][1]
            del self._snapshots[:found]
            await self._log.trim(self._kept_from)

    def stop(self) -> None:
        """The connection is over: listen to nothing, and hold nobody up."""
        self.closing = True
        for feed in self.feeds.values():
            feed.stop(self.node)
        self.feeds.clear()
        self._queue.clear()
        self._bytes = 0
        self._make_room()
        _release(self._flushes)
        self._claimed = False
        self._wake_writer()


def _release(waiters: Iterable[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)


def snapshot(feeds: Iterable[Feed]) -> tuple[tuple[str, int, int], ...]:
    """Where each job goes on."""
    return tuple({feed.job_id: (feed.job_id, feed.numbered, feed.mode) for feed in feeds}.values())
