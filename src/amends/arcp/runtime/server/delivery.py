"""
Delivery of messages to a session's connection, in one order, with events numbered before they are sent.

One task per session takes the queued messages, writes the order of the events to the session's log, and sends them. A
client that resumes the session on any node therefore gets the same events under the same numbers. The session's log
refers to the jobs' logs, which hold the events. The queue is bounded: beyond `Limits.buffered`, agents and requests
wait. A client that stops reading loses its connection; its session and its jobs go on.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

from amends.arcp.runtime.entries import FRAME_TYPES, JobEntry, SessionEntry, session_log
from amends.arcp.runtime.jobs.result_stream import with_whole_result
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.arcp.runtime.server.session_log import (
    SNAPSHOT_EVERY,
    Item,
    QueuedEvent,
    SessionLog,
    Subscription,
    session_entries,
)
from amends.arcp.transports import Connection, ConnectionLost
from amends.arcp.wire import VERSION, Envelope, message_id, write
from amends.durable.batch import Batch, run_without_waiting
from amends.stores import ConflictError, StoreError

__all__ = ["Delivery"]

_log = logging.getLogger("amends.arcp")


class Delivery(ABC):
    """The send queue of one session, its bounds, and the numbering of its events."""

    __slots__ = (
        "_bytes",
        "_claim_index",
        "_flush_scheduled",
        "_flush_waiters",
        "_in_flight",
        "_queue",
        "_room_waiters",
        "_session_log",
        "_wake",
        "closing",
        "connection",
        "id",
        "jobs",
        "last_sent",
        "next_event",
        "sending_since",
    )

    def __init__(
        self, jobs: RunningJobs, id: str, connection: Connection, next_event: int, log_end: int
    ) -> None:
        self.jobs = jobs
        self.id = id
        self.connection = connection
        self.next_event = next_event
        self.closing = False
        self.last_sent = jobs.tasks.loop.time()
        self.sending_since: float | None = None
        """Time since which a message has been waiting for the connection to accept it; None if none waits."""
        self._session_log = SessionLog(jobs.ledger.store.log(session_log(id)), next_event, log_end)
        self._queue: list[Item] = []
        self._bytes = 0
        self._in_flight = 0
        self._wake: asyncio.Future[None] | None = None
        self._room_waiters: list[asyncio.Future[None]] = []
        self._flush_waiters: list[asyncio.Future[None]] = []
        self._flush_scheduled = False
        self._claim_index: int | None = None
        """Index in the queue for the messages of the current claim; None if there is no claim."""

    @abstractmethod
    async def drop(self) -> None:
        """Detach the session from its connection."""

    @abstractmethod
    async def trim(self) -> None:
        """Remove entries of the session's log that can no longer be requested."""

    # -- what the subscriptions of a session use

    @abstractmethod
    def is_subscribed(self, feed: Subscription) -> bool:
        """Whether this is the session's current subscription to its job."""

    @abstractmethod
    def excludes(self, entry: JobEntry) -> bool:
        """Whether an event belongs to a feature that this session did not negotiate."""

    @abstractmethod
    def must_assemble(self, entry: JobEntry) -> bool:
        """Whether this entry ends a streamed result that this session gets as a whole."""

    @abstractmethod
    def enqueue_event(
        self, feed: Subscription, position: int, entry: JobEntry, *, hides_credentials: bool
    ) -> None:
        """Queue an entry of a job's log, to be sent under the session's next event number."""

    @abstractmethod
    def end_subscription(self, feed: Subscription) -> None:
        """Remove the subscription to a job that has ended."""

    @abstractmethod
    def follow_child(self, accepted: bytes) -> None:
        """Subscribe to a job that was delegated by a job of this session (10.1)."""

    @abstractmethod
    def report_deleted(self, job_id: str) -> None:
        """End the subscription to a job that is no longer stored, with an error for clients that wait for its end."""

    # -- messages without a number

    def enqueue(self, frame: bytes) -> None:
        """Queue an encoded message that has no number."""
        if self.closing:
            return
        self._queue.append(frame)
        self._bytes += len(frame)
        self._schedule_flush()

    def send_message(
        self, type: str, payload: Any, *, job_id: str | None = None, trace: str | None = None
    ) -> None:
        """Encode and queue a message that has no number."""
        self.enqueue(self.encode_message(type, payload, job_id, trace))

    def encode_message(self, type: str, payload: Any, job_id: str | None, trace: str | None) -> bytes:
        """Return an encoded message of this session, without a number."""
        return write(Envelope(VERSION, message_id(), type, self.id, trace, job_id, None, payload))

    # -- bounds of the queue

    @property
    def full(self) -> bool:
        """Whether the queue has reached `Limits.buffered` or `Limits.buffered_bytes`."""
        limits = self.jobs.limits
        return len(self._queue) + self._in_flight >= limits.buffered or self._bytes >= limits.buffered_bytes

    async def wait_for_room(self) -> None:
        """Wait until the queue has room or the session closes."""
        while self.full and not self.closing:
            waiter = self.jobs.tasks.loop.create_future()
            self._room_waiters.append(waiter)
            await waiter

    async def wait_until_flushed(self, within: float = 5.0) -> None:
        """Wait until all queued messages are sent, for at most `within` seconds."""
        if self._queue or self._in_flight:
            waiter = self.jobs.tasks.loop.create_future()
            self._flush_waiters.append(waiter)
            await asyncio.wait([waiter], timeout=within)

    def _schedule_flush(self) -> None:
        if not self.jobs.tasks.immediate:
            self._wake_writer()
        elif not self._flush_scheduled:
            self._flush_scheduled = True
            self.jobs.tasks.loop.call_soon(self.flush)

    def _wake_writer(self) -> None:
        wake = self._wake
        if wake is not None and not wake.done() and self._claim_index is None:
            wake.set_result(None)

    @property
    def _writer_idle(self) -> bool:
        """Whether the writer task waits for messages."""
        return self._wake is not None and not self._wake.done()

    def _make_room(self) -> None:
        if self._room_waiters:
            waiters, self._room_waiters = self._room_waiters, []
            _release(waiters)

    def _release_flushed(self) -> None:
        if self._flush_waiters and not self._queue:
            waiters, self._flush_waiters = self._flush_waiters, []
            _release(waiters)

    # -- sending

    async def write(self) -> None:
        """Number, record and send messages until the connection ends or another node takes the session over."""
        try:
            while not self.closing:
                if not self._queue or self._claim_index is not None:
                    self._wake = self.jobs.tasks.loop.create_future()
                    await self._wake
                    self._wake = None
                    continue
                items, self._queue = self._queue, []
                self._bytes = 0
                await self._number(items)
                await self.send(self._frames([await self._assembled(item) for item in items]))
                if self._session_log.since_snapshot >= SNAPSHOT_EVERY:
                    await self.trim()
                self._make_room()
                self._release_flushed()
        except ConnectionLost:
            pass
        except ConflictError:
            _log.info("session %s was resumed on another connection; this one is closed", self.id)
        except StoreError:
            _log.exception("session %s: its connection is closed because the store failed", self.id)
        finally:
            await self.drop()

    def flush(self) -> None:
        """Send the queued messages now if neither the store nor the connection has to wait; else wake the writer."""
        self._flush_scheduled = False
        if not self._queue or not self._writer_idle:
            return
        frames = None
        if not (self.closing or self._session_log.since_snapshot >= SNAPSHOT_EVERY or self._must_assemble):
            frames = self._number_now() if self.jobs.tasks.immediate else self._take_numbered()
        if frames is None:
            self._wake_writer()
        elif frames and self.connection.post(frames):
            self.last_sent = self.jobs.tasks.loop.time()
            self._make_room()
            self._release_flushed()
        elif frames:
            # These frames are numbered already, so they stay in front.
            self._insert(0, frames)
            if self._claim_index is not None:
                self._claim_index += len(frames)
            self._wake_writer()

    def _number_now(self) -> list[bytes]:
        """Number and encode everything in the queue; only for stores that never wait."""
        items, self._queue = self._queue, []
        self._bytes = 0
        try:
            run_without_waiting(self._number(items))
        except ConflictError:
            self.jobs.tasks.spawn(self.drop())
            return []
        return self._frames(items)

    def _take_numbered(self) -> list[bytes] | None:
        """
        Take the frames that need no number, up to the current claim; None if another item comes first.

        An item that still needs a number has to be written to the session's log by the writer task.
        """
        end = len(self._queue) if self._claim_index is None else self._claim_index
        frames = self._queue[:end]
        if not _only_frames(frames):
            return None
        del self._queue[:end]
        self._bytes -= sum(map(len, frames))
        self._claim_index = None if self._claim_index is None else 0
        return frames

    def _insert(self, place: int, frames: list[bytes]) -> None:
        self._queue[place:place] = frames
        self._bytes += sum(map(len, frames))

    async def send(self, frames: list[bytes]) -> None:
        """Send frames over the connection; `heartbeat` closes a connection that does not accept them in time."""
        if not frames:
            return
        self.sending_since = self.jobs.tasks.loop.time()
        self._in_flight = len(frames)
        try:
            if len(frames) == 1:
                await self.connection.send(frames[0])
            else:
                await self.connection.send_all(frames)
        finally:
            self._in_flight = 0
            self.last_sent = self.jobs.tasks.loop.time()
            self.sending_since = None

    async def _number(self, items: Sequence[Item]) -> None:
        """Write the numbers of the events in `items` to the session's log."""
        for session_entry in session_entries(items, self.next_event):
            await self._session_log.append(session_entry)

    @property
    def _must_assemble(self) -> bool:
        return any(isinstance(item, QueuedEvent) and item.assemble for item in self._queue)

    async def _assembled(self, item: Item) -> Item:
        """Replace the end of a streamed result by the whole result, for a session without `result_chunk`."""
        if not isinstance(item, QueuedEvent) or not item.assemble:
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
                subscription = item.subscription
                frames.append(
                    self.encode_entry(subscription.job_id, subscription.trace, item.entry, self.next_event)
                )
                self.next_event += 1
        return frames

    def encode_entry(self, job_id: str, trace: str, entry: JobEntry, number: int) -> bytes:
        """Encode an entry of a job's log as a message of this session, with its event number."""
        return write(
            Envelope(
                VERSION, message_id(), FRAME_TYPES[entry.kind], self.id, trace, job_id, number, entry.payload
            )
        )

    # -- numbers written in a job's transaction

    @property
    def has_unnumbered(self) -> bool:
        """Whether the queue has items without a number, which prevent a claim."""
        return bool(self._queue) and not self._can_claim

    @property
    def _can_claim(self) -> bool:
        """Whether there is no claim, the writer is idle and the queue has no items that need a number."""
        return self._writer_idle and self._claim_index is None and _only_frames(self._queue)

    def claim_numbers(self) -> bool:
        """
        Reserve the next numbers for a job that writes its entries and their numbers in one transaction.

        Returns False if the writer or another job is using the numbers, or if the store does not combine writes.
        `commit_claim` or `release_claim` ends the claim.
        """
        if self.closing or not self.jobs.ledger.combines_writes or not self._can_claim:
            return False
        self._claim_index = len(self._queue)
        return True

    def add_to(self, steps: Batch, session_entry: SessionEntry) -> None:
        """Add an entry of the session's log to a job's transaction."""
        self._session_log.add_to(steps, session_entry)

    def commit_claim(self, frames: list[bytes], events: int) -> None:
        """End the claim after the transaction succeeded: queue its frames before later messages."""
        self._session_log.committed()
        self.next_event += events
        if not self.closing:
            self._insert(self._claim_index or 0, frames)
        self.release_claim()

    def release_claim(self) -> None:
        """End the claim, so that the writer and other jobs can number events again."""
        self._claim_index = None
        self.flush()

    def stop_sending(self) -> None:
        """Drop all queued messages and release every task that waits for this session."""
        self.closing = True
        self._queue.clear()
        self._bytes = 0
        self._make_room()
        _release(self._flush_waiters)
        self._claim_index = None
        self._wake_writer()


def _release(waiters: Iterable[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)


def _only_frames(items: list[Item]) -> TypeGuard[list[bytes]]:
    # A loop is faster than a generator here: it runs several times per job, mostly on zero or one items.
    for item in items:  # noqa: SIM110
        if not isinstance(item, bytes):
            return False
    return True
