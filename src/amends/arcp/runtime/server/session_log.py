"""
The log of a session: its events in the order of their numbers, each a reference into a job's log.

Any node can replay the session's events from it under the same numbers. From time to time a snapshot is appended, so
that older entries whose events were acknowledged can be removed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, NamedTuple

from amends.arcp.runtime.entries import SessionEntry, encode
from amends.arcp.runtime.server.feeds import Feed
from amends.durable.batch import Batch
from amends.stores import Log

__all__ = ["SNAPSHOT_EVERY", "Attached", "SessionLog", "session_entries"]

SNAPSHOT_EVERY = 128
"""Number of entries between two snapshots."""


class Attached(NamedTuple):
    """An item in a session's queue: the session subscribes to a job, or changes its mode."""

    job_id: str
    start: int
    mode: int


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

    async def trim(self, next_event: int, feeds: Iterable[Feed], needed: int) -> None:
        """Write a snapshot, and remove the entries before the newest snapshot that still covers event `needed`."""
        await self.append(SessionEntry(next_event, feeds=_positions(feeds)))
        self._snapshots.append((next_event, self._end))
        self.since_snapshot = 0
        found = bisect_right(self._snapshots, (needed, 1 << 62)) - 1
        if found > 0 or (found == 0 and self._snapshots[0][1] > self._kept_from):
            self._kept_from = self._snapshots[found][1]
            del self._snapshots[:found]
            await self._log.trim(self._kept_from)


def session_entries(items: list[Any], number: int) -> list[SessionEntry]:
    """
    Return the log entries for queued items; the first event gets the number `number`.

    An item is an event (feed, entry number, entry), an `Attached`, the id of a job whose subscription ended, or an
    encoded message without a number.
    """
    found: list[SessionEntry] = []
    events: list[tuple[str, int, bool]] = []
    attached: list[tuple[str, int, int]] = []
    detached: list[str] = []
    for item in items:
        item_type: type = item.__class__
        if item_type is tuple:
            feed, position, entry = item
            events.append((feed.job_id, position, entry.kind != "event"))
            feed.numbered = position + 1
        elif item_type is Attached or item_type is str:
            if events or (item_type is str and attached):
                # An entry is applied in this order: ended subscriptions, new subscriptions, events.
                found.append(SessionEntry(number, tuple(events), tuple(attached), tuple(detached)))
                number += len(events)
                events, attached, detached = [], [], []
            if item_type is str:
                detached.append(item)
            else:
                attached.append(item)
    if events or attached or detached:
        found.append(SessionEntry(number, tuple(events), tuple(attached), tuple(detached)))
    return found


def _positions(feeds: Iterable[Feed]) -> tuple[tuple[str, int, int], ...]:
    """Return the position and mode of each feed for a snapshot."""
    return tuple({feed.job_id: (feed.job_id, feed.numbered, feed.mode) for feed in feeds}.values())
