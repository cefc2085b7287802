"""
What a session's connection is sent: in one order, numbered before it leaves.

One task per session takes what has come together, writes the order of its events into the session's log, then sends.
So whoever resumes the session, on whatever node, gets the same events under the same numbers. The events themselves
stand in the jobs' logs; the session's log points there. What waits here is bounded: beyond `buffered` agents are
slowed and requests wait; a reader that takes nothing at all loses its connection, and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from amends.arcp.runtime.batch import Steps, done_at_once
from amends.arcp.runtime.entries import FRAME_TYPES, JobEntry, SessionEntry, session_log
from amends.arcp.runtime.result_assembly import whole
from amends.arcp.runtime.session_log import SNAPSHOT_EVERY, Numbering, batches
from amends.arcp.transports import Connection, ConnectionLost
from amends.arcp.wire import VERSION, Envelope, message_id, write
from amends.stores import ConflictError, StoreError

if TYPE_CHECKING:
    from amends.arcp.runtime.job import Job
    from amends.arcp.runtime.node import Node

__all__ = ["Outgoing"]

_log = logging.getLogger("amends.arcp")


class Outgoing(ABC):
    """The way out of one session: what waits, who waits for room, and the right to number."""

    __slots__ = (
        "_bytes",
        "_flushes",
        "_flying",
        "_held",
        "_numbering",
        "_parted",
        "_place",
        "_queue",
        "_rooms",
        "_soon",
        "_wake",
        "closing",
        "connection",
        "id",
        "newborn",
        "next_event",
        "node",
        "sending",
        "sent",
    )

    def __init__(self, node: Node, id: str, connection: Connection, next_event: int, log_end: int) -> None:
        self.node = node
        self.id = id
        self.connection = connection
        self.next_event = next_event
        self.closing = False
        self.sent = node.loop.time()
        self.sending: float | None = None
        """Since when a message waits to be taken."""
        self.newborn: Job | None = None
        """A job that was begun in this step of the event loop, and is not written down."""
        self._numbering = Numbering(node.store.log(session_log(id)), next_event, log_end)
        self._queue: list[Any] = []
        self._bytes = 0
        self._parted = 0
        """How many of the results that wait have to be put together from their chunks first."""
        self._flying = 0
        self._wake: asyncio.Future[None] | None = None
        self._rooms: list[asyncio.Future[None]] = []
        self._flushes: list[asyncio.Future[None]] = []
        self._soon = False
        self._held = False
        self._place: int | None = None
        """Where among what waits that belongs which somebody else is numbering just now."""

    @abstractmethod
    async def drop(self) -> None:
        """Be done with the connection."""

    @abstractmethod
    async def trim(self) -> None:
        """Forget what nobody will ask for."""

    # -- what has no number

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
        if self._held:
            return
        if not self.node.prompt:
            self._wake_writer()
        elif not self._soon:
            self._soon = True
            self.node.loop.call_soon(self.flush)

    def _wake_writer(self) -> None:
        wake = self._wake
        if wake is not None and not wake.done() and self._place is None:
            wake.set_result(None)

    @property
    def _resting(self) -> bool:
        """Whether the task waits to be woken."""
        return self._wake is not None and not self._wake.done()

    def _make_room(self) -> None:
        if self._rooms:
            rooms, self._rooms = self._rooms, []
            _release(rooms)

    def _release_flushed(self) -> None:
        if self._flushes and not self._queue:
            flushes, self._flushes = self._flushes, []
            _release(flushes)

    # -- sending it

    async def write(self) -> None:
        """Number, write down and send what comes, until the connection is gone or another node has the session."""
        try:
            while not self.closing:
                if not self._queue or self._place is not None:
                    self._wake = self.node.loop.create_future()
                    await self._wake
                    self._wake = None
                    continue
                items, self._queue = self._queue, []
                self._bytes = 0
                await self._number(items)
                if self._parted:
                    items = await self._put_together(items)
                await self.send(self._frames(items))
                if self._numbering.since_snapshot >= SNAPSHOT_EVERY:
                    await self.trim()
                self._make_room()
                self._release_flushed()
        except ConnectionLost:
            pass
        except ConflictError:
            _log.info("session %s goes on at another connection", self.id)
        except StoreError:
            _log.exception("session %s loses its connection: the store fails", self.id)
        finally:
            await self.drop()

    def hold(self) -> None:
        """A request is looked at: what it and those behind it have to say is put together until somebody waits."""
        self._held = self.node.prompt or self.node.joins

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
        if not self._queue or not self._resting or self._held:
            return
        frames = None
        if not (self.closing or self._parted or self._numbering.since_snapshot >= SNAPSHOT_EVERY):
            frames = self._numbered_at_once() if self.node.prompt else self._numbered()
        if frames is None:
            self._wake_writer()
        elif frames and self.connection.post(frames):
            self.sent = self.node.loop.time()
            self._make_room()
            self._release_flushed()
        elif frames:
            # They have their numbers: as they are they go first.
            self._insert(0, frames)
            if self._place is not None:
                self._place += len(frames)
            self._wake_writer()

    def _numbered_at_once(self) -> list[bytes]:
        """Everything that waits, ready to be sent."""
        items, self._queue = self._queue, []
        self._bytes = 0
        try:
            done_at_once(self._number(items))
        except ConflictError:
            self.node.spawn(self.drop())
            return []
        return self._frames(items)

    def _numbered(self) -> list[bytes] | None:
        """What waits, if nothing of it has to be numbered first: all of it, or what comes before what somebody numbers."""
        end = len(self._queue) if self._place is None else self._place
        frames = self._queue[:end]
        if not _only_frames(frames):
            return None
        del self._queue[:end]
        self._bytes -= sum(map(len, frames))
        self._place = None if self._place is None else 0
        return frames

    def _insert(self, place: int, frames: list[bytes]) -> None:
        self._queue[place:place] = frames
        self._bytes += sum(map(len, frames))

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
        for entry in batches(items, self.next_event):
            await self._numbering.append(entry)

    async def _put_together(self, items: list[Any]) -> list[Any]:
        """Results in the place of those that were streamed, for a session that is sent no chunks."""
        self._parted = 0
        return [
            (item[0], item[1], await whole(self.node, item[0].job_id, item[2]))
            if item.__class__ is tuple
            else item
            for item in items
        ]

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

    def framed(self, job_id: str, trace: str, mark: JobEntry, number: int) -> bytes:
        """An entry of a job's log as this session is sent it."""
        return write(
            Envelope(
                VERSION, message_id(), FRAME_TYPES[mark.kind], self.id, trace, job_id, number, mark.payload
            )
        )

    # -- numbering in somebody else's transaction

    @property
    def speaking(self) -> bool:
        """Whether something waits to be sent that keeps others from numbering."""
        return bool(self._queue) and not self._quiet

    @property
    def _quiet(self) -> bool:
        """Whether nobody numbers, and nothing waits to be numbered."""
        return self._resting and self._place is None and _only_frames(self._queue)

    def claim(self) -> bool:
        """
        Take the right to number, for a job that writes its entries and their numbers in one transaction.

        Given while nobody else numbers, on stores where a transaction is worth a wait. `noted` or `unclaim` ends it.
        """
        if self.closing or not self.node.joins or not self._quiet:
            return False
        self._place = len(self._queue)
        return True

    def note(self, steps: Steps, entry: SessionEntry) -> None:
        """Number it there."""
        self._numbering.note(steps, entry)

    def noted(self, frames: list[bytes], events: int) -> None:
        """It was written: send it, before whatever has come since."""
        self._numbering.noted()
        self.next_event += events
        if not self.closing:
            self._insert(self._place or 0, frames)
        self.unclaim()

    def unclaim(self) -> None:
        """Whoever waits may number again."""
        self._place = None
        self.flush()

    def silence(self) -> None:
        """Send nothing more, and hold nobody up."""
        self.closing = True
        self._queue.clear()
        self._bytes = 0
        self._make_room()
        _release(self._flushes)
        self._place = None
        self._wake_writer()


def _release(waiters: Iterable[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)


def _only_frames(items: list[Any]) -> bool:
    # No generator: this is asked several times per job, mostly of a list of none or one.
    for item in items:  # noqa: SIM110
        if item.__class__ is not bytes:
            return False
    return True
