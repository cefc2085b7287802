"""
A session listening to a job: from which entry of the job's log on, and who brings the entries.

While the job runs on this node its commits bring them (*live*), without a task in between. What was written before, or
is written by another node, is read from the log by a task that hands over to the commits where it meets them. A job
that waits in the queue of a store nobody shares needs neither: it starts here or nowhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from amends.arcp.runtime.entries import FRAME_TYPES, JobEntry, SessionEntry, job_log
from amends.arcp.runtime.ledger import read_mark
from amends.stores import StoreError
from amends.stores.signal import Signal

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node
    from amends.arcp.runtime.session import Session

__all__ = ["OUTCOME", "SUBMITTED", "Feed"]

_log = logging.getLogger("amends.arcp")

SUBMITTED = 1
"""The session asked for the job (or repeated its key), and may cancel it."""
OUTCOME = 2
"""Only the end of the run is wanted, with the chunks its result consists of: a repeated key."""

_FASTEST, _SLOWEST = 0.02, 0.5
_UNCALLED = 5.0
"""Seconds between looks where a bell rings for every entry: for the one whose ring was lost with a connection."""


class Feed:
    """One session's hold on one job's events."""

    __slots__ = ("_task", "guarded", "job_id", "live", "mode", "next", "numbered", "session", "trace")

    def __init__(self, session: Session, job_id: str, trace: str, start: int, mode: int) -> None:
        self.session = session
        self.job_id = job_id
        self.trace = trace
        self.next = start
        """The next entry to be brought."""
        self.numbered = start
        """The first entry that has no number in the session yet."""
        self.mode = mode
        self.guarded = False
        """Another principal's job: its credentials are not for this session."""
        self.live = False
        self._task: asyncio.Task[None] | None = None

    def begin(self, node: Node, *, waiting: bool = False) -> None:
        """Bring what is there, then what comes; `waiting`: the job is known to stand in its queue."""
        job = node.jobs.get(self.job_id)
        if job is not None and job.last + 1 == self.next:
            self.live = True
            job.feeds.append(self)
        elif job is None and waiting and node.alone:
            node.idle.setdefault(self.job_id, []).append(self)
        else:
            self._task = node.spawn(self._follow(node))

    def claimed(
        self, first: int, marks: Sequence[JobEntry]
    ) -> tuple[list[tuple[int, JobEntry]], SessionEntry] | None:
        """Take a job's last entries into its own transaction: what is to be sent, and how that is written down."""
        if any(mark.kind == "child" for mark in marks) or self.session.parted(marks[-1]) or self.guarded:
            return None
        if not self.session.claim():
            return None
        told = [
            (number, mark)
            for number, mark in enumerate(marks, first)
            if mark.kind in FRAME_TYPES and not self.session.refuses(mark)
        ]
        events = tuple((self.job_id, number, mark.kind != "event") for number, mark in told)
        return told, SessionEntry(self.session.next_event, events)

    def tell(self, told: Sequence[tuple[int, JobEntry]]) -> None:
        """It was written down: send it. It ends with the job."""
        session = self.session
        frames = [
            session.framed(self.job_id, self.trace, mark, number)
            for number, (_, mark) in enumerate(told, session.next_event)
        ]
        session.ended(self)
        session.noted(frames, len(frames))

    def push(self, first: int, marks: Sequence[JobEntry]) -> None:
        """Entries from number `first` on, in order."""
        self.next = first + len(marks)
        session = self.session
        for number, mark in enumerate(marks, first):
            if mark.kind in FRAME_TYPES and (not self.mode & OUTCOME or _belongs_to_outcome(mark)):
                session.event(self, number, mark)
            elif mark.kind == "child" and self.mode == SUBMITTED:
                session.adopt(mark.payload)

    def stop(self, node: Node) -> None:
        """No more."""
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
            if not node.called:
                await self._bring(node, None)
                return
            async with node.store.log(job_log(self.job_id)).watch() as bell:
                await self._bring(node, bell)
        except Exception:  # noqa: BLE001 - nobody else would bring the rest: whoever waits for it has to come again
            _log.exception(
                "session %s loses its connection: job %s cannot be followed", self.session.id, self.job_id
            )
            # Done here, it would end with the feed it is called by.
            node.spawn(node.drop(self.session))

    async def _bring(self, node: Node, bell: Signal | None) -> None:
        pause, longest = _FASTEST, _SLOWEST if bell is None else _UNCALLED
        while True:
            seen = 0 if bell is None else bell.count
            brought = page = [] if bell is None else bell.entries(self.next)
            if not brought:
                try:
                    page = await node.ledger.entries(self.job_id, self.next)
                except StoreError:
                    page = []
            for entry in page:
                mark = read_mark(entry.value)
                self.push(entry.seq, (mark,))
                if mark.ended and self.session.feeds.get(self.job_id) is not self:
                    # The session has taken it off its list: that was the end it waited for.
                    return
                await self.session.room()
            job = node.jobs.get(self.job_id)
            if job is not None and job.last + 1 == self.next:
                self._task = None
                self.live = True
                job.feeds.append(self)
                return
            if page:
                pause = _FASTEST
            if not brought and (len(page) > 1 or (page and bell is None)):
                continue
            if pause >= longest and await self._forgotten(node):
                self.session.detach(self.job_id)
                return
            if bell is None:
                await asyncio.sleep(pause)
            else:
                await bell.wait(seen, max(pause, _SLOWEST))
            pause = min(pause * 2, longest)

    async def _forgotten(self, node: Node) -> bool:
        """Whether there is nothing more to come; a store that does not answer does not say so, and is asked again."""
        try:
            return await node.ledger.forgotten(self.job_id)
        except StoreError:
            return False


def _belongs_to_outcome(mark: JobEntry) -> bool:
    return mark.kind != "event" or b'"kind":"result_chunk"' in bytes(mark.payload)[:64]
