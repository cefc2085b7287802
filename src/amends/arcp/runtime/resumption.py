"""
Where a session goes on: folded from its log, fenced against whoever had it before, and told again to its client.

From the entry on that the fence writes, the node that had the session cannot number anything, and what it numbered
until then is replayed as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from amends.arcp.runtime.credentials import discreet
from amends.arcp.runtime.entries import SessionEntry, encode, job_log, session_log
from amends.arcp.runtime.ledger import read_mark
from amends.arcp.runtime.result_assembly import whole
from amends.arcp.runtime.session import Session
from amends.errors.arcp import InternalError, InvalidRequestError, ResumeWindowExpiredError
from amends.stores import ConflictError, TrimmedError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node

__all__ = ["Place", "check", "fence", "find", "known", "replay"]

_read_batch = msgspec.json.Decoder(SessionEntry).decode
_PAGE = 256
_TRIES = 64


class Place:
    """Where a session stands."""

    def __init__(self) -> None:
        self.next_event = 1
        self.first_kept = 1
        self.log_end = 0
        self.events: list[tuple[int, str, int]] = []
        """Number, job, number in the job's log."""
        self.feeds: dict[str, tuple[int, int]] = {}

    def add(self, number: int, batch: SessionEntry) -> None:
        """The next entry of its log."""
        if self.log_end == 0:
            # The oldest entry kept: the very first, or a snapshot.
            self.first_kept = self.next_event = batch.first
        if batch.feeds is not None:
            self.feeds = {job_id: (start, mode) for job_id, start, mode in batch.feeds}
        for job_id in batch.detached:
            self.feeds.pop(job_id, None)
        for job_id, start, mode in batch.attached:
            # A negative start leaves it where it is: only who may do what has changed.
            self.feeds[job_id] = (start if start >= 0 else self.feeds.get(job_id, (1, 0))[0], mode)
        for job_id, entry, last in batch.events:
            self.events.append((self.next_event, job_id, entry))
            self.next_event += 1
            if last:
                self.feeds.pop(job_id, None)
            elif job_id in self.feeds:
                self.feeds[job_id] = (entry + 1, self.feeds[job_id][1])
        self.log_end = number


async def find(node: Node, session_id: str) -> Place:
    """Where a session stands now."""
    place = Place()
    await _read_on(node, session_id, place)
    return place


async def _read_on(node: Node, session_id: str, place: Place) -> None:
    log = node.store.log(session_log(session_id))
    try:
        while page := await log.read(place.log_end + 1 if place.log_end else None, limit=_PAGE):
            for entry in page:
                place.add(entry.seq, _read_batch(entry.value))
    except TrimmedError:
        raise ResumeWindowExpiredError from None


async def check(node: Node, place: Place, seen: int) -> None:
    """Whether everything after `seen` can still be told."""
    if seen >= place.next_event:
        raise InvalidRequestError(
            "No event of that number was ever sent", details={"field": "last_event_seq"}
        )
    if seen < place.first_kept - 1 or seen < 0:
        raise ResumeWindowExpiredError
    needed = {job_id: entry for number, job_id, entry in place.events if number > seen}
    needed.update({job_id: start - 1 for job_id, (start, _) in place.feeds.items()})
    for job_id, entry in needed.items():
        bounds = await node.store.log(job_log(job_id)).bounds()
        if bounds.last < entry or not bounds.last:
            raise ResumeWindowExpiredError


async def fence(node: Node, session_id: str, place: Place) -> Place:
    """Write a snapshot behind everything the node before has numbered; from then on it cannot."""
    log = node.store.log(session_log(session_id))
    for _ in range(_TRIES):
        feeds = tuple((job_id, start, mode) for job_id, (start, mode) in place.feeds.items())
        entry = SessionEntry(place.next_event, feeds=feeds)
        try:
            place.log_end = await log.append(encode(entry), last=place.log_end)
        except ConflictError:
            await _read_on(node, session_id, place)
        else:
            return place
    raise InternalError("The session is held by a busy connection: try again")


async def known(node: Node, job_id: str) -> tuple[str, str]:
    """The trace a job belongs to, and whose it is."""
    job = node.jobs.get(job_id)
    order = await node.ledger.order(job_id) if job is None else job.order
    return ("", "") if order is None else (order.trace, order.principal)


async def replay(session: Session, events: list[tuple[int, str, int]]) -> None:
    """Send events under the numbers they had, reading each job's log in stretches."""
    node = session.node
    jobs: dict[str, tuple[str, str]] = {}
    for begin in range(0, len(events), _PAGE):
        window = events[begin : begin + _PAGE]
        frames = []
        stretch: dict[tuple[str, int], bytes] = {}
        for number, job_id, entry in window:
            if (job_id, entry) not in stretch:
                # Events of one job stand close together: what is read ahead is mostly what comes next.
                stretch = {key: value for key, value in stretch.items() if key[0] != job_id}
                page = await node.ledger.entries(job_id, entry)
                stretch.update({(job_id, found.seq): found.value for found in page})
            value = stretch.get((job_id, entry))
            if value is None:
                raise ResumeWindowExpiredError
            if job_id not in jobs:
                jobs[job_id] = await known(node, job_id)
            trace, principal = jobs[job_id]
            mark = read_mark(value)
            if principal != session.principal:
                mark = discreet(mark)
            if session.parted(mark):
                mark = await whole(node, job_id, mark)
            frames.append(session.framed(job_id, trace, mark, number))
        await session.send(frames)
