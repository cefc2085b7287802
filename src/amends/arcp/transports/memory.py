"""Two connected ends in one process, limited in both directions: a sender waits for a slow reader, as on a network."""

from __future__ import annotations

from asyncio import Future, get_running_loop
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from amends.arcp.transports.connection import Connection, ConnectionLost
from amends.arcp.wire.envelope import MAX_FRAME

__all__ = ["MemoryConnection", "pair"]

FRAMES = 256
"""Frames in one direction before a sender has to wait."""


@dataclass(slots=True, eq=False)
class _Lane:
    """One direction."""

    limit: int
    frames: deque[bytes] = field(default_factory=deque)
    closed: bool = False
    reader: Future[None] | None = None
    writers: deque[Future[None]] = field(default_factory=deque)

    def wake_reader(self) -> None:
        if self.reader is not None and not self.reader.done():
            self.reader.set_result(None)

    def wake_writer(self) -> None:
        while self.writers:
            writer = self.writers.popleft()
            if not writer.done():
                writer.set_result(None)
                return

    def close(self) -> None:
        self.closed = True
        self.wake_reader()
        while self.writers:
            self.wake_writer()


@dataclass(eq=False)
class MemoryConnection(Connection):
    """One end of a pair."""

    _incoming: _Lane
    _outgoing: _Lane
    _max_frame: int
    peer: str = "memory"

    async def send(self, data: bytes) -> None:
        """Send one frame, and wait while the other side is slow."""
        lane = self._outgoing
        while len(lane.frames) >= lane.limit and not lane.closed:
            room: Future[None] = get_running_loop().create_future()
            lane.writers.append(room)
            try:
                await room
            except BaseException:
                # This writer was woken but is cancelled: wake the next one.
                if room.done() and not room.cancelled():
                    lane.wake_writer()
                raise
        if lane.closed:
            raise ConnectionLost("the other end is closed")
        lane.frames.append(data)
        lane.wake_reader()

    async def send_all(self, frames: Sequence[bytes]) -> None:
        """Send several frames in order."""
        for frame in frames:
            await self.send(frame)

    def post(self, frames: Sequence[bytes]) -> bool:
        """Send frames at once if there is room for all of them."""
        lane = self._outgoing
        if lane.closed or lane.writers or len(lane.frames) + len(frames) > lane.limit:
            return False
        lane.frames.extend(frames)
        lane.wake_reader()
        return True

    async def receive(self) -> str | bytes | None:
        """The next frame, or None if the connection has ended."""
        lane = self._incoming
        while not lane.frames:
            if lane.closed:
                return None
            lane.reader = get_running_loop().create_future()
            try:
                await lane.reader
            finally:
                lane.reader = None
        frame = lane.frames.popleft()
        lane.wake_writer()
        if len(frame) > self._max_frame:
            await self.close(1009)
            return None
        return frame

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close both directions. The other end can still read the frames that were sent before; this end cannot."""
        self._outgoing.close()
        self._incoming.close()
        self._incoming.frames.clear()


def pair(*, frames: int = FRAMES, max_frame: int = MAX_FRAME) -> tuple[MemoryConnection, MemoryConnection]:
    """Return two connected ends."""
    there, back = _Lane(frames), _Lane(frames)
    return MemoryConnection(back, there, max_frame), MemoryConnection(there, back, max_frame)
