"""
Turn a `job.submit` into a job: check the request, write the job to the store, answer the client, and start the run.

A submission with an idempotency key may refer to an existing job (section 7.2, design section 8). While that job runs,
the session subscribes to it. After a success, or after a failure that a retry would not change, the session gets the
recorded outcome. After a failure that a retry may change, the job runs again under the same id. The store decides which
of two submissions came first, so they may arrive through different nodes, processes or sessions.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from amends.arcp.leases import Budget, Lease
from amends.arcp.runtime.agents import Agent
from amends.arcp.runtime.credentials.provider import Outstanding
from amends.arcp.runtime.entries import JobEntry, JobSpec, SessionEntry, session_log
from amends.arcp.runtime.jobs.job import Job
from amends.arcp.runtime.jobs.run import conclude, run, schedule_eviction
from amends.arcp.runtime.jobs.spec import accepted_payload, check_lease_not_expired, spec_from_request
from amends.arcp.runtime.ledger import ExtraSteps, key_conflict, may_rerun
from amends.arcp.runtime.node import EndedJob
from amends.arcp.runtime.server.feeds import OUTCOME, SUBMITTED, Feed
from amends.arcp.wire import Envelope, Malformed, read_payload
from amends.errors.arcp import ARCPError, InternalError, InvalidRequestError
from amends.stores import ConflictError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node
    from amends.arcp.runtime.server.session import Session

__all__ = ["create_job", "remaining_budget", "start_or_queue", "submit"]

_TRIES = 16


async def submit(session: Session, message: Envelope) -> None:
    """
    Serve a `job.submit` request, and run the job to its end if it starts on this node.

    Raises:
        ARCPError: the request is invalid or exceeds a limit; no job was started.

    """
    node = session.node
    request = read_payload(message)
    if isinstance(request, Malformed):
        raise InvalidRequestError(request.reason)
    spec = await spec_from_request(node, session, message, request)
    if spec.key is not None and await _join_existing(session, message, spec):
        return
    quota, principal = node.quota, session.principal
    if quota.here.get(principal, 0) + quota.elsewhere.get(principal, 0) >= node.limits.jobs_per_principal:
        await quota.admit(principal)
    issued = await _issue_credentials(session, spec)
    for _ in range(_TRIES):
        # If the store combines writes, one transaction stores the job and the session's subscription.
        session_entry = SessionEntry(session.next_event, attached=((spec.job_id, 2, SUBMITTED),))
        claimed = session.claim_numbers()
        try:
            job = await start_or_queue(
                node, spec, extra=partial(session.add_to, session_entry=session_entry) if claimed else None
            )
        except ConflictError as conflict:
            if claimed:
                session.release_claim()
                if conflict.name == session_log(session.id):
                    # Another connection has resumed the session, so the client sends the request there.
                    await node.drop(session)
                    return
            # Another submission stored the same key first, or the key expired in the meantime.
            if spec.key is not None and await _join_existing(session, message, spec):
                if issued is not None and node.credentials is not None:
                    await node.credentials.revoke(spec.job_id)
                return
            continue
        except BaseException:
            if claimed:
                session.release_claim()
            raise
        feed = Feed(session, spec.job_id, spec.trace, 2 if job is None else job.last + 1, SUBMITTED)
        if job is not None:
            if issued is not None and node.credentials is not None:
                node.credentials.assign(job, issued)
            session.unwritten_job = job
        _send_accepted(session, message, spec, feed, waiting=job is None, issued=issued, recorded=claimed)
        if job is not None:
            await run(job)
        return
    raise InternalError("Another submission with the same key is in progress: submit again")


async def start_or_queue(
    node: Node, spec: JobSpec, *, child: bool = False, extra: ExtraSteps = None
) -> Job | None:
    """
    Write a job to the store, and start it here if this node has the agent and free capacity; otherwise queue it.

    A delegated job (`child`) does not need free capacity, because its parent occupies a place while it waits.

    Returns:
        The started job, or None if the job was queued.

    Raises:
        ConflictError: another job has its key.

    """
    agent = _local_agent(node, spec.agent)
    here = agent is not None and (node.has_room(spec.agent) or (child and not node.draining))
    node.quota.job_started(spec.principal)
    if here:
        node.reserve()
    if agent is not None and here and node.synchronous and spec.key is None:
        # No other task can look the job up before its agent waits. It is written at that point, or with its end.
        entry = node.ledger.accepted_entry(spec, here=True)
        job = create_job(node, spec, agent, entry, 0)
        job.outbox.append(entry)
        return job
    node.being_written.add(spec.job_id)
    try:
        await node.ledger.accept(spec, here=here, extra=extra)
    except BaseException:
        node.quota.job_ended(spec.principal)
        if here:
            node.release()
        raise
    finally:
        node.being_written.discard(spec.job_id)
    if here and agent is not None:
        return create_job(node, spec, agent, JobEntry("accepted", 1, 1, node.id, spec.created), 1)
    node.quota.job_ended(spec.principal)
    _record_queued(node, spec)
    return None


def create_job(node: Node, spec: JobSpec, agent: Agent, entry: JobEntry, last: int) -> Job:
    """Create the `Job` for a run that is in the store and has reserved its place, and add it to the node."""
    job = Job(node, spec, agent, run=entry.run, epoch=entry.epoch, last=last)
    node.add_job(job)
    return job


def _record_queued(node: Node, spec: JobSpec) -> None:
    node.quota.job_queued(spec.principal)
    node.backlog.add(spec.agent)
    node.queue_wakeup.set()


def _local_agent(node: Node, reference: str) -> Agent | None:
    return node.agents.lookup(reference)


# -- submissions with the key of an existing job


async def _join_existing(session: Session, message: Envelope, spec: JobSpec) -> bool:
    """Answer a submission with the job that its key belongs to. Returns False if there is no such job."""
    node = session.node
    ledger = node.ledger
    for _ in range(_TRIES):
        owner = await ledger.keys.get(str(spec.key))
        if owner is None:
            check_lease_not_expired(spec)
            return False
        existing, tail = await ledger.spec_and_tail(owner.id)
        if existing is None or tail is None:
            # The job was deleted before its key, or the node that stored the key never wrote the job.
            released = await ledger.release_key(str(spec.key))
            if released is not None:
                schedule_eviction(node, EndedJob(released, spec.principal, None, time.time()))
            continue
        if owner.fingerprint != spec.fingerprint:
            raise key_conflict(owner)
        last, entry = tail
        if not entry.ended:
            if not node.store.supports_transactions:
                # The node may have crashed after writing the log. Write the row that `maintain` looks for.
                if not entry.node:
                    await ledger.put_in_queue(existing)
                elif owner.id not in node.jobs:
                    await ledger.write_owner(existing, entry)
            feed = Feed(session, owner.id, existing.trace, last + 1, SUBMITTED)
            issued = None
            if node.credentials is not None and "provisioned_credentials" in session.features:
                issued = await node.credentials.outstanding(owner.id)
            _send_accepted(session, message, existing, feed, waiting=not entry.node, issued=issued)
            return True
        if not may_rerun(entry):
            start = await _outcome_start(session, owner.id, last, entry)
            _send_accepted(
                session,
                message,
                existing,
                Feed(session, owner.id, existing.trace, start, SUBMITTED | OUTCOME),
            )
            return True
        agent = _local_agent(node, existing.agent)
        here = agent is not None and node.has_room(existing.agent)
        if here:
            node.reserve()
        node.being_written.add(owner.id)
        try:
            entry = await ledger.rerun(existing, tail, here=here)
        except BaseException as error:
            if here:
                node.release()
            if isinstance(error, ConflictError):
                continue
            raise
        finally:
            node.being_written.discard(owner.id)
        feed = Feed(session, owner.id, existing.trace, last + 2, SUBMITTED)
        if here and agent is not None:
            node.quota.job_started(existing.principal)
            await _rerun(session, message, create_job(node, existing, agent, entry, last + 1), feed)
        else:
            _record_queued(node, existing)
            _send_accepted(session, message, existing, feed, waiting=True)
        return True
    raise InternalError("Another submission with the same key is in progress: submit again")


async def _rerun(session: Session, message: Envelope, job: Job, feed: Feed) -> None:
    """Start another run of a job on this node, with the rest of its budget and new credentials."""
    node, spec = session.node, job.spec
    try:
        job.budget = await remaining_budget(node, spec)
        issued = await _issue_credentials(session, spec)
    except ARCPError as error:
        _send_accepted(session, message, spec, feed)
        await conclude(job, error)
        return
    except BaseException:
        # The run is in the store but does not start here; `recover_orphans` handles it.
        job.drop()
        raise
    if issued is not None and node.credentials is not None:
        node.credentials.assign(job, issued)
    _send_accepted(session, message, spec, feed, issued=issued)
    await run(job)


async def _issue_credentials(session: Session, spec: JobSpec) -> Outstanding | None:
    node = session.node
    if node.credentials is None or "provisioned_credentials" not in session.features:
        return None
    return await node.credentials.issue(spec)


async def _outcome_start(session: Session, job_id: str, last: int, entry: JobEntry) -> int:
    """Return the number of the log entry where a job's outcome begins: its last, or the first of a streamed run."""
    if entry.kind != "result" or "result_id" not in msgspec.json.decode(entry.payload):
        return last
    if entry.run > 1:
        async for number, found in session.node.ledger.history(job_id):
            if found.run == entry.run:
                return number
    return 1


async def remaining_budget(node: Node, spec: JobSpec) -> Budget:
    """Return a job's budget less the costs that its runs so far have reported."""
    budget = Lease(spec.grants).budget
    if budget.left:
        async for _, entry in node.ledger.history(spec.job_id):
            if entry.kind == "event" and b'"metric"' in bytes(entry.payload)[:32]:
                body = msgspec.json.decode(entry.payload).get("body") or {}
                name = body.get("name", "")
                if name.startswith("cost.") and name != "cost.budget.remaining":
                    budget = budget.spend(body.get("unit"), body.get("value"))
    return budget


# -- the answer


def _send_accepted(
    session: Session,
    message: Envelope,
    spec: JobSpec,
    feed: Feed,
    *,
    waiting: bool = False,
    issued: Outstanding | None = None,
    recorded: bool = False,
) -> None:
    """
    Subscribe the session to the job, send `job.accepted`, and start the feed.

    A session that is already subscribed keeps its feed. `recorded`: the subscription is already in the session's log.
    """
    current = session.feeds.get(spec.job_id)
    if current is not None and not (current.mode | feed.mode) & OUTCOME:
        session.mark_submitted(current)
    else:
        session.subscribe(feed, recorded=recorded)
    accepted = session.encode_message(
        "job.accepted",
        accepted_payload(spec, message.id, None if issued is None else issued.wire()),
        spec.job_id,
        spec.trace,
    )
    if recorded:
        session.commit_claim([accepted], 0)
    else:
        session.enqueue(accepted)
    if session.feeds.get(spec.job_id) is feed:
        feed.begin(session.node, waiting=waiting)
