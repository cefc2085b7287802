"""
A session's subscription to a job: which entry of the job's log comes next, and how entries reach the session.

While the job runs on this node, its commits push the entries to the feed (*live*), without a task. A task reads entries
from the log that were written earlier or by another node, and makes the feed live when it catches up with a job that
runs here. A job that waits in the queue of an exclusive store needs no task, because only this node can start it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from amends.arcp.runtime.entries import FRAME_TYPES, JobEntry, SessionEntry, job_log
from amends.arcp.runtime.ledger import read_entry
from amends.stores import StoreError
from amends.stores.signal import Signal

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node
    from amends.arcp.runtime.server.session import Session

__all__ = ["OUTCOME", "SUBMITTED", "Feed"]

_log = logging.getLogger("amends.arcp")

SUBMITTED = 1
"""The session submitted the job (or repeated its key), and may cancel it."""
OUTCOME = 2
"""Send only the end of the run and the chunks of its result, as the answer to a repeated key."""

_FASTEST, _SLOWEST = 0.02, 0.5
_MISSED_SIGNAL = 5.0
"""Seconds between reads on a store that signals every entry, for signals that were lost with a connection."""


class Feed:
    """One session's subscription to one job."""

    __slots__ = (
        "_task",
        "hides_credentials",
        "job_id",
        "live",
        "mode",
        "next",
        "numbered",
        "session",
        "trace",
    )

    def __init__(self, session: Session, job_id: str, trace: str, start: int, mode: int) -> None:
        self.session = session
        self.job_id = job_id
        self.trace = trace
        self.next = start
        """The number of the next entry to push."""
        self.numbered = start
        """The number of the first entry that has no event number in the session yet."""
        self.mode = mode
        self.hides_credentials = False
        """Whether the job belongs to another principal, so that credentials are removed from its events."""
        self.live = False
        self._task: asyncio.Task[None] | None = None

    def begin(self, node: Node, *, waiting: bool = False) -> None:
        """Start pushing entries, beginning with the stored ones. `waiting`: the job is known to be in its queue."""
        job = node.jobs.get(self.job_id)
        if job is not None and job.last + 1 == self.next:
            self.live = True
            job.feeds.append(self)
        elif job is None and waiting and node.exclusive:
            node.queued_feeds.setdefault(self.job_id, []).append(self)
        else:
            self._task = node.spawn(self._follow(node))

    def claim(
        self, first: int, entries: Sequence[JobEntry]
    ) -> tuple[list[tuple[int, JobEntry]], SessionEntry] | None:
        """
        Reserve event numbers for a job's last entries, so that the job's transaction can write them.

        Returns the entries to send with their numbers in the job's log, and the entry for the session's log; None if the
        session cannot reserve numbers now.
        """
        if (
            any(entry.kind == "child" for entry in entries)
            or self.session.must_assemble(entries[-1])
            or self.hides_credentials
        ):
            return None
        if not self.session.claim_numbers():
            return None
        sent = [
            (number, entry)
            for number, entry in enumerate(entries, first)
            if entry.kind in FRAME_TYPES and not self.session.excludes(entry)
        ]
        events = tuple((self.job_id, number, entry.kind != "event") for number, entry in sent)
        return sent, SessionEntry(self.session.next_event, events)

    def send_claimed(self, sent: Sequence[tuple[int, JobEntry]]) -> None:
        """Send the entries of a claim after their transaction succeeded, and end the feed."""
        session = self.session
        frames = [
            session.encode_entry(self.job_id, self.trace, entry, number)
            for number, (_, entry) in enumerate(sent, session.next_event)
        ]
        session.remove_feed(self)
        session.commit_claim(frames, len(frames))

    def push(self, first: int, entries: Sequence[JobEntry]) -> None:
        """Queue entries for the session; `first` is the number of the first one in the job's log."""
        self.next = first + len(entries)
        session = self.session
        for number, entry in enumerate(entries, first):
            if entry.kind in FRAME_TYPES and (not self.mode & OUTCOME or _belongs_to_outcome(entry)):
                session.enqueue_event(self, number, entry)
            elif entry.kind == "child" and self.mode == SUBMITTED:
                session.follow_child(entry.payload)

    def stop(self, node: Node) -> None:
        """Stop pushing entries."""
        if self.live:
            self.live = False
            job = node.jobs.get(self.job_id)
            if job is not None and self in job.feeds:
                job.feeds.remove(self)
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self, node: Node) -> None:
        try:
            if not node.notified:
                await self._read_log(node, None)
                return
            async with node.store.log(job_log(self.job_id)).watch() as signal:
                await self._read_log(node, signal)
        except Exception:  # noqa: BLE001 - the feed cannot continue, so the client has to resume the session
            _log.exception(
                "session %s: its connection is closed because job %s could not be followed",
                self.session.id,
                self.job_id,
            )
            # In a task of its own: dropping the session cancels this one.
            node.spawn(node.drop(self.session))

    async def _read_log(self, node: Node, signal: Signal | None) -> None:
        pause, longest = _FASTEST, _SLOWEST if signal is None else _MISSED_SIGNAL
        while True:
            seen = 0 if signal is None else signal.count
            pushed = page = [] if signal is None else signal.entries(self.next)
            if not pushed:
                try:
                    page = await node.ledger.entries(self.job_id, self.next)
                except StoreError:
                    page = []
            for stored in page:
                entry = read_entry(stored.value)
                self.push(stored.seq, (entry,))
                if entry.ended and self.session.feeds.get(self.job_id) is not self:
                    # The session has removed the feed: this was the end of the job.
                    return
                await self.session.wait_for_room()
            job = node.jobs.get(self.job_id)
            if job is not None and job.last + 1 == self.next:
                self._task = None
                self.live = True
                job.feeds.append(self)
                return
            if page:
                pause = _FASTEST
            if not pushed and (len(page) > 1 or (page and signal is None)):
                continue
            if pause >= longest and await self._is_deleted(node):
                self.session.report_deleted(self.job_id)
                return
            if signal is None:
                await asyncio.sleep(pause)
            else:
                await signal.wait(seen, max(pause, _SLOWEST))
            pause = min(pause * 2, longest)

    async def _is_deleted(self, node: Node) -> bool:
        """Whether the job is no longer in the store; False if the store does not answer."""
        try:
            return await node.ledger.is_deleted(self.job_id)
        except StoreError:
            return False


def _belongs_to_outcome(entry: JobEntry) -> bool:
    return entry.kind != "event" or b'"kind":"result_chunk"' in bytes(entry.payload)[:64]
