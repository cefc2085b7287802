"""
Delivery of messages to a session's connection, in one order, with events numbered before they are sent.

One task per session takes the queued messages, writes the order of the events to the session's log, and sends them. The log
holds the events in the order of their numbers, each a reference into a job's log, so a client that resumes the session on any
node gets the same events under the same numbers. From time to time a snapshot is appended, so that older entries whose events
were acknowledged can be removed.

The queue is bounded: beyond `Limits.buffered`, agents and requests wait. A client that stops reading loses its connection; its
session and its jobs go on.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from amends.arcp.runtime.entries import FRAME_TYPES, STREAMED, JobEntry, SessionEntry, encode, session_log
from amends.arcp.runtime.jobs.result_stream import with_whole_result
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.arcp.runtime.server.peers import SPECIFICATION, Peer, readable, with_ids
from amends.arcp.transports import Connection, ConnectionLost
from amends.arcp.wire import VERSION, Envelope, message_id, write
from amends.durable.batch import Batch, run_without_waiting
from amends.logs import logger
from amends.stores import ConflictError, Store, StoreError

__all__ = ["Attached", "Delivery", "Detached", "QueuedEvent", "SessionLog", "Subscription", "session_entries"]

_log = logger("amends.arcp")

_SNAPSHOT_EVERY = 128
"""Number of entries between two snapshots."""


@dataclass(eq=False)
class Subscription:
    """The position of a session in the log of a job."""

    job_id: str
    trace: str
    numbered: int
    """The number of the first entry that has no event number in the session yet."""
    mode: int


class QueuedEvent(msgspec.Struct, frozen=True):
    """An item in a session's queue: an entry of a job's log, to be sent under the session's next event number."""

    subscription: Subscription
    position: int
    """The number of the entry in the job's log."""
    entry: JobEntry


class Attached(msgspec.Struct, frozen=True, gc=False):
    """An item in a session's queue: the session subscribes to a job, or changes its mode."""

    job_id: str
    start: int
    mode: int


class Detached(msgspec.Struct, frozen=True, gc=False):
    """An item in a session's queue: a subscription ended before its job."""

    job_id: str


Item = bytes | QueuedEvent | Attached | Detached
"""An item in a session's queue; bytes are an encoded message without a number."""


class SessionLog:
    """The writing side of one session's log."""

    def __init__(self, store: Store, name: str, next_event: int, end: int) -> None:
        self._store = store
        self._log = store.log(name)
        self._end = end
        self._snapshots: list[tuple[int, int]] = [(next_event, end)] if end else []
        self._kept_from = 0
        self.since_snapshot = 0
        """Number of entries after the newest snapshot."""

    async def append(self, *entries: SessionEntry) -> None:
        """
        Write entries before their events are sent.

        Raises:
            ConflictError: the session was resumed on another connection.

        """
        steps = Batch()
        for number, entry in enumerate(entries, self._end):
            steps.append(self._log.name, encode(entry), last=number)
        await steps.commit(self._store)
        self._end += len(entries)
        self.since_snapshot += len(entries)

    async def trim(self, next_event: int, feeds: Iterable[Subscription], needed: int) -> None:
        """Write a snapshot, and remove the entries before the newest snapshot that still covers event `needed`."""
        await self.append(SessionEntry(next_event, feeds=_positions(feeds)))
        self._snapshots.append((next_event, self._end))
        self.since_snapshot = 0
        found = bisect_right(self._snapshots, (needed, 1 << 62)) - 1
        if found > 0 or (found == 0 and self._snapshots[0][1] > self._kept_from):
            self._kept_from = self._snapshots[found][1]
            del self._snapshots[:found]
            await self._log.trim(self._kept_from)


def session_entries(items: Sequence[Item], number: int) -> list[SessionEntry]:
    """Return the log entries for queued items; the first event gets the number `number`."""
    found: list[SessionEntry] = []
    events: list[tuple[str, int, bool]] = []
    attached: list[tuple[str, int, int]] = []
    detached: list[str] = []
    for item in items:
        if isinstance(item, QueuedEvent):
            events.append((item.subscription.job_id, item.position, item.entry.kind != "event"))
            item.subscription.numbered = item.position + 1
        elif isinstance(item, Attached | Detached):
            if events or (isinstance(item, Detached) and attached):
                # An entry is applied in this order: ended subscriptions, new subscriptions, events.
                found.append(SessionEntry(number, tuple(events), tuple(attached), tuple(detached)))
                number += len(events)
                events, attached, detached = [], [], []
            if isinstance(item, Detached):
                detached.append(item.job_id)
            else:
                attached.append((item.job_id, item.start, item.mode))
    if events or attached or detached:
        found.append(SessionEntry(number, tuple(events), tuple(attached), tuple(detached)))
    return found


def _positions(feeds: Iterable[Subscription]) -> tuple[tuple[str, int, int], ...]:
    """Return the position and mode of each feed for a snapshot."""
    return tuple({feed.job_id: (feed.job_id, feed.numbered, feed.mode) for feed in feeds}.values())


class Delivery(ABC):
    """The send queue of one session, its bounds, and the numbering of its events."""

    def __init__(
        self, jobs: RunningJobs, id: str, connection: Connection, next_event: int, log_end: int
    ) -> None:
        self.jobs = jobs
        self.id = id
        self.connection = connection
        self.next_event = next_event
        self.closing = False
        self.peer: Peer = SPECIFICATION
        """What the client's SDK reads differently."""
        self.assembles = False
        """Whether streamed results are sent as a whole, because the client did not negotiate `result_chunk`."""
        self._immediate = jobs.tasks.immediate
        self._loop = jobs.tasks.loop
        self.last_sent = self._loop.time()
        self.sending_since: float | None = None
        """Time since which a message has been waiting for the connection to accept it; None if none waits."""
        self._session_log = SessionLog(jobs.ledger.store, session_log(id), next_event, log_end)
        self._queue: list[Item] = []
        self._bytes = 0
        self._in_flight = 0
        self._wake = asyncio.Event()
        self._idle = False
        """Whether the writer task waits for messages."""
        self._sent = asyncio.Event()
        """Set when messages were sent, or will never be."""
        self._flush_scheduled = False

    @abstractmethod
    async def drop(self) -> None:
        """Detach the session from its connection."""

    @abstractmethod
    async def trim(self) -> None:
        """Remove entries of the session's log that can no longer be requested."""

    # -- the queue and its bounds

    def enqueue(self, item: Item, size: int) -> None:
        """Queue an encoded message without a number, or an item of the session's log."""
        if self.closing:
            return
        self._queue.append(item)
        self._bytes += size
        if not self._immediate:
            self._wake.set()
        elif not self._flush_scheduled:
            self.flush_soon()

    def flush_soon(self) -> None:
        """On a store that never waits: send what is queued in the next turn of the loop, with what is queued until then."""
        if self._immediate and not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)

    def send_message(
        self,
        type: str,
        payload: object,
        *,
        job_id: str | None = None,
        trace: str | None = None,
        id: str | None = None,
    ) -> None:
        """Encode and queue a message that has no number; `id` is its id if it must have a certain one."""
        if self.peer.payload_ids:
            payload = with_ids(payload, job_id)
        frame = write(Envelope(VERSION, id or message_id(), type, self.id, trace, job_id, None, payload))
        self.enqueue(frame, len(frame))

    @property
    def full(self) -> bool:
        """Whether the queue has reached `Limits.buffered` or `Limits.buffered_bytes`."""
        limits = self.jobs.limits
        return len(self._queue) + self._in_flight >= limits.buffered or self._bytes >= limits.buffered_bytes

    async def wait_for_room(self) -> None:
        """Wait until the queue has room or the session closes."""
        while self.full and not self.closing:
            self._sent.clear()
            await self._sent.wait()

    async def wait_until_flushed(self, within: float = 5.0) -> None:
        """Wait until all queued messages are sent, for at most `within` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while (self._queue or self._in_flight) and not self.closing:
                    self._sent.clear()
                    await self._sent.wait()

    # -- sending

    async def write(self) -> None:
        """Number, record and send messages until the connection ends or another node takes the session over."""
        try:
            while not self.closing:
                if not self._queue:
                    self._idle = True
                    self._wake.clear()
                    await self._wake.wait()
                    self._idle = False
                    continue
                items = self._take_queue()
                await self._number(items)
                await self.send(self._frames([await self._assembled(item) for item in items]))
                if self._session_log.since_snapshot >= _SNAPSHOT_EVERY:
                    await self.trim()
                self._sent.set()
        except ConnectionLost:
            pass
        except ConflictError:
            _log.info("session %s was resumed on another connection; this one is closed", self.id)
        except StoreError:
            _log.exception("session %s: its connection is closed because the store failed", self.id)
        finally:
            await self.drop()

    def _flush(self) -> None:
        """
        Send the queued messages now if the connection has room; else wake the writer. Only for stores that never wait.

        Without the switch to the writer's task an echo job takes 1 to 2 % less CPU; bench/arcp.py needs it.
        """
        self._flush_scheduled = False
        if not self._queue or not self._idle or self._wake.is_set():
            return
        if self._session_log.since_snapshot >= _SNAPSHOT_EVERY or (
            self.assembles and any(map(self._must_assemble, self._queue))
        ):
            self._wake.set()
            return
        items = self._take_queue()
        try:
            run_without_waiting(self._number(items))
        except ConflictError:
            self.jobs.tasks.spawn(self.drop())
            return
        frames = self._frames(items)
        if self.connection.post(frames):
            self.last_sent = self._loop.time()
            self._sent.set()
        else:
            # These frames are numbered already, so they stay in front.
            self._queue[:0] = frames
            self._bytes += sum(map(len, frames))
            self._wake.set()

    def _take_queue(self) -> list[Item]:
        items, self._queue = self._queue, []
        self._bytes = 0
        return items

    async def send(self, frames: list[bytes]) -> None:
        """Send frames over the connection; `heartbeat` closes a connection that does not accept them in time."""
        if not frames:
            return
        self.sending_since = self._loop.time()
        self._in_flight = len(frames)
        try:
            await self.connection.send_all(frames)
        finally:
            self._in_flight = 0
            self.last_sent = self._loop.time()
            self.sending_since = None

    async def _number(self, items: Sequence[Item]) -> None:
        """Write the numbers of the events in `items` to the session's log."""
        if entries := session_entries(items, self.next_event):
            await self._session_log.append(*entries)

    def _must_assemble(self, item: Item) -> bool:
        return self.assembles and isinstance(item, QueuedEvent) and item.entry.label == STREAMED

    async def _assembled(self, item: Item) -> Item:
        """Replace the end of a streamed result by the whole result, for a session without `result_chunk`."""
        if not isinstance(item, QueuedEvent) or not self._must_assemble(item):
            return item
        ledger, limit = self.jobs.ledger, self.jobs.limits.result_bytes
        entry = await with_whole_result(ledger, item.subscription.job_id, item.entry, limit)
        return QueuedEvent(item.subscription, item.position, entry)

    def _frames(self, items: Sequence[Item]) -> list[bytes]:
        frames: list[bytes] = []
        for item in items:
            if isinstance(item, bytes):
                frames.append(item)
            elif isinstance(item, QueuedEvent):
                feed = item.subscription
                frames.append(self.encode_entry(feed.job_id, feed.trace, item.entry, self.next_event))
                self.next_event += 1
        return frames

    def encode_entry(self, job_id: str, trace: str, entry: JobEntry, number: int) -> bytes:
        """Encode an entry of a job's log as a message that this session's client reads, with its event number."""
        if self.peer.rewrites_ends:
            entry = readable(entry, job_id, self.peer)
        type = FRAME_TYPES[entry.kind]
        return write(Envelope(VERSION, message_id(), type, self.id, trace, job_id, number, entry.payload))

    def stop_sending(self) -> None:
        """Drop all queued messages and release every task that waits for this session."""
        self.closing = True
        self._take_queue()
        self._sent.set()
        self._wake.set()
