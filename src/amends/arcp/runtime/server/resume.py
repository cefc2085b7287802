"""
Resuming a session: read its state from its log, fence the node that had it before, and replay events.

The fence is an entry in the session's log. The previous node can no longer append to the log behind it, so it cannot
number further events; the events that it numbered before are replayed under the same numbers.
"""

from __future__ import annotations

import msgspec

from amends.arcp.runtime.credentials.provider import without_secret
from amends.arcp.runtime.entries import STREAMED, SessionEntry, encode, job_log, session_log
from amends.arcp.runtime.jobs.result_stream import with_whole_result
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.arcp.runtime.ledger import read_entry
from amends.arcp.runtime.server.session import Session
from amends.errors.arcp import InternalError, InvalidRequestError, ResumeWindowExpiredError
from amends.stores import ConflictError, Store, TrimmedError

__all__ = ["SessionState", "check_replayable", "fence", "read_state", "replay", "trace_and_owner"]

_read_session_entry = msgspec.json.Decoder(SessionEntry).decode
_PAGE = 256
_TRIES = 64


class SessionState:
    """The state of a session, computed from its log."""

    def __init__(self) -> None:
        self.next_event = 1
        self.first_kept = 1
        self.log_end = 0
        self.events: list[tuple[int, str, int]] = []
        """Event number, job id, and entry number in the job's log."""
        self.feeds: dict[str, tuple[int, int]] = {}

    def add(self, number: int, session_entry: SessionEntry) -> None:
        """Apply the next entry of the session's log."""
        if self.log_end == 0:
            # The oldest entry in the log is either its first or a snapshot.
            self.first_kept = self.next_event = session_entry.first
        if session_entry.feeds is not None:
            self.feeds = {job_id: (start, mode) for job_id, start, mode in session_entry.feeds}
        for job_id in session_entry.detached:
            self.feeds.pop(job_id, None)
        for job_id, start, mode in session_entry.attached:
            # A negative start keeps the position; only the mode changes.
            self.feeds[job_id] = (start if start >= 0 else self.feeds.get(job_id, (1, 0))[0], mode)
        for job_id, position, last in session_entry.events:
            self.events.append((self.next_event, job_id, position))
            self.next_event += 1
            if last:
                self.feeds.pop(job_id, None)
            elif job_id in self.feeds:
                self.feeds[job_id] = (position + 1, self.feeds[job_id][1])
        self.log_end = number


async def read_state(store: Store, session_id: str) -> SessionState:
    """Read the current state of a session."""
    state = SessionState()
    await _read_further(store, session_id, state)
    return state


async def _read_further(store: Store, session_id: str, state: SessionState) -> None:
    log = store.log(session_log(session_id))
    try:
        while page := await log.read(state.log_end + 1 if state.log_end else None, limit=_PAGE):
            for stored in page:
                state.add(stored.seq, _read_session_entry(stored.value))
    except TrimmedError:
        raise ResumeWindowExpiredError from None


async def check_replayable(store: Store, state: SessionState, seen: int) -> None:
    """
    Check that all events after `seen` can be replayed.

    Raises:
        InvalidRequestError: no event with the number `seen` was sent.
        ResumeWindowExpiredError: events after `seen` are no longer stored.

    """
    if seen >= state.next_event:
        raise InvalidRequestError("No event with that number was sent", details={"field": "last_event_seq"})
    if seen < state.first_kept - 1 or seen < 0:
        raise ResumeWindowExpiredError
    needed = {job_id: position for number, job_id, position in state.events if number > seen}
    needed.update({job_id: start - 1 for job_id, (start, _) in state.feeds.items()})
    for job_id, position in needed.items():
        bounds = await store.log(job_log(job_id)).bounds()
        if bounds.last < position or not bounds.last:
            raise ResumeWindowExpiredError


async def fence(store: Store, session_id: str, state: SessionState) -> SessionState:
    """Append a snapshot to the session's log, so that the previous node can no longer append to it."""
    log = store.log(session_log(session_id))
    for _ in range(_TRIES):
        feeds = tuple((job_id, start, mode) for job_id, (start, mode) in state.feeds.items())
        session_entry = SessionEntry(state.next_event, feeds=feeds)
        try:
            state.log_end = await log.append(encode(session_entry), last=state.log_end)
        except ConflictError:
            await _read_further(store, session_id, state)
        else:
            return state
    raise InternalError("Another connection keeps writing to the session: try again")


async def trace_and_owner(jobs: RunningJobs, job_id: str) -> tuple[str, str]:
    """Return a job's trace id and its principal; empty strings if the job does not exist."""
    job = jobs.get(job_id)
    spec = await jobs.ledger.spec(job_id) if job is None else job.spec
    return ("", "") if spec is None else (spec.trace, spec.principal)


async def replay(session: Session, events: list[tuple[int, str, int]]) -> None:
    """Send events under their original numbers, reading each job's log page by page."""
    jobs, known = session.jobs, dict[str, tuple[str, str]]()
    for begin in range(0, len(events), _PAGE):
        window = events[begin : begin + _PAGE]
        frames = []
        read_ahead: dict[tuple[str, int], bytes] = {}
        for number, job_id, position in window:
            if (job_id, position) not in read_ahead:
                # The next events are mostly of the same job, so a page contains several of them.
                read_ahead = {key: value for key, value in read_ahead.items() if key[0] != job_id}
                page = await jobs.ledger.entries(job_id, position)
                read_ahead.update({(job_id, found.seq): found.value for found in page})
            value = read_ahead.get((job_id, position))
            if value is None:
                raise ResumeWindowExpiredError
            if job_id not in known:
                known[job_id] = await trace_and_owner(jobs, job_id)
            trace, principal = known[job_id]
            entry = read_entry(value)
            if principal != session.principal:
                entry = without_secret(entry)
            if session.assembles and entry.label == STREAMED:
                entry = await with_whole_result(jobs.ledger, job_id, entry, jobs.limits.result_bytes)
            frames.append(session.encode_entry(job_id, trace, entry, number))
        await session.send(frames)
