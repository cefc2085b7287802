"""
Serve `job.submit`: check the request, write the job to the store, answer the client, and run the job.

A submission with an idempotency key may refer to an existing job (section 7.2, design section 8). While that job runs,
the session subscribes to it. After a success, or after a failure that a retry would not change, the session gets the
recorded outcome. After a failure that a retry may change, the job runs again under the same id. The store decides which
of two submissions came first, so they may arrive through different nodes, processes or sessions.
"""

from __future__ import annotations

import time
from functools import partial

from amends.arcp.runtime.cluster.membership import Membership
from amends.arcp.runtime.cluster.quota import Quota
from amends.arcp.runtime.cluster.retention import EndedJob, EndedJobs
from amends.arcp.runtime.credentials.lifecycle import CredentialLifecycle
from amends.arcp.runtime.credentials.provider import Outstanding
from amends.arcp.runtime.entries import JobEntry, JobSpec, SessionEntry, session_log
from amends.arcp.runtime.jobs.job import Job
from amends.arcp.runtime.jobs.result_stream import is_streamed
from amends.arcp.runtime.jobs.run import Runner
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.arcp.runtime.jobs.spec import accepted_payload, check_lease_not_expired, spec_from_request
from amends.arcp.runtime.jobs.submit import Launcher, restore
from amends.arcp.runtime.ledger import key_conflict, may_rerun
from amends.arcp.runtime.server.feeds import OUTCOME, SUBMITTED, Feed
from amends.arcp.runtime.server.session import Session
from amends.arcp.wire import Envelope, Malformed, read_payload
from amends.errors.arcp import ARCPError, InternalError, InvalidRequestError
from amends.stores import ConflictError

__all__ = ["Submissions"]

_TRIES = 16


class Submissions:
    """Serves the submissions of all sessions of one node."""

    def __init__(
        self,
        jobs: RunningJobs,
        membership: Membership,
        quota: Quota,
        ended: EndedJobs,
        launcher: Launcher,
        runner: Runner,
        credentials: CredentialLifecycle | None,
    ) -> None:
        self._jobs = jobs
        self._ledger = jobs.ledger
        self._membership = membership
        self._quota = quota
        self._ended = ended
        self._launcher = launcher
        self._runner = runner
        self._credentials = credentials

    async def submit(self, session: Session, message: Envelope) -> None:
        """
        Serve a `job.submit` request, and run the job to its end if it starts on this node.

        Raises:
            ARCPError: the request is invalid or exceeds a limit; no job was started.

        """
        request = read_payload(message)
        if isinstance(request, Malformed):
            raise InvalidRequestError(request.reason)
        spec = await spec_from_request(
            self._membership, session.principal, session.id, message.trace_id, request
        )
        if spec.key is not None and await self._join_existing(session, message, spec):
            return
        await self._quota.admit(session.principal)
        try:
            issued = await self._issue_credentials(session, spec)
            job = await self._start(session, message, spec, issued)
        except BaseException:
            self._quota.job_ended(session.principal)
            raise
        if job is not None:
            await self._runner.run(job)

    async def _start(
        self, session: Session, message: Envelope, spec: JobSpec, issued: Outstanding | None
    ) -> Job | None:
        """Write a job and answer its submission. Returns the job if it starts here."""
        for _ in range(_TRIES):
            # If the store combines writes, one transaction stores the job and the session's subscription.
            session_entry = SessionEntry(session.next_event, attached=((spec.job_id, 2, SUBMITTED),))
            claimed = session.claim_numbers()
            extra = partial(session.add_to, session_entry=session_entry) if claimed else None
            try:
                job = await self._launcher.start_or_queue(spec, extra=extra)
            except ConflictError as conflict:
                if claimed:
                    session.release_claim()
                    if conflict.name == session_log(session.id):
                        # Another connection has resumed the session, so the client sends the request there.
                        await session.drop()
                        self._quota.job_ended(spec.principal)
                        return None
                # Another submission stored the same key first, or the key expired in the meantime.
                if spec.key is not None and await self._join_existing(session, message, spec):
                    if issued is not None and self._credentials is not None:
                        await self._credentials.revoke(spec.job_id)
                    self._quota.job_ended(spec.principal)
                    return None
                continue
            except BaseException:
                if claimed:
                    session.release_claim()
                raise
            feed = Feed(session, spec.job_id, spec.trace, 2 if job is None else job.last + 1, SUBMITTED)
            if job is not None and issued is not None and self._credentials is not None:
                self._credentials.assign(job, issued)
            _send_accepted(session, message, spec, feed, waiting=job is None, issued=issued, recorded=claimed)
            return job
        raise InternalError("Another submission with the same key is in progress: submit again")

    # -- submissions with the key of an existing job

    async def _join_existing(self, session: Session, message: Envelope, spec: JobSpec) -> bool:
        """Answer a submission with the job that its key belongs to. Returns False if there is no such job."""
        ledger = self._ledger
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
                    self._ended.add(EndedJob(released, spec.principal, None, time.time()))
                continue
            if owner.fingerprint != spec.fingerprint:
                raise key_conflict(owner)
            last, entry = tail
            if not entry.ended:
                await self._join_unfinished(session, message, existing, tail)
                return True
            if not may_rerun(entry):
                start = await self._outcome_start(owner.id, last, entry)
                feed = Feed(session, owner.id, existing.trace, start, SUBMITTED | OUTCOME)
                _send_accepted(session, message, existing, feed)
                return True
            try:
                job = await self._launcher.rerun(existing, tail)
            except ConflictError:
                continue
            feed = Feed(session, owner.id, existing.trace, last + 2, SUBMITTED)
            if job is not None:
                await self._rerun(session, message, job, feed)
            else:
                _send_accepted(session, message, existing, feed, waiting=True)
            return True
        raise InternalError("Another submission with the same key is in progress: submit again")

    async def _join_unfinished(
        self, session: Session, message: Envelope, existing: JobSpec, tail: tuple[int, JobEntry]
    ) -> None:
        last, entry = tail
        if not self._ledger.store.traits.transactions:
            # The node may have crashed after writing the log. Write the row that maintenance looks for.
            if not entry.node:
                await self._ledger.put_in_queue(existing)
            elif existing.job_id not in self._jobs:
                await self._ledger.write_owner(existing, entry)
        feed = Feed(session, existing.job_id, existing.trace, last + 1, SUBMITTED)
        issued = None
        if self._credentials is not None and "provisioned_credentials" in session.features:
            issued = await self._credentials.outstanding(existing.job_id)
        _send_accepted(session, message, existing, feed, waiting=not entry.node, issued=issued)

    async def _rerun(self, session: Session, message: Envelope, job: Job, feed: Feed) -> None:
        """Start another run of a job on this node, with the rest of its budget and new credentials."""
        spec = job.spec
        try:
            await restore(self._ledger, job)
            issued = await self._issue_credentials(session, spec)
        except ARCPError as error:
            _send_accepted(session, message, spec, feed)
            await self._runner.conclude(job, error)
            return
        except BaseException:
            # The run is in the store but does not start here; the takeover of orphans handles it.
            job.drop()
            raise
        if issued is not None and self._credentials is not None:
            self._credentials.assign(job, issued)
        _send_accepted(session, message, spec, feed, issued=issued)
        await self._runner.run(job)

    async def _issue_credentials(self, session: Session, spec: JobSpec) -> Outstanding | None:
        if self._credentials is None or "provisioned_credentials" not in session.features:
            return None
        return await self._credentials.issue(spec)

    async def _outcome_start(self, job_id: str, last: int, entry: JobEntry) -> int:
        """Return the number of the log entry where a job's outcome begins: its last, or the first of a streamed run."""
        if not is_streamed(entry):
            return last
        if entry.run > 1:
            async for number, found in self._ledger.history(job_id):
                if found.run == entry.run:
                    return number
        return 1


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
        accepted_payload(
            spec,
            message.id,
            None if issued is None else issued.wire(),
            amounts_as_text=session.amounts_as_text,
        ),
        spec.job_id,
        spec.trace,
    )
    if recorded:
        session.commit_claim([accepted], 0)
    else:
        session.enqueue(accepted)
    if session.is_subscribed(feed):
        feed.begin(waiting=waiting)
