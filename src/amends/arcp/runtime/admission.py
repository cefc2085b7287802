"""
From a submission to a job: what is asked for is checked, written down, told, and begun.

With a key, a submission may mean a job that is there already (section 7.2, design section 8): while that runs, the
session joins it; after a success, or a failure that a retry would not change, it is told the outcome; after one that a
retry may change, the job runs again under its id. Who is first is decided by the store, so it does not matter
through which node, process or session two submissions come.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from amends.arcp.leases import Budget, Lease
from amends.arcp.runtime.agents import Agent
from amends.arcp.runtime.credentials import Outstanding
from amends.arcp.runtime.entries import JobEntry, JobSpec, SessionEntry, session_log
from amends.arcp.runtime.feeds import OUTCOME, SUBMITTED, Feed
from amends.arcp.runtime.job import Job
from amends.arcp.runtime.ledger import Also, conflicting, repeatable
from amends.arcp.runtime.node import Ended
from amends.arcp.runtime.runner import conclude, keep, run
from amends.arcp.runtime.submission import accepted_payload, must_begin, ordered
from amends.arcp.wire import Envelope, Malformed, read_payload
from amends.errors.arcp import ARCPError, InternalError, InvalidRequestError
from amends.stores import ConflictError

if TYPE_CHECKING:
    from amends.arcp.runtime.node import Node
    from amends.arcp.runtime.session import Session

__all__ = ["begin", "place", "spent", "submit"]

_TRIES = 16


async def submit(session: Session, message: Envelope) -> None:
    """
    Serve a `job.submit` to the end of the job it leads to, where that runs here.

    Raises:
        ARCPError: it leads to none.

    """
    node = session.node
    request = read_payload(message)
    if isinstance(request, Malformed):
        raise InvalidRequestError(request.reason)
    order = await ordered(node, session, message, request)
    if order.key is not None and await _join(session, message, order):
        return
    quota, principal = node.quota, session.principal
    if quota.here.get(principal, 0) + quota.elsewhere.get(principal, 0) >= node.limits.jobs_per_principal:
        await quota.admit(principal)
    minted = await _provisioned(session, order)
    for _ in range(_TRIES):
        # Where that saves a wait, the session's listening is written down together with the job.
        entry = SessionEntry(session.next_event, attached=((order.job_id, 2, SUBMITTED),))
        claimed = session.claim()
        try:
            job = await place(node, order, also=partial(session.note, entry=entry) if claimed else None)
        except ConflictError as conflict:
            if claimed:
                session.unclaim()
                if session_log("") in conflict.what:
                    # The session goes on elsewhere, and so does whoever asked.
                    await node.drop(session)
                    return
            # Somebody was faster with the same key; or the key came to its end just now.
            if order.key is not None and await _join(session, message, order):
                if minted is not None and node.credentials is not None:
                    await node.credentials.revoke(order.job_id)
                return
            continue
        except BaseException:
            if claimed:
                session.unclaim()
            raise
        feed = Feed(session, order.job_id, order.trace, 2 if job is None else job.last + 1, SUBMITTED)
        if job is not None:
            if minted is not None and node.credentials is not None:
                node.credentials.give(job, minted)
            session.newborn = job
        _tell(session, message, order, feed, waiting=job is None, minted=minted, noted=claimed)
        if job is not None:
            await run(job)
        return
    raise InternalError("The key is contended: submit again")


async def place(node: Node, order: JobSpec, *, child: bool = False, also: Also = None) -> Job | None:
    """
    Write a job down: begun here where there is room (a delegated one needs none: its parent waits for it), else queued.

    Raises:
        ConflictError: its key is taken.

    """
    agent = _here(node, order.agent)
    here = agent is not None and (node.has_room(order.agent) or (child and not node.draining))
    node.quota.began(order.principal)
    if here:
        node.reserve()
    if agent is not None and here and node.prompt and order.key is None:
        # Nobody looks before it waits: it is written down then, or together with its end.
        mark = node.ledger.accepted(order, here=True)
        job = begin(node, order, agent, mark, 0)
        job.outbox.append(mark)
        return job
    node.placing.add(order.job_id)
    try:
        await node.ledger.accept(order, here=here, also=also)
    except BaseException:
        node.quota.ended(order.principal)
        if here:
            node.release()
        raise
    finally:
        node.placing.discard(order.job_id)
    if here and agent is not None:
        return begin(node, order, agent, JobEntry("accepted", 1, 1, node.id, order.created), 1)
    node.quota.ended(order.principal)
    _queued(node, order)
    return None


def begin(node: Node, order: JobSpec, agent: Agent, mark: JobEntry, last: int) -> Job:
    """A run that was written down, and has its place."""
    job = Job(node, order, agent, run=mark.run, epoch=mark.epoch, last=last)
    node.begun(job)
    return job


def _queued(node: Node, order: JobSpec) -> None:
    node.quota.queued(order.principal)
    node.backlog.add(order.agent)
    node.wanted.set()


def _here(node: Node, reference: str) -> Agent | None:
    return node.agents.meant(reference)


# -- what is there already


async def _join(session: Session, message: Envelope, order: JobSpec) -> bool:
    """Lead a submission to the job its key stands for; False when there is none."""
    node = session.node
    ledger = node.ledger
    for _ in range(_TRIES):
        row = await ledger.key(str(order.key))
        if row is None:
            must_begin(order)
            return False
        first, tail = await ledger.standing(row.job_id)
        if first is None or tail is None:
            # Forgotten before its key; or whoever had the key did not come to begin it.
            annulled = await ledger.annul(str(order.key))
            if annulled is not None:
                keep(node, Ended(annulled, order.principal, None, time.time()))
            continue
        if row.fingerprint != order.fingerprint:
            raise conflicting(row)
        last, mark = tail
        if not mark.ended:
            if not node.store.supports_transactions:
                # A crash may have come between its log and the rest: then the row is what the keeper looks for.
                if not mark.node:
                    await ledger.put_in_queue(first)
                elif row.job_id not in node.jobs:
                    await ledger.note_owner(first, mark)
            feed = Feed(session, row.job_id, first.trace, last + 1, SUBMITTED)
            minted = None
            if node.credentials is not None and "provisioned_credentials" in session.features:
                minted = await node.credentials.outstanding(row.job_id)
            _tell(session, message, first, feed, waiting=not mark.node, minted=minted)
            return True
        if not repeatable(mark):
            start = await _outcome(session, row.job_id, last, mark)
            _tell(session, message, first, Feed(session, row.job_id, first.trace, start, SUBMITTED | OUTCOME))
            return True
        agent = _here(node, first.agent)
        here = agent is not None and node.has_room(first.agent)
        if here:
            node.reserve()
        node.placing.add(row.job_id)
        try:
            mark = await ledger.again(first, tail, here=here)
        except BaseException as error:
            if here:
                node.release()
            if isinstance(error, ConflictError):
                continue
            raise
        finally:
            node.placing.discard(row.job_id)
        feed = Feed(session, row.job_id, first.trace, last + 2, SUBMITTED)
        if here and agent is not None:
            node.quota.began(first.principal)
            await _run_again(session, message, begin(node, first, agent, mark, last + 1), feed)
        else:
            _queued(node, first)
            _tell(session, message, first, feed, waiting=True)
        return True
    raise InternalError("The key is contended: submit again")


async def _run_again(session: Session, message: Envelope, job: Job, feed: Feed) -> None:
    """A further run of a job, begun here: what is left of its budget, credentials of its own, and then it runs."""
    node, order = session.node, job.order
    try:
        job.budget = await spent(node, order)
        minted = await _provisioned(session, order)
    except ARCPError as error:
        _tell(session, message, order, feed)
        await conclude(job, error)
        return
    except BaseException:
        # Written down, and not run: the keeper sees to it.
        node.quota.ended(order.principal)
        job.lost()
        raise
    if minted is not None and node.credentials is not None:
        node.credentials.give(job, minted)
    _tell(session, message, order, feed, minted=minted)
    await run(job)


async def _provisioned(session: Session, order: JobSpec) -> Outstanding | None:
    node = session.node
    if node.credentials is None or "provisioned_credentials" not in session.features:
        return None
    return await node.credentials.issue(order)


async def _outcome(session: Session, job_id: str, last: int, mark: JobEntry) -> int:
    """Where the outcome of a job begins in its log: at its end, or where the chunks of its result may be."""
    if mark.kind != "result" or "result_id" not in msgspec.json.decode(mark.payload):
        return last
    if mark.run > 1:
        async for number, found in session.node.ledger.history(job_id):
            if found.run == mark.run:
                return number
    return 1


async def spent(node: Node, order: JobSpec) -> Budget:
    """What its runs so far have left of a job's budget: what is spent is spent."""
    budget = Lease(order.grants).budget
    if budget.left:
        async for _, mark in node.ledger.history(order.job_id):
            if mark.kind == "event" and b'"metric"' in bytes(mark.payload)[:32]:
                body = msgspec.json.decode(mark.payload).get("body") or {}
                name = body.get("name", "")
                if name.startswith("cost.") and name != "cost.budget.remaining":
                    budget = budget.spend(body.get("unit"), body.get("value"))
    return budget


# -- what is told


def _tell(
    session: Session,
    message: Envelope,
    order: JobSpec,
    feed: Feed,
    *,
    waiting: bool = False,
    minted: Outstanding | None = None,
    noted: bool = False,
) -> None:
    """Listen, then say what was accepted, then bring what happens. Who listens already goes on where it is."""
    listening = session.feeds.get(order.job_id)
    if listening is not None and not (listening.mode | feed.mode) & OUTCOME:
        session.entitle(listening)
    else:
        session.attach(feed, noted=noted)
    accepted = session.written(
        "job.accepted",
        accepted_payload(order, message.id, None if minted is None else minted.wire()),
        order.job_id,
        order.trace,
    )
    if noted:
        session.noted([accepted], 0)
    else:
        session.post(accepted)
    if session.feeds.get(order.job_id) is feed:
        feed.begin(session.node, waiting=waiting)
