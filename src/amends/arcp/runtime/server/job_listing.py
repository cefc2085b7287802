"""Listing jobs (section 6.6), and subscribing to a job that another session submitted (section 7.6)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from amends.arcp.leases import Lease
from amends.arcp.runtime.credentials.lifecycle import CredentialLifecycle
from amends.arcp.runtime.entries import JobEntry as JobLogEntry
from amends.arcp.runtime.entries import JobSpec, Summary
from amends.arcp.runtime.jobs.amounts import counters_on_wire, remaining_budget
from amends.arcp.runtime.jobs.outcome import status_of
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.arcp.runtime.server.session import SUBMITTED, Feed, Session
from amends.arcp.wire import Envelope, seconds_of, text_of
from amends.arcp.wire.messages import Filter, JobEntry, ListJobs, Subscribe, Subscribed, Unsubscribe
from amends.errors.arcp import InvalidRequestError, JobNotFoundError, PermissionDeniedError
from amends.logs import logger
from amends.proof import Claim, Proof, rests_on

__all__ = ["JobListing", "MayObserve"]

MayObserve = Callable[[str, str], bool | Awaitable[bool]]
"""Whether one principal may see another's jobs: `(observer, owner) -> bool`."""

_audit = logger("amends.arcp.audit")
_ANSWER_SEEN = 0.1
"""Seconds within which a client has read the answer to its request."""
_PAGE, _LARGEST = 100, 1_000


@dataclass(eq=False)
class JobListing:
    """Serves the requests about jobs of other sessions."""

    _jobs: RunningJobs
    _credentials: CredentialLifecycle
    _policy: MayObserve | None

    @rests_on(Claim.OURS, Proof.SECRET, Proof.USER)
    async def may_observe(self, principal: str, owner: str) -> bool:
        """Whether one principal may see another's jobs; without a policy it may not (section 14)."""
        if principal == owner:
            return True
        if self._policy is None:
            return False
        answer = self._policy(principal, owner)
        return (await answer if inspect.isawaitable(answer) else answer) is True

    # -- listing

    async def list_jobs(self, session: Session, message: Envelope, request: ListJobs) -> None:
        """Serve `session.list_jobs`: newest first, a page at a time."""
        limit = _PAGE if request.limit is None else request.limit
        if not 0 < limit <= _LARGEST:
            raise InvalidRequestError("The limit must be between 1 and 1000", details={"field": "limit"})
        rows = await self._find_jobs(session, request)
        page = rows[:limit]
        more = len(rows) > limit
        # Dicts rather than the message structs, because clients need the empty members too.
        answer: dict[str, object] = {
            "request_id": message.id,
            "jobs": [self._listing_row(row) for row in page],
            "next_cursor": f"{page[-1].created!r}/{page[-1].job_id}" if more else None,
        }
        session.send_message("session.jobs", answer)

    def _listing_row(self, row: Summary) -> dict[str, object]:
        lease = Lease(row.grants, row.expires_at)
        created = text_of(row.created)
        here = self._jobs.get(row.job_id)
        entry = JobEntry(
            row.job_id,
            row.agent,
            row.status,
            lease.wire(),
            lease.constraints(),
            created_at=created,
            submitted_at=created,
            trace_id=row.trace,
            last_event_seq=row.last if here is None else here.last,
        )
        return {**msgspec.to_builtins(entry), "lease": lease.wire(), "parent_job_id": row.parent}

    async def _find_jobs(self, session: Session, request: ListJobs) -> list[Summary]:
        principal = session.principal
        wanted = request.filter or Filter()
        after = None if wanted.created_after is None else seconds_of(wanted.created_after)
        if wanted.created_after is not None and after is None:
            raise InvalidRequestError(
                "created_after is a time in UTC", details={"field": "filter.created_after"}
            )
        cursor = None if request.cursor is None else _parse_cursor(request.cursor)
        found: dict[str, Summary] = {}
        # Read ended jobs first: a job that ends in between is then found at least once.
        own = principal if self._policy is None else None
        async for row in self._jobs.ledger.ended(own):
            found[row.job_id] = row
        async for _, row in self._jobs.ledger.active():
            found[row.job_id] = row
        rows: list[Summary] = []
        allowed: dict[str, bool] = {}
        for row in found.values():
            if cursor is not None and (row.created, row.job_id) >= cursor:
                continue
            if not _matches(row, wanted, after):
                continue
            if row.principal not in allowed:
                allowed[row.principal] = await self.may_observe(principal, row.principal)
            if allowed[row.principal]:
                rows.append(row)
        rows.sort(key=lambda row: (row.created, row.job_id), reverse=True)
        return rows

    # -- subscribing

    async def subscribe(self, session: Session, message: Envelope, request: Subscribe) -> None:
        """Serve `job.subscribe`. A subscription gives no authority over the job (7.6)."""
        spec = await self._jobs.ledger.spec(request.job_id)
        tail = None if spec is None else await self._jobs.ledger.tail(request.job_id)
        if spec is None or tail is None:
            raise JobNotFoundError
        allowed = await self.may_observe(session.principal, spec.principal)
        _audit.info(
            "subscribe: %s to %s of %s: %s",
            session.principal,
            spec.job_id,
            spec.principal,
            "allowed" if allowed else "denied",
        )
        if not allowed:
            # With a policy, principals may know of other jobs; without one, they must not learn that a job exists (6.6).
            raise PermissionDeniedError if self._policy is not None else JobNotFoundError
        history = bool(request.history)
        start = (request.from_event_seq or 0) + 1 if history else tail[0] + 1
        if history and tail[1].run > 1:
            # The end of an earlier run would be taken for the end of the job.
            start = max(start, await self._first_of_run(spec.job_id, tail[1].run))
        # A client that claims to have seen entries beyond the end still gets the end.
        start = max(1, min(start, tail[0] if tail[1].ended and history else tail[0] + 1))
        await self._send_subscribed(session, message, spec, tail[1], start, history=history)

    async def _first_of_run(self, job_id: str, run: int) -> int:
        """Return the number of the entry that begins a run."""
        async for number, entry in self._jobs.ledger.history(job_id):
            if entry.run == run:
                return number
        return 1

    async def _send_subscribed(
        self,
        session: Session,
        message: Envelope,
        spec: JobSpec,
        entry: JobLogEntry,
        start: int,
        *,
        history: bool,
    ) -> None:
        lease = Lease(spec.grants, spec.expires_at)
        running = self._jobs.get(spec.job_id)
        status = status_of(entry) if entry.ended else "running" if entry.node else "pending"
        budget = running.budget if running is not None else await remaining_budget(self._jobs.ledger, spec)
        own = session.principal == spec.principal
        issued = None
        if own and "provisioned_credentials" in session.features:
            issued = await self._credentials.outstanding(spec.job_id)
        old = session.feeds.get(spec.job_id)
        session.send_message(
            "job.subscribed",
            Subscribed(
                spec.job_id,
                message.id,
                status,
                spec.agent,
                lease.wire(),
                lease.constraints(),
                counters_on_wire(budget, as_text=session.peer.amounts_as_text),
                None if issued is None else issued.wire(),
                spec.parent,
                spec.trace,
                session.next_event,
                history,
            ),
            trace=spec.trace,
            job_id=spec.job_id,
        )
        if not history and (entry.ended or old is not None):
            # Nothing follows, or the session is already subscribed and keeps its feed.
            return
        # A session that submitted the job may still cancel it after subscribing again.
        feed = Feed(session, spec.job_id, spec.trace, start, 0 if old is None else old.mode & SUBMITTED)
        feed.hides_credentials = not own
        session.subscribe(feed)
        if session.closing:
            return
        if session.peer.answers_slowly:
            # Its client drops events, and the end, that arrive before it has seen the answer.
            self._jobs.tasks.loop.call_later(_ANSWER_SEEN, feed.begin)
        else:
            feed.begin()

    async def unsubscribe(self, session: Session, message: Envelope, request: Unsubscribe) -> None:
        """Serve `job.unsubscribe`."""
        session.unsubscribe(request.job_id)


def _parse_cursor(cursor: str) -> tuple[float, str]:
    """Return the creation time and id of the last job on the previous page."""
    created, _, job_id = cursor.partition("/")
    try:
        return float(created), job_id
    except ValueError:
        raise InvalidRequestError("The cursor is invalid", details={"field": "cursor"}) from None


def _matches(row: Summary, wanted: Filter, after: float | None) -> bool:
    name = row.agent.partition("@")[0]
    return (
        (not wanted.status or row.status in wanted.status)
        and (wanted.agent is None or wanted.agent in {row.agent, name})
        and (after is None or row.created > after)
    )
