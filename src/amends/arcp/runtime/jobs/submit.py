"""
Serve `job.submit`: check the request, write the job to the store, answer the client, and run the job.

The request results in a `JobSpec`, which never changes, and `job.accepted` reports it.

A submission with an idempotency key may refer to an existing job (section 7.2, design section 8). While that job runs,
the session subscribes to it. After a success, or after a failure that a retry would not change, the session gets the
recorded outcome. After a failure that a retry may change, the job runs again under the same id. The store decides which
of two submissions came first, so they may arrive through different nodes, processes or sessions.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import sha256
from random import getrandbits

import msgspec

from amends.arcp.leases import Lease
from amends.arcp.leases import read as read_lease
from amends.arcp.runtime.agents import resolve
from amends.arcp.runtime.cluster.membership import Membership
from amends.arcp.runtime.cluster.quota import Quota
from amends.arcp.runtime.cluster.retention import EndedJob, EndedJobs
from amends.arcp.runtime.credentials.lifecycle import CredentialLifecycle
from amends.arcp.runtime.credentials.provider import Outstanding
from amends.arcp.runtime.entries import STREAMED, JobEntry, JobSpec
from amends.arcp.runtime.jobs.amounts import counters_on_wire
from amends.arcp.runtime.jobs.job import Job
from amends.arcp.runtime.jobs.run import Runner
from amends.arcp.runtime.jobs.running import RunningJobs, restore
from amends.arcp.runtime.ledger import key_conflict, may_rerun
from amends.arcp.runtime.server.session import OUTCOME, SUBMITTED, Feed, Session
from amends.arcp.wire import Envelope, new_id, text_of
from amends.arcp.wire.messages import Accepted, Submit
from amends.durable.keys import key_name
from amends.errors.arcp import ARCPError, InternalError, InvalidRequestError
from amends.stores import ConflictError

__all__ = [
    "Submissions",
    "accepted_payload",
    "check_lease_not_expired",
    "check_max_runtime",
    "spec_from_request",
    "trace_id_from",
]

_TRIES = 16
_LONGEST_KEY = 256
_NO_LEASE = Lease()
_ACCEPTANCE_SEEN = 0.02
"""Seconds after which a client has read that its job was accepted, where it loses the handle of a job that ends before."""
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


@dataclass(eq=False)
class Submissions:
    """Serves the submissions of all sessions of one node."""

    _jobs: RunningJobs
    _membership: Membership
    _quota: Quota
    _ended: EndedJobs
    _runner: Runner
    _credentials: CredentialLifecycle
    _default_lease: Lease = _NO_LEASE
    """The lease of a job that is submitted without one."""

    async def submit(self, session: Session, message: Envelope, request: Submit) -> None:
        """
        Serve a `job.submit` request, and run the job to its end if it starts on this node.

        Raises:
            ARCPError: the request is invalid or exceeds a limit; no job was started.

        """
        spec = await spec_from_request(
            self._membership, session.principal, session.id, message.trace_id, request, self._default_lease
        )
        if spec.key is not None and await self._join_existing(session, message, spec):
            return
        await self._quota.admit(session.principal)
        try:
            issued = None
            if "provisioned_credentials" in session.features:
                issued = await self._credentials.issue(spec)
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
            try:
                job = await self._jobs.start_or_queue(spec)
            except ConflictError:
                # Another submission stored the same key first, or the key expired in the meantime.
                if spec.key is not None and await self._join_existing(session, message, spec):
                    if issued is not None:
                        await self._credentials.revoke(spec.job_id)
                    self._quota.job_ended(spec.principal)
                    return None
                continue
            if job is not None and issued is not None:
                self._credentials.assign(job, issued)
            start = 2 if job is None else job.last + 1
            _send_accepted(session, message, spec, start, waiting=job is None, issued=issued)
            return job
        raise InternalError("Another submission with the same key is in progress: submit again")

    # -- submissions with the key of an existing job

    async def _join_existing(self, session: Session, message: Envelope, spec: JobSpec) -> bool:
        """Answer a submission with the job that its key belongs to. Returns False if there is no such job."""
        ledger = self._jobs.ledger
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
                    self._ended.add(EndedJob(released, "", None, time.time()))
                continue
            if owner.fingerprint != spec.fingerprint:
                raise key_conflict(owner)
            last, entry = tail
            if not entry.ended:
                await self._join_unfinished(session, message, existing, tail)
                return True
            if not may_rerun(entry):
                start = await self._outcome_start(owner.id, last, entry)
                _send_accepted(session, message, existing, start, SUBMITTED | OUTCOME)
                return True
            try:
                job = await self._jobs.rerun(existing, tail)
            except ConflictError:
                continue
            if job is not None:
                await self._rerun(session, message, job, last + 2)
            else:
                _send_accepted(session, message, existing, last + 2, waiting=True)
            return True
        raise InternalError("Another submission with the same key is in progress: submit again")

    async def _join_unfinished(
        self, session: Session, message: Envelope, existing: JobSpec, tail: tuple[int, JobEntry]
    ) -> None:
        last, entry = tail
        if not self._jobs.ledger.store.traits.transactions:
            # The node may have crashed after writing the log. Write the row that maintenance looks for.
            if not entry.node:
                await self._jobs.ledger.put_in_queue(existing)
            elif existing.job_id not in self._jobs:
                await self._jobs.ledger.write_owner(existing, entry)
        issued = None
        if "provisioned_credentials" in session.features:
            issued = await self._credentials.outstanding(existing.job_id)
        _send_accepted(session, message, existing, last + 1, waiting=not entry.node, issued=issued)

    async def _rerun(self, session: Session, message: Envelope, job: Job, start: int) -> None:
        """Start another run of a job on this node, with the rest of its budget and new credentials."""
        spec = job.spec
        try:
            await restore(self._jobs.ledger, job)
            issued = None
            if "provisioned_credentials" in session.features:
                issued = await self._credentials.issue(spec)
        except ARCPError as error:
            _send_accepted(session, message, spec, start)
            await self._runner.conclude(job, error)
            return
        except BaseException:
            # The run is in the store but does not start here; the takeover of orphans handles it.
            job.drop()
            raise
        self._credentials.assign(job, issued)
        _send_accepted(session, message, spec, start, issued=issued)
        await self._runner.run(job)

    async def _outcome_start(self, job_id: str, last: int, entry: JobEntry) -> int:
        """Return the number of the log entry where a job's outcome begins: its last, or the first of a streamed run."""
        if entry.label != STREAMED:
            return last
        if entry.run > 1:
            async for number, found in self._jobs.ledger.history(job_id):
                if found.run == entry.run:
                    return number
        return 1


def _send_accepted(
    session: Session,
    message: Envelope,
    spec: JobSpec,
    start: int,
    mode: int = SUBMITTED,
    *,
    waiting: bool = False,
    issued: Outstanding | None = None,
) -> None:
    """
    Subscribe the session to the job from entry `start` of its log on, send `job.accepted`, and start the feed.

    A session that is already subscribed keeps its feed.
    """
    feed = Feed(session, spec.job_id, spec.trace, start, mode)
    current = session.feeds.get(spec.job_id)
    if current is not None and not (current.mode | feed.mode) & OUTCOME:
        session.mark_submitted(current)
    else:
        session.subscribe(feed)
    credentials = None if issued is None else issued.wire()
    payload = accepted_payload(spec, message.id, credentials, amounts_as_text=session.peer.amounts_as_text)
    session.send_message("job.accepted", payload, job_id=spec.job_id, trace=spec.trace)
    if session.peer.loses_early_ends:
        session.jobs.tasks.loop.call_later(_ACCEPTANCE_SEEN, feed.begin)
    else:
        feed.begin(waiting=waiting)


async def spec_from_request(
    membership: Membership,
    principal: str,
    session: str,
    trace: str | None,
    request: Submit,
    default_lease: Lease = _NO_LEASE,
) -> JobSpec:
    """
    Validate a submission, resolve its agent, and return the job's spec.

    Args:
        membership: the agents of all nodes.
        principal: who submits the job.
        session: the id of the session.
        trace: the trace id of the message, if it has one.
        request: the submission.
        default_lease: the lease of a submission that requests no capabilities.

    Raises:
        ARCPError: the submission is invalid, or its agent is not available.

    """
    trace = trace_id_from(trace)
    agent = membership.agents.lookup(request.agent)
    if agent is not None:
        reference, can_repeat = agent.ref, agent.repeatable
    else:
        name, version = resolve(request.agent, await membership.known_agents(request.agent))
        reference, can_repeat = f"{name}@{version}", await membership.repeatable(name, version)
    key = request.idempotency_key
    if key is not None and not 0 < len(key) <= _LONGEST_KEY:
        raise InvalidRequestError(
            "The idempotency key must have 1 to 256 characters", details={"field": "idempotency_key"}
        )
    check_max_runtime(request.max_runtime_sec)
    now = time.time()
    lease = default_lease
    if request.lease_request or request.lease_constraints:
        # With a key, this may repeat a submission whose lease has expired since. `check_lease_not_expired` checks the
        # lease if a job is about to start.
        lease_now = now if key is None else 0.0
        lease = read_lease(request.lease_request, request.lease_constraints, now=lease_now)
        if not request.lease_request:
            lease = Lease(default_lease.grants, lease.expires_at)
    return JobSpec(
        job_id=new_id("job"),
        principal=principal,
        session=session,
        agent=reference,
        created=now,
        trace=trace,
        input=request.input,
        grants=lease.grants,
        expires_at=lease.expires_at,
        key=None if key is None else key_name(principal, key),
        fingerprint="" if key is None else _fingerprint(request),
        max_runtime=request.max_runtime_sec,
        repeatable=can_repeat,
        left=request.left,
    )


def _fingerprint(request: Submit) -> str:
    """Return a digest of everything that two submissions with the same key must have in common."""
    identity = (
        request.agent,
        request.input,
        request.lease_request or {},
        request.lease_constraints or {},
        request.max_runtime_sec,
    )
    return sha256(_encode_sorted(identity)).hexdigest()


def trace_id_from(given: str | None) -> str:
    """
    Return the 32 digits of a trace id, from a trace id or a `traceparent`; a new id if there is none.

    >>> trace_id_from("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    '4bf92f3577b34da6a3ce929d0e0e4736'
    """
    if given:
        parts = given.split("-")
        found = parts[1] if len(parts) >= 4 else given
        if len(found) == 32 and _hexadecimal(found) and found != "0" * 32:
            return found
    # A trace id needs no secure random source: it is not a secret.
    return f"{getrandbits(128) or 1:032x}"


def _hexadecimal(text: str) -> bool:
    return all(digit in "0123456789abcdef" for digit in text)


def check_max_runtime(seconds: float | None) -> None:
    """
    Check the longest time that a job may run.

    Raises:
        InvalidRequestError: it is not a positive finite number.

    """
    if seconds is not None and not 0 < seconds < float("inf"):
        raise InvalidRequestError(
            "max_runtime_sec must be greater than 0", details={"field": "max_runtime_sec"}
        )


def check_lease_not_expired(spec: JobSpec) -> None:
    """
    Check that a new job's lease has not expired; a submission that repeats an accepted one is not checked.

    Raises:
        InvalidRequestError: the lease has expired.

    """
    if spec.expires_at is not None and spec.expires_at <= spec.created:
        raise InvalidRequestError(
            "The lease must expire in the future", details={"field": "lease_constraints.expires_at"}
        )


def accepted_payload(
    spec: JobSpec,
    request_id: str | None,
    credentials: list[dict[str, object]] | None = None,
    *,
    amounts_as_text: bool = False,
) -> Accepted:
    """Return the payload of `job.accepted`; apart from the request id it is the same for all submissions of a job."""
    lease: dict[str, list[str]] = {}
    constraints = budget = None
    if spec.grants or spec.expires_at is not None:
        granted = Lease(spec.grants, spec.expires_at)
        lease, constraints = granted.wire(), granted.constraints()
        budget = counters_on_wire(granted.budget, as_text=amounts_as_text)
    return Accepted(
        spec.job_id,
        spec.agent,
        lease,
        constraints,
        budget,
        credentials,
        text_of(spec.created),
        spec.trace,
        spec.parent,
        spec.delegate,
        request_id,
    )
