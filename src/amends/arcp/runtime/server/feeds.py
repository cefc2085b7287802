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

from amends.arcp.runtime.entries import FRAME_TYPES, JobEntry, SessionEntry, job_log
from amends.arcp.runtime.ledger import read_entry
from amends.arcp.runtime.server.delivery import Delivery
from amends.arcp.runtime.server.session_log import Subscription
from amends.durable.batch import Batch
from amends.stores import StoreError
from amends.stores.signal import Signal

__all__ = ["OUTCOME", "SUBMITTED", "Feed"]

_log = logging.getLogger("amends.arcp")

SUBMITTED = 1
"""The session submitted the job (or repeated its key), and may cancel it."""
OUTCOME = 2
"""Send only the end of the run and the chunks of its result, as the answer to a repeated key."""

_FASTEST, _SLOWEST = 0.02, 0.5
_MISSED_SIGNAL = 5.0
"""Seconds between reads on a store that signals every entry, for signals that were lost with a connection."""


class Feed(Subscription):
    """One session's subscription to one job."""

    __slots__ = ("_jobs", "_live", "_task", "hides_credentials", "next", "session")

    def __init__(self, session: Delivery, job_id: str, trace: str, start: int, mode: int) -> None:
        super().__init__(job_id, trace, start, mode)
        self.session = session
        self.next = start
        """The number of the next entry to push."""
        self.hides_credentials = False
        """Whether the job belongs to another principal, so that credentials are removed from its events."""
        self._jobs = session.jobs
        self._live = False
        self._task: asyncio.Task[None] | None = None

    def begin(self, *, waiting: bool = False) -> None:
        """Start pushing entries, beginning with the stored ones. `waiting`: the job is known to be in its queue."""
        self._live = False
        if not self.session.is_subscribed(self):
            return
        if self._try_live():
            return
        if waiting and self._jobs.exclusive and self.job_id not in self._jobs:
            self._jobs.wait_in_queue(self.job_id, self)
        else:
            self._task = self._jobs.tasks.spawn(self._follow())

    def _try_live(self) -> bool:
        """Let the job push its entries, if it runs here and this feed has all entries so far."""
        job = self._jobs.get(self.job_id)
        if job is None or job.last + 1 != self.next:
            return False
        self._live = True
        job.followers.append(self)
        return True

    # -- entries of a job that runs on this node

    @property
    def unnumbered(self) -> bool:
        """Whether the session has events to number at the moment."""
        return self.session.has_unnumbered

    @property
    def full(self) -> bool:
        """Whether the session cannot keep up."""
        return self.session.full

    async def wait_for_room(self) -> None:
        """Wait until the session has room."""
        await self.session.wait_for_room()

    def claim(self, first: int, entries: Sequence[JobEntry]) -> _Claim | None:
        """Reserve event numbers for a job's last entries; None if the session cannot reserve numbers now."""
        session = self.session
        if (
            any(entry.kind == "child" for entry in entries)
            or session.must_assemble(entries[-1])
            or self.hides_credentials
            or not session.claim_numbers()
        ):
            return None
        sent = [
            (number, entry)
            for number, entry in enumerate(entries, first)
            if entry.kind in FRAME_TYPES and not session.excludes(entry)
        ]
        return _Claim(self, sent)

    def push(self, first: int, entries: Sequence[JobEntry]) -> None:
        """Queue entries for the session; `first` is the number of the first one in the job's log."""
        self.next = first + len(entries)
        session = self.session
        for number, entry in enumerate(entries, first):
            if entry.kind in FRAME_TYPES and (not self.mode & OUTCOME or _belongs_to_outcome(entry)):
                session.enqueue_event(self, number, entry, hides_credentials=self.hides_credentials)
            elif entry.kind == "child" and self.mode == SUBMITTED:
                session.follow_child(entry.payload)

    def stop(self) -> None:
        """Stop pushing entries."""
        if self._live:
            self._live = False
            job = self._jobs.get(self.job_id)
            if job is not None and self in job.followers:
                job.followers.remove(self)
        if self._task is not None:
            self._task.cancel()
            self._task = None

    # -- entries that were written earlier, or by another node

    async def _follow(self) -> None:
        store = self._jobs.ledger.store
        try:
            if not store.traits.notifies:
                await self._read_log(None)
                return
            async with store.log(job_log(self.job_id)).watch() as signal:
                await self._read_log(signal)
        except Exception:  # noqa: BLE001 - the feed cannot continue, so the client has to resume the session
            _log.exception(
                "session %s: its connection is closed because job %s could not be followed",
                self.session.id,
                self.job_id,
            )
            # In a task of its own: dropping the session cancels this one.
            self._jobs.tasks.spawn(self.session.drop())

    async def _read_log(self, signal: Signal | None) -> None:
        pause, longest = _FASTEST, _SLOWEST if signal is None else _MISSED_SIGNAL
        while True:
            seen = 0 if signal is None else signal.count
            pushed = page = [] if signal is None else signal.entries(self.next)
            if not pushed:
                try:
                    page = await self._jobs.ledger.entries(self.job_id, self.next)
                except StoreError:
                    page = []
            for stored in page:
                entry = read_entry(stored.value)
                self.push(stored.seq, (entry,))
                if entry.ended and not self.session.is_subscribed(self):
                    # The session has removed the feed: this was the end of the job.
                    return
                await self.session.wait_for_room()
            if self._try_live():
                self._task = None
                return
            if page:
                pause = _FASTEST
            if not pushed and (len(page) > 1 or (page and signal is None)):
                continue
            if pause >= longest and await self._is_deleted():
                self.session.report_deleted(self.job_id)
                return
            if signal is None:
                await asyncio.sleep(pause)
            else:
                await signal.wait(seen, max(pause, _SLOWEST))
            pause = min(pause * 2, longest)

    async def _is_deleted(self) -> bool:
        """Whether the job is no longer in the store; False if the store does not answer."""
        try:
            return await self._jobs.ledger.is_deleted(self.job_id)
        except StoreError:
            return False


class _Claim:
    """Event numbers that a session has reserved for the last entries of a job."""

    __slots__ = ("_feed", "_sent")

    def __init__(self, feed: Feed, sent: Sequence[tuple[int, JobEntry]]) -> None:
        self._feed = feed
        self._sent = sent

    def add_to(self, steps: Batch) -> None:
        """Add the numbers to the job's transaction."""
        feed = self._feed
        events = tuple((feed.job_id, number, entry.kind != "event") for number, entry in self._sent)
        feed.session.add_to(steps, SessionEntry(feed.session.next_event, events))

    def send(self) -> None:
        """Send the entries, and end the subscription."""
        feed, session = self._feed, self._feed.session
        frames = [
            session.encode_entry(feed.job_id, feed.trace, entry, number)
            for number, (_, entry) in enumerate(self._sent, session.next_event)
        ]
        session.end_subscription(feed)
        session.commit_claim(frames, len(frames))

    def release(self) -> None:
        """Let the session number other events again."""
        self._feed.session.release_claim()


def _belongs_to_outcome(entry: JobEntry) -> bool:
    return entry.kind != "event" or entry.label == "result_chunk"
