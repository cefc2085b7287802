"""Looking at jobs (sections 6.6 and 7.6): listing them, and listening to one that was asked for elsewhere."""

from __future__ import annotations

import inspect
import logging
from typing import TYPE_CHECKING, Any

from amends.arcp.leases import Lease
from amends.arcp.runtime.admission import spent
from amends.arcp.runtime.entries import JobSpec, Summary
from amends.arcp.runtime.feeds import SUBMITTED, Feed
from amends.arcp.runtime.runner import status_of
from amends.arcp.wire import Envelope, Malformed, read_payload, seconds_of, text_of
from amends.arcp.wire.messages import Filter, JobEntry, ListJobs, Subscribed
from amends.errors.arcp import InvalidRequestError, JobNotFoundError, PermissionDeniedError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node
    from amends.arcp.runtime.session import Session

__all__ = ["listed", "may_observe", "subscribe", "unsubscribe"]

_audit = logging.getLogger("amends.arcp.audit")
_PAGE, _LARGEST = 100, 1_000


async def may_observe(node: Node, principal: str, owner: str) -> bool:
    """Whether one principal may see another's jobs: nobody may, unless a policy says so (section 14)."""
    if principal == owner:
        return True
    if node.may_observe is None:
        return False
    answer = node.may_observe(principal, owner)
    return (await answer if inspect.isawaitable(answer) else answer) is True


# -- listing


async def listed(session: Session, message: Envelope) -> None:
    """Serve `session.list_jobs`: newest first, a page at a time."""
    request = read_payload(message)
    if isinstance(request, Malformed):
        raise InvalidRequestError(request.reason)
    limit = _PAGE if request.limit is None else request.limit
    if not 0 < limit <= _LARGEST:
        raise InvalidRequestError("A page has 1 to 1000 jobs", details={"field": "limit"})
    rows = await _found(session, request)
    page = rows[:limit]
    # Written as it stands: a page without jobs says so.
    answer: dict[str, Any] = {"request_id": message.id, "jobs": [_entry(row) for row in page]}
    if len(rows) > limit:
        answer["next_cursor"] = f"{page[-1].created!r}/{page[-1].job_id}"
    session.say("session.jobs", answer)


async def _found(session: Session, request: ListJobs) -> list[Summary]:
    node, principal = session.node, session.principal
    wanted = request.filter or Filter()
    after = None if wanted.created_after is None else seconds_of(wanted.created_after)
    if wanted.created_after is not None and after is None:
        raise InvalidRequestError("created_after is a time in UTC", details={"field": "filter.created_after"})
    cursor = None if request.cursor is None else _place(request.cursor)
    found: dict[str, Summary] = {}
    # Ended ones first: a job that ends in between is then seen at least once.
    own = principal if node.may_observe is None else None
    async for row in node.ledger.ended(own):
        found[row.job_id] = row
    async for _, row in node.ledger.active():
        found[row.job_id] = row
    rows: list[Summary] = []
    allowed: dict[str, bool] = {}
    for row in found.values():
        if cursor is not None and (row.created, row.job_id) >= cursor:
            continue
        if not _fits(row, wanted, after):
            continue
        if row.principal not in allowed:
            allowed[row.principal] = await may_observe(node, principal, row.principal)
        if allowed[row.principal]:
            rows.append(row)
    rows.sort(key=lambda row: (row.created, row.job_id), reverse=True)
    return rows


def _place(cursor: str) -> tuple[float, str]:
    """Where a page ended."""
    created, _, job_id = cursor.partition("/")
    try:
        return float(created), job_id
    except ValueError:
        raise InvalidRequestError("The cursor is none of ours", details={"field": "cursor"}) from None


def _fits(row: Summary, wanted: Filter, after: float | None) -> bool:
    name = row.agent.partition("@")[0]
    return (
        (not wanted.status or row.status in wanted.status)
        and (wanted.agent is None or wanted.agent in {row.agent, name})
        and (after is None or row.created > after)
    )


def _entry(row: Summary) -> JobEntry:
    lease = Lease(row.grants, row.expires_at)
    created = text_of(row.created)
    return JobEntry(
        row.job_id,
        row.agent,
        row.status,
        lease.wire(),
        lease.constraints(),
        row.parent,
        created,
        created,
        row.trace,
        row.last or None,
    )


# -- listening


async def subscribe(session: Session, message: Envelope) -> None:
    """Serve `job.subscribe`. It gives no authority over the job (7.6)."""
    request = read_payload(message)
    if isinstance(request, Malformed):
        raise InvalidRequestError(request.reason)
    node = session.node
    order = await node.ledger.order(request.job_id)
    tail = None if order is None else await node.ledger.tail(request.job_id)
    if order is None or tail is None:
        raise JobNotFoundError
    allowed = await may_observe(node, session.principal, order.principal)
    _audit.info(
        "subscribe: %s to %s of %s: %s",
        session.principal,
        order.job_id,
        order.principal,
        "allowed" if allowed else "denied",
    )
    if not allowed:
        # With a policy there are jobs of others to be known of; without one, nobody learns that they exist (6.6).
        raise PermissionDeniedError if node.may_observe is not None else JobNotFoundError
    history = bool(request.history)
    start = (request.from_event_seq or 0) + 1 if history else tail[0] + 1
    # Whoever claims to have seen more than there is gets the end all the same.
    start = max(1, min(start, tail[0] if tail[1].ended and history else tail[0] + 1))
    await _tell(session, message, order, tail[0], start, history=history)


async def _tell(
    session: Session, message: Envelope, order: JobSpec, last: int, start: int, *, history: bool
) -> None:
    node = session.node
    lease = Lease(order.grants, order.expires_at)
    running = node.jobs.get(order.job_id)
    tail = await node.ledger.tail(order.job_id)
    mark = None if tail is None else tail[1]
    status = "pending"
    if mark is not None and mark.node:
        status = "running"
    if mark is not None and mark.ended:
        status = status_of(mark.kind, mark.payload)
    budget = running.budget if running is not None else await spent(node, order)
    own = session.principal == order.principal
    minted = None
    if own and node.credentials is not None and "provisioned_credentials" in session.features:
        minted = await node.credentials.outstanding(order.job_id)
    old = session.feeds.get(order.job_id)
    ended_before = mark is not None and mark.ended and tail is not None and tail[0] == last
    session.say(
        "job.subscribed",
        Subscribed(
            order.job_id,
            message.id,
            status,
            order.agent,
            lease.wire(),
            lease.constraints(),
            budget.counters() or None,
            None if minted is None else minted.wire(),
            order.parent,
            order.trace,
            session.next_event,
            history,
        ),
        trace=order.trace,
        job_id=order.job_id,
    )
    if ended_before and not history:
        return
    if old is not None and not history:
        # It listens already, and goes on where it is.
        return
    # A session that submitted the job keeps its authority when it listens again.
    feed = Feed(session, order.job_id, order.trace, start, 0 if old is None else old.mode & SUBMITTED)
    feed.guarded = not own
    session.attach(feed)
    if not session.closing:
        feed.begin(node)


async def unsubscribe(session: Session, message: Envelope) -> None:
    """Serve `job.unsubscribe`."""
    request = read_payload(message)
    if isinstance(request, Malformed):
        raise InvalidRequestError(request.reason)
    session.leave(request.job_id)
