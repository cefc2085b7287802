"""
The log of what a session was sent: its events in the order of their numbers, each pointing into its job's log.

From it any node can tell the session again what it was told, under the same numbers. Now and then an entry says where
everything stands, so that what lies before it, and was seen, can be forgotten.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, NamedTuple

from amends.arcp.runtime.batch import Steps
from amends.arcp.runtime.entries import SessionEntry, encode
from amends.arcp.runtime.feeds import Feed
from amends.stores import Log

__all__ = ["SNAPSHOT_EVERY", "Attached", "Numbering", "batches"]

SNAPSHOT_EVERY = 128
"""Entries between two that the log can be trimmed to."""


class Attached(NamedTuple):
    """In the order of things to be sent: from here on the job is listened to."""

    job_id: str
    start: int
    mode: int


class Numbering:
    """One session's log, as the connection knows it that numbers."""

    __slots__ = ("_end", "_kept_from", "_log", "_snapshots", "since_snapshot")

    def __init__(self, log: Log, next_event: int, end: int) -> None:
        self._log = log
        self._end = end
        self._snapshots: list[tuple[int, int]] = [(next_event, end)] if end else []
        self._kept_from = 0
        self.since_snapshot = 0
        """Entries behind the newest snapshot."""

    async def append(self, entry: SessionEntry) -> None:
        """
        Write down what is about to be sent.

        Raises:
            ConflictError: the session goes on elsewhere.

        """
        self._end = await self._log.append(encode(entry), last=self._end)
        self.since_snapshot += 1

    def note(self, steps: Steps, entry: SessionEntry) -> None:
        """Write it in somebody else's transaction; `noted` when that is done."""
        steps.append(self._log.name, encode(entry), last=self._end)

    def noted(self) -> None:
        """The transaction was."""
        self._end += 1
        self.since_snapshot += 1

    async def trim(self, next_event: int, feeds: Iterable[Feed], needed: int) -> None:
        """Write a snapshot, and forget what lies before the newest one from which event `needed` can be replayed."""
        await self.append(SessionEntry(next_event, feeds=_places(feeds)))
        self._snapshots.append((next_event, self._end))
        self.since_snapshot = 0
        found = bisect_right(self._snapshots, (needed, 1 << 62)) - 1
        if found > 0 or (found == 0 and self._snapshots[0][1] > self._kept_from):
            self._kept_from = self._snapshots[found][1]
            del self._snapshots[:found]
            await self._log.trim(self._kept_from)


def batches(items: list[Any], number: int) -> list[SessionEntry]:
    """
    What is about to be sent, the first of its events under `number`, as it is written down.

    An item is an event (feed, entry, mark), an `Attached`, the id of a job that is listened to no more, or a frame,
    which has no number.
    """
    found: list[SessionEntry] = []
    events: list[tuple[str, int, bool]] = []
    attached: list[tuple[str, int, int]] = []
    detached: list[str] = []
    for item in items:
        kind: type = item.__class__
        if kind is tuple:
            feed, entry, mark = item
            events.append((feed.job_id, entry, mark.kind != "event"))
            feed.numbered = entry + 1
        elif kind is Attached or kind is str:
            if events or (kind is str and attached):
                # An entry is read in this order: who no longer listens, who does, what was said.
                found.append(SessionEntry(number, tuple(events), tuple(attached), tuple(detached)))
                number += len(events)
                events, attached, detached = [], [], []
            if kind is str:
                detached.append(item)
            else:
                attached.append(item)
    if events or attached or detached:
        found.append(SessionEntry(number, tuple(events), tuple(attached), tuple(detached)))
    return found


def _places(feeds: Iterable[Feed]) -> tuple[tuple[str, int, int], ...]:
    """Where each job goes on."""
    return tuple({feed.job_id: (feed.job_id, feed.numbered, feed.mode) for feed in feeds}.values())
