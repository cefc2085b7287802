"""
Delegation (section 10): a job starts another job under a part of its own lease, and waits for it.

The child's share of a budget is deducted from the parent's counters before the child starts, and the unused rest is
added back at its end, so two children cannot spend the same money. An entry in the parent's log announces the child to
every session that is subscribed to the parent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from amends.arcp.inputs import encode_input
from amends.arcp.leases import Budget, Lease
from amends.arcp.leases import read as read_lease
from amends.arcp.runtime.agents import resolve
from amends.arcp.runtime.cluster.membership import Membership
from amends.arcp.runtime.cluster.quota import Quota
from amends.arcp.runtime.credentials.lifecycle import CredentialLifecycle
from amends.arcp.runtime.entries import FAMILIES, STREAMED, JobEntry, JobSpec, encode
from amends.arcp.runtime.jobs.amounts import number_on_wire, remaining_budget
from amends.arcp.runtime.jobs.cancel import Cancellation
from amends.arcp.runtime.jobs.context import Context
from amends.arcp.runtime.jobs.job import Job
from amends.arcp.runtime.jobs.result_stream import assemble
from amends.arcp.runtime.jobs.run import Runner
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.arcp.runtime.jobs.submit import accepted_payload, check_max_runtime
from amends.arcp.wire import new_id
from amends.core.json_value import json_value
from amends.dialects import arcp as dialect
from amends.durable.keys import key_name
from amends.effects.arguments import canonical, digest
from amends.effects.outcomes import encode_result
from amends.effects.steps import StepRecord, replayed
from amends.errors import FaultError
from amends.errors.arcp import (
    ARCPError,
    CancelledError,
    InternalError,
    InvalidRequestError,
    PermissionDeniedError,
)
from amends.serving.effect_unknown import EffectUnknownError
from amends.stores import ConflictError

__all__ = ["Delegation", "Families", "check_not_stopping"]

_PAUSE = 0.05
_KEPT = 7 * 86_400.0
"""Seconds for which the number of a family's jobs is stored after its last delegation."""


@dataclass(eq=False)
class Delegation:
    """Runs the jobs that agents of this node delegate."""

    _jobs: RunningJobs
    _membership: Membership
    _quota: Quota
    _families: Families
    _runner: Runner
    _cancellation: Cancellation
    _credentials: CredentialLifecycle
    _default_lease: Lease

    async def delegate(
        self,
        context: Context,
        agent: str,
        input: object,
        *,
        lease: Mapping[str, Sequence[str]] | None,
        expires_at: str | None,
        max_runtime: float | None,
        key: str | None = None,
    ) -> Any:
        """Implement `Context.delegate`."""
        job = context.job
        step, child_id = _identify(context, agent, key)
        if job.epoch > 1 and _check_input(input) is None:
            known, earlier = await self._earlier(context, step, child_id, agent, input)
            if known is not None:
                return replayed(known)
            if earlier is not None:
                return await self._rejoin(context, step, earlier)
        delegate_id = new_id("del")
        request = {name: list(patterns) for name, patterns in (lease or {}).items()}
        body: dict[str, object] = {
            "delegate_id": delegate_id,
            "agent": agent,
            "input": input,
            "lease_request": request,
        }
        if expires_at is not None:
            body["lease_constraints"] = {"expires_at": expires_at}
        invalid_input = _check_input(input)
        if invalid_input is not None:
            del body["input"]
        job.emit("delegate", body)
        await job.wait_for_room()
        try:
            if invalid_input is not None:
                raise invalid_input
            check_not_stopping(job)
            check_max_runtime(max_runtime)
            name, version = resolve(agent, await self._membership.known_agents(agent))
            wanted = self._inherited(job) if lease is None else request
            narrowed = _narrow_lease(job, name, wanted, body.get("lease_constraints"))
            await self._families.admit(job)
            await self._quota.admit(job.spec.principal)
        except ARCPError as refusal:
            # R8: the refusal is reported on the delegating job, and its agent decides how to go on.
            raise context.report_refusal(refusal, delegate_id) from None
        spec = JobSpec(
            job_id=child_id,
            principal=job.spec.principal,
            session=job.spec.session,
            agent=f"{name}@{version}",
            created=time.time(),
            trace=job.spec.trace,
            input=input,
            grants=narrowed.grants,
            expires_at=narrowed.expires_at,
            max_runtime=max_runtime,
            parent=job.spec.job_id,
            root=job.spec.root or job.spec.job_id,
            depth=job.spec.depth + 1,
            delegate=delegate_id,
            repeatable=await self._membership.repeatable(name, version),
        )
        allotted = narrowed.budget
        job.budget = _adjust(job.budget, allotted, -1)
        job.children[spec.job_id] = None
        started = await asyncio.shield(self._jobs.tasks.spawn(self._start(job, spec)))
        if isinstance(started, ARCPError):
            job.children.pop(spec.job_id, None)
            job.budget = _adjust(job.budget, allotted, 1)
            raise context.report_refusal(started, delegate_id)
        return await self._settle(job, step, spec, started, allotted)

    async def _earlier(
        self, context: Context, step: str, child_id: str, agent: str, input: object
    ) -> tuple[StepRecord | None, JobSpec | None]:
        """Return the outcome of this delegation, or the request of its job, if an earlier start of this run has made it."""
        job, called = context.job, _called(agent, input)
        found = job.steps.find(step)
        if found is not None:
            context.steps.check(found[1], called)
            if found[0] == "end":
                return found[1], None
        spec = await self._jobs.ledger.spec(child_id)
        if spec is None:
            if child_id in job.steps.children:
                # It was started, and has ended and been deleted since.
                raise InternalError(
                    "The outcome of a delegated job is no longer stored",
                    retryable=False,
                    details={"job_id": child_id, "executed": "maybe", "in_doubt": True},
                )
            return None, None
        context.steps.check(StepRecord(step, _called(spec.agent, spec.input)), called)
        return None, spec

    async def _rejoin(self, context: Context, step: str, spec: JobSpec) -> Any:
        """Wait for a job that an earlier start of this run has delegated. Its share of the budget is deducted as at its start."""
        job, allotted = context.job, Lease(spec.grants, spec.expires_at).budget
        check_not_stopping(job)
        job.budget = _adjust(job.budget, allotted, -1)
        job.children[spec.job_id] = None
        return await self._settle(job, step, spec, None, allotted)

    async def _settle(
        self, job: Job, step: str, spec: JobSpec, started: _Started | None, allotted: Budget
    ) -> Any:
        """Wait for a child's end, write its cost and its outcome together to the parent's log, and return the outcome."""
        end, left = await self._wait_for_end(spec, started)
        job.children.pop(spec.job_id, None)
        job.budget = _adjust(job.budget, left, 1)
        costs = [
            # The budget already reflects this cost; the metric makes the job's total cost visible to clients.
            job.event_entry(
                "metric", {"name": "cost.delegated", "value": number_on_wire(amount), "unit": currency}
            )
            for currency, amount in _adjust(allotted, left, -1).left.items()
            if amount > 0
        ]
        called = _called(spec.agent, spec.input)
        try:
            result = await self._outcome(spec, end)
        except FaultError as error:
            if _is_in_doubt(error):
                # The child continues when its question is answered, and then this job can get its outcome and its cost.
                await job.steps.write("begin", StepRecord(step, called))
                raise
            failed = json_value(error.fault)
            record = StepRecord(step, called, failed=failed if isinstance(failed, dict) else {})
            await job.steps.write("end", record, *costs)
            raise
        encoded = encode_result(result)
        if encoded is None:
            # The child's own log has the result; without the end, a restart reads it there.
            if costs:
                await job.write_step(*costs)
            return result
        await job.steps.write("end", StepRecord(step, called, result=encoded), *costs)
        return result

    def _inherited(self, job: Job) -> dict[str, list[str]]:
        """What a job has of the default lease, for a job that it delegates without a lease."""
        default = self._default_lease.grants
        return {name: list(patterns) for name, patterns in job.lease.grants.items() if name in default}

    async def _start(self, job: Job, spec: JobSpec) -> _Started | ARCPError | None:
        """
        Start or queue the child. This runs to its end even if the parent is cancelled, so that no child is left alone.

        Returns:
            The child if it runs here; None if it was queued for another node; the error if it was refused.

        """
        try:
            issued = await self._credentials.issue(spec)
            child = await self._jobs.start_or_queue(spec, child=True)
        except BaseException as error:
            self._quota.job_ended(spec.principal)
            self._credentials.revoke_later(spec.job_id)
            if isinstance(error, ARCPError):
                return error
            raise
        job.record_child(encode(accepted_payload(spec, None)))
        started: _Started | None = None
        if child is not None:
            self._credentials.assign(child, issued)
            waiter: asyncio.Future[JobEntry] = self._jobs.tasks.loop.create_future()
            child.waiters.append(waiter)
            self._jobs.tasks.spawn(self._runner.run(child))
            started = _Started(child, waiter)
        if not job.is_running:
            # The parent has ended meanwhile, and could not cancel a child that was not stored yet.
            await self._cancellation.cancel_children([spec.job_id])
        return started

    async def _wait_for_end(self, spec: JobSpec, started: _Started | None) -> tuple[JobEntry, Budget]:
        """Wait for the child's end. Returns its last entry and its unused budget."""
        if started is not None:
            await asyncio.wait([started.waiter])
            if not started.waiter.cancelled():
                return started.waiter.result(), started.job.budget
        while True:
            # The child runs on another node, or was taken over by one.
            tail = await self._jobs.ledger.tail(spec.job_id)
            if tail is not None and tail[1].ended:
                return tail[1], await remaining_budget(self._jobs.ledger, spec)
            await asyncio.sleep(_PAUSE)

    async def _outcome(self, spec: JobSpec, end: JobEntry) -> Any:
        """Return the child's result, assembled from its chunks if it was streamed, or raise its error."""
        payload = msgspec.json.decode(end.payload)
        if end.label == STREAMED:
            result = await assemble(self._jobs.ledger, spec.job_id, end.run, payload)
            if result is None:
                raise InternalError("The result is no longer stored", details={"executed": "yes"})
            return result
        if end.kind == "error":
            fault = dialect.decode(payload)
            raise InternalError() if fault is None else FaultError.from_fault(fault)
        return payload.get("result")


def _identify(context: Context, agent: str, key: str | None) -> tuple[str, str]:
    """Return the step of a delegation, and the id of its job, which is the same in every start of this run."""
    step = context.steps.identity(f"delegate {agent.partition('@')[0]}", key)
    return step, f"job_{key_name(context.job.steps.id, step)[:26]}"


def _called(agent: str, input: object) -> str:
    return digest(canonical([agent.partition("@")[0], input]))


def _is_in_doubt(error: FaultError) -> bool:
    details = error.fault.details
    if not isinstance(details, dict):
        return False
    origin = details.get("translated_from")
    unknown = isinstance(origin, dict) and origin.get("code") == EffectUnknownError.code
    return details.get("in_doubt") is True or unknown


class _Started(NamedTuple):
    """A child that runs on this node, and a future for its last entry."""

    job: Job
    waiter: asyncio.Future[JobEntry]


def _check_input(input: object) -> InvalidRequestError | None:
    try:
        encode_input(input)
    except InvalidRequestError as error:
        return error
    return None


def _narrow_lease(job: Job, name: str, request: Mapping[str, object], constraints: object) -> Lease:
    now = job.now()
    error = job.lease.check("agent.delegate", name, now, job.budget)
    if error is not None:
        if isinstance(error, PermissionDeniedError):
            message = f"The lease of this job does not grant agent.delegate for {name}: submit it with agent.delegate={name} in its lease (on the command line: --lease agent.delegate={name})"
            error = PermissionDeniedError(message, details=error.details)
        raise error
    narrowed = job.lease.narrow(read_lease(request, constraints, now=now), job.budget, now)
    if isinstance(narrowed, ARCPError):
        raise narrowed
    return narrowed


def _adjust(budget: Budget, other: Budget, sign: int) -> Budget:
    """Return `budget` plus `sign` times `other`, in the currencies of `budget`."""
    left = {name: amount + sign * other.left.get(name, 0) for name, amount in budget.left.items()}
    return Budget(left)


@dataclass(eq=False)
class Families:
    """
    Admits delegated jobs. A family is all jobs that one submitted job, the root, has delegated directly or indirectly.

    The number of its jobs is in a row of the store, because descendants may run on any node. It counts every job that was
    admitted, also those that have ended.
    """

    _jobs: RunningJobs

    async def admit(self, parent: Job) -> None:
        """
        Count another job that `parent` delegates.

        Raises:
            PermissionDeniedError: the job would be too deep, the family has too many jobs, or its root has ended.
            ARCPError: the parent is being stopped; this is the error that it ends with.

        """
        check_not_stopping(parent)
        limits = self._jobs.limits
        if parent.spec.depth >= limits.delegation_depth:
            raise _refused(
                "The job would be delegated too deeply", "delegation_depth", limits.delegation_depth
            )
        root = parent.spec.root or parent.spec.job_id
        if root != parent.spec.job_id and not await self._is_unfinished(root):
            raise PermissionDeniedError(
                "The job at the root of this delegation has ended", details={"root_job_id": root}
            )
        await self._count(root)
        check_not_stopping(parent)

    async def _is_unfinished(self, root: str) -> bool:
        job = self._jobs.get(root)
        if job is not None:
            return job.is_running and job.stopping is None
        tail = await self._jobs.ledger.tail(root)
        return tail is not None and not tail[1].ended

    async def _count(self, root: str) -> None:
        limit, table = self._jobs.limits.jobs_per_root, self._jobs.ledger.store.table(FAMILIES)
        while True:
            row = await table.get(root)
            count = 0 if row is None else int(row.value)
            if count >= limit:
                raise _refused("The root of this delegation has too many jobs", "jobs_per_root", limit)
            revision = 0 if row is None else row.revision
            with suppress(ConflictError):
                await table.put(root, str(count + 1).encode(), revision=revision, expires_in=_KEPT)
                return


def check_not_stopping(job: Job) -> None:
    """
    Check that a job may still delegate.

    Raises:
        ARCPError: it is being stopped, or it has ended.

    """
    if job.stopping is not None:
        raise job.stopping
    if not job.is_running:
        raise CancelledError("The job has ended")


def _refused(why: str, limit: str, value: int) -> ARCPError:
    return PermissionDeniedError(why, details={"limit": limit, "value": value})
