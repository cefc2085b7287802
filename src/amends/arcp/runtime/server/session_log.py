"""
The log of a session: its events in the order of their numbers, each a reference into a job's log.

Any node can replay the session's events from it under the same numbers. From time to time a snapshot is appended, so
that older entries whose events were acknowledged can be removed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

import msgspec

from amends.arcp.runtime.entries import JobEntry, SessionEntry, encode
from amends.durable.batch import Batch
from amends.stores import Log

__all__ = [
    "SNAPSHOT_EVERY",
    "Attached",
    "Detached",
    "Item",
    "QueuedEvent",
    "SessionLog",
    "Subscription",
    "session_entries",
]

SNAPSHOT_EVERY = 128
"""Number of entries between two snapshots."""


class Subscription:
    """The position of a session in the log of a job."""

    __slots__ = ("job_id", "mode", "numbered", "trace")

    def __init__(self, job_id: str, trace: str, start: int, mode: int) -> None:
        self.job_id = job_id
        self.trace = trace
        self.numbered = start
        """The number of the first entry that has no event number in the session yet."""
        self.mode = mode


class QueuedEvent(msgspec.Struct, frozen=True):
    """An item in a session's queue: an entry of a job's log, to be sent under the session's next event number."""

    subscription: Subscription
    position: int
    """The number of the entry in the job's log."""
    entry: JobEntry
    assemble: bool = False
    """Whether the entry is replaced by one that contains the whole streamed result before it is sent."""


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

    __slots__ = ("_end", "_kept_from", "_log", "_snapshots", "since_snapshot")

    def __init__(self, log: Log, next_event: int, end: int) -> None:
        self._log = log
        self._end = end
        self._snapshots: list[tuple[int, int]] = [(next_event, end)] if end else []
        self._kept_from = 0
        self.since_snapshot = 0
        """Number of entries after the newest snapshot."""

    async def append(self, session_entry: SessionEntry) -> None:
        """
        Write an entry before its events are sent.

        Raises:
            ConflictError: the session was resumed on another connection.

        """
        self._end = await self._log.append(encode(session_entry), last=self._end)
        self.since_snapshot += 1

    def add_to(self, steps: Batch, session_entry: SessionEntry) -> None:
        """Add an entry to a transaction of another component; call `committed` after that has succeeded."""
        steps.append(self._log.name, encode(session_entry), last=self._end)

    def committed(self) -> None:
        """Count the entry of a transaction that has succeeded."""
        self._end += 1
        self.since_snapshot += 1

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
