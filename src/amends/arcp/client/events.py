"""
A job's events, buffered for any number of iterators, each starting with the first event kept.

The buffer is limited. Without iterators the oldest events are removed. A slow iterator blocks the connection for a while
(back-pressure), then raises an error with the number of events it missed. It never blocks forever, because the code that
iterates may be waiting for something else on the same connection.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from amends.errors.arcp import InternalError

__all__ = ["Event", "Events"]


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """
    An event that a job reported (section 8). `Handle.events` returns them in order.

        async for event in handle.events():
            if event.kind == "log":
                print(event.body["level"], event.body["message"])
    """

    kind: str
    """log, thought, tool_call, tool_result, status, metric, artifact_ref, delegate, progress, result_chunk, or another
    kind."""
    body: dict[str, Any] = {}
    ts: str | None = None
    job_id: str = ""
    seq: int | None = None
    """The event's number in the session: without gaps, across all jobs of the session."""
    run: int = 1
    """The run of the job, from 2 on if it ran again under the same key."""


class _Cursor:
    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        self.at = at


class Events:
    """The buffer of one job."""

    def __init__(self, limit: int, limit_bytes: int) -> None:
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._items: deque[tuple[Event, int]] = deque()
        self._bytes = 0
        self._cursors: list[_Cursor] = []
        self._changed = asyncio.Event()
        self._ended = False
        self.missed = 0
        """The number of events that are no longer kept, which is the index of the first one kept."""

    @property
    def full(self) -> bool:
        """Whether the next event would remove one that an iterator has not read."""
        if not self._cursors or (len(self._items) < self._limit and self._bytes < self._limit_bytes):
            return False
        return any(cursor.at == self.missed for cursor in self._cursors)

    def put(self, event: Event, size: int) -> None:
        """Add an event, and remove the oldest ones if there are too many."""
        self._items.append((event, size))
        self._bytes += size
        while len(self._items) > self._limit or (self._bytes > self._limit_bytes and len(self._items) > 1):
            _, gone = self._items.popleft()
            self._bytes -= gone
            self.missed += 1
        self._changed.set()

    def end(self) -> None:
        """Mark the end of the events."""
        self._ended = True
        self._changed.set()

    async def wait_for_space(self, seconds: float) -> None:
        """Wait until a slow iterator has read an event, at most `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                while self.full and not self._ended:
                    await self._change()
        except TimeoutError:
            pass

    async def started(self, seconds: float) -> bool:
        """Wait for the first event or the end, at most `seconds`; returns whether there was one."""
        try:
            async with asyncio.timeout(seconds):
                while not self._items and not self._ended:
                    await self._change()
        except TimeoutError:
            return False
        return True

    async def read(self) -> AsyncIterator[Event]:
        """Iterate over the events, from the first one kept."""
        cursor = _Cursor(self.missed)
        self._cursors.append(cursor)
        try:
            while True:
                ahead = cursor.at - self.missed
                if ahead < 0:
                    raise InternalError(
                        "Events arrived faster than they were read",
                        retryable=False,
                        details={"reason": "slow_reader", "missed": -ahead},
                    )
                if ahead < len(self._items):
                    event = self._items[ahead][0]
                    cursor.at += 1
                    self._changed.set()
                    yield event
                elif self._ended:
                    return
                else:
                    await self._change()
        finally:
            self._cursors.remove(cursor)
            self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
