"""Listing jobs (section 6.6), and subscribing to a job that another session submitted (section 7.6)."""

from __future__ import annotations

import inspect
import re
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
from amends.arcp.runtime.ledger import position_of
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
_LOOKED_AT = 5_000
"""How many ended jobs are looked at for one page. If a filter excludes most of them, the page has fewer rows, and a cursor."""
_SAME_TIME = 1e-5
"""Seconds that the order of jobs may differ from their times."""
_CURSOR = re.compile(r"[0-9a-f]{14}/[!-~]{0,128}")


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
        page, cursor = await self._find_jobs(session, request, limit)
        # Dicts rather than the message structs, because clients need the empty members too.
        answer: dict[str, object] = {
            "request_id": message.id,
            "jobs": [self._listing_row(row) for row in page],
            "next_cursor": cursor,
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

    async def _find_jobs(
        self, session: Session, request: ListJobs, limit: int
    ) -> tuple[list[Summary], str | None]:
        """
        Return the jobs of a page, and the cursor of the next one if there may be more.

        The cost depends on the jobs that have not ended and on the page. With a policy, and on a store that does not scan
        in order, all ended jobs are read.
        """
        principal = session.principal
        wanted = request.filter or Filter()
        after = None if wanted.created_after is None else seconds_of(wanted.created_after)
        if wanted.created_after is not None and after is None:
            raise InvalidRequestError(
                "created_after is a time in UTC", details={"field": "filter.created_after"}
            )
        cursor = request.cursor or ""
        if cursor and _CURSOR.fullmatch(cursor) is None:
            raise InvalidRequestError("The cursor is invalid", details={"field": "cursor"})
        allowed: dict[str, bool] = {}

        async def is_listed(row: Summary) -> bool:
            if not _matches(row, wanted, after):
                return False
            if row.principal not in allowed:
                allowed[row.principal] = await self.may_observe(principal, row.principal)
            return allowed[row.principal]

        # Read active jobs first: a job that ends in between is then found at least once.
        active = {row.job_id: row async for _, row in self._jobs.ledger.active()}
        found: dict[str, Summary] = {}
        looked_at, stopped = 0, None
        async for position, row in self._jobs.ledger.newest(
            principal if self._policy is None else None, cursor
        ):
            if after is not None and row.created < after - _SAME_TIME:
                break
            running = active.get(row.job_id)
            if running is not None and running.run > row.run:
                continue
            active.pop(row.job_id, None)
            looked_at += 1
            if await is_listed(row):
                found[position] = row
                if len(found) > limit:
                    break
            if looked_at == _LOOKED_AT:
                stopped = position
                break
        for row in active.values():
            position = position_of(row)
            if position > cursor and (stopped is None or position <= stopped) and await is_listed(row):
                found[position] = row
        positions = sorted(found)
        page = positions[:limit]
        return [found[each] for each in page], page[-1] if len(positions) > limit else stopped

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


def _matches(row: Summary, wanted: Filter, after: float | None) -> bool:
    name = row.agent.partition("@")[0]
    return (
        (not wanted.status or row.status in wanted.status)
        and (wanted.agent is None or wanted.agent in {row.agent, name})
        and (after is None or row.created > after)
    )
