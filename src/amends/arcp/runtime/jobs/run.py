"""
Run an agent, and write exactly one end for its run.

The run ends once, whether the agent returns, raises, or is cancelled and does or does not stop. The first reason to stop
takes precedence over anything that the agent returns or raises later.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field

from msgspec.structs import replace

from amends.arcp.runtime.cluster.retention import EndedJob, EndedJobs
from amends.arcp.runtime.credentials.lifecycle import CredentialLifecycle
from amends.arcp.runtime.jobs.cancel import Cancellation
from amends.arcp.runtime.jobs.context import Context, Delegate
from amends.arcp.runtime.jobs.job import Job
from amends.arcp.runtime.jobs.outcome import (
    error_of,
    error_outcome,
    fault_of_run,
    is_typed,
    result_outcome,
)
from amends.arcp.runtime.jobs.running import RunningJobs
from amends.arcp.runtime.ledger import ended_key
from amends.core import recording
from amends.core.decision import State, decide
from amends.core.enums import Action
from amends.core.operation import Operation
from amends.effects.steps import enter_steps
from amends.errors import FaultError
from amends.errors import arcp as errors
from amends.logs import logger
from amends.recovery.effect_context import enter_scope
from amends.recovery.incoming import handling, left_in, traceparent
from amends.serving.tracing import further_traces

__all__ = ["Runner"]

_log = logger("amends.arcp")
_EXPIRY_SLACK = 0.5
"""Seconds in which an agent can notice the end of its lease before it is cancelled (9.5)."""


@dataclass(eq=False)
class Runner:
    """Runs the agents of one node."""

    _jobs: RunningJobs
    _ended: EndedJobs
    _cancellation: Cancellation
    _credentials: CredentialLifecycle
    delegate: Delegate = field(init=False)
    """Implements `Context.delegate`; set by the node, because delegation itself runs jobs."""
    counts: Counter[str] = field(default_factory=Counter)
    """Jobs that ended on this node, by error code; successful jobs under ""."""
    closed: bool = False
    """Whether the node was stopped, so that agents are cancelled without an end."""

    async def run(self, job: Job) -> None:
        """Run a started job to its end, in the current task, which is the job's own."""
        job.task = asyncio.current_task()
        own = job.agent.limits
        limits = (job.spec.max_runtime, self._jobs.limits.max_runtime, own.time_limit)
        limit = min((each for each in limits if each is not None), default=None)
        deadline = None if limit is None else self._jobs.tasks.loop.time() + limit
        if limit is not None:
            job.after(
                limit,
                job.stop,
                errors.TimeoutError(
                    "The job exceeded its maximum runtime", details={"max_runtime_sec": limit}
                ),
            )
        if job.spec.expires_at is not None:
            job.after(max(0.0, job.spec.expires_at - job.now()) + _EXPIRY_SLACK, self._expire, job)
        job.tries = State(started=self._jobs.tasks.loop.time())
        while True:
            context = Context(job, deadline, self._credentials, self.delegate)
            value, error = await self._call(job, context)
            if error is None or own.retry is None or not await self._wait_for_retry(job, context, error):
                break
        if job.is_running:
            await self.conclude(job, job.stopping or job.expired or error, value, context.streamed)
        job.task = None

    async def _call(self, job: Job, context: Context) -> tuple[object, FaultError | None]:
        """Call the agent once. Return its result and its error."""
        value: object = None
        error: FaultError | None = None
        try:
            # A job that runs again under its key has the same id, so that its effects are recognised.
            enter_scope(f"arcp/{job.spec.job_id}")
            waited = max(0.0, job.now() - job.spec.created)
            handled = handling(traceparent(job.spec.trace), job.spec.left, waited=waited)
            enter_steps(context.get_steps)
            with handled:
                if job.agent.streams:
                    await context.stream_from(job.agent.function(job.spec.input, context))
                else:
                    value = await job.agent.function(job.spec.input, context)
            if context.streamed is not None:
                await context.close()
        except FaultError as raised:
            error = raised
            _log.info(
                "job %s failed: %s [trace_id=%s]%s",
                job.spec.job_id,
                error.fault.code,
                job.spec.trace,
                further_traces(job.spec.trace, error.fault.trace_id, None),
            )
        except asyncio.CancelledError:
            if job.is_running and job.stopping is None:
                if self.closed or (job.task is not None and job.task.cancelling()):
                    # The event loop is shutting down. The effect of the agent so far is unknown; the node that takes
                    # the job over ends it in doubt.
                    raise
                # The agent awaited a task of its own that was cancelled.
                _log.warning(
                    "job %s failed because its agent cancelled itself (trace %s)",
                    job.spec.job_id,
                    job.spec.trace,
                )
                error = errors.InternalError()
        except (Exception, SystemExit) as raised:  # noqa: BLE001 - an agent's failure ends its job, not the runtime
            error = error_of(raised, repeatable=job.agent.repeatable or job.steps.safe_to_repeat)
            if not is_typed(raised):
                _log.error(
                    "job %s failed because its agent raised an exception (trace %s)",
                    job.spec.job_id,
                    job.spec.trace,
                    exc_info=raised,
                )
        return value, error

    async def _wait_for_retry(self, job: Job, context: Context, error: FaultError) -> bool:
        """Wait, and return True, if the run is to be repeated before the job ends (`AgentLimits.retry`)."""
        retry, state = job.agent.limits.retry, replace(job.tries, until=context.deadline)
        if retry is None or context.streams or _ends(job):
            return False
        now = self._jobs.tasks.loop.time()
        safe = job.agent.repeatable or job.steps.safe_to_repeat
        fault = fault_of_run(error, repeatable=safe)
        decision = decide(
            fault,
            policy=retry,
            state=state,
            operation=Operation(name=job.spec.agent, idempotent=safe),
            now=now,
            draw=random.random(),  # noqa: S311 - jitter is no secret
        )
        if decision.action is not Action.RETRY:
            return False
        delay = decision.delay or 0.0
        job.tries = replace(state, attempt=state.attempt + 1, waited=state.waited + delay)
        _log.info(
            "job %s: run %d of %s failed with %s and is repeated in %.1f s (trace %s)",
            job.spec.job_id,
            state.attempt,
            job.spec.agent,
            fault.code,
            delay,
            job.spec.trace,
        )
        job.emit("status", {"phase": "retrying", "message": f"{fault.code}: repeated in {delay:.1f} s"})
        try:
            await asyncio.sleep(delay)
        except asyncio.CancelledError:
            if job.stopping is None:
                raise  # the node stops, or another one has the job
            return False
        job.steps.begin_again()
        return not _ends(job)

    async def conclude(
        self,
        job: Job,
        error: FaultError | None,
        value: object = None,
        streamed: tuple[str, int] | None = None,
    ) -> None:
        """End a job: write its terminal entry, send it to subscribers, and release the job's resources."""
        limits = self._jobs.limits
        if error is not None:
            call = left_in(job.spec.left, 0.0).call
            safe = job.agent.repeatable or job.steps.safe_to_repeat
            outcome = error_outcome(error, job.run, limits.event_bytes, call, job.secrets, repeatable=safe)
        else:
            outcome = result_outcome(job.spec.job_id, job.run, value, streamed, limits)
        if await job.end(outcome):
            self.counts[outcome.code] += 1
            if error is not None:
                recording.emit(
                    "arcp runtime", "failed", error.fault, name=job.spec.agent, trace_id=job.spec.trace
                )
            self._clean_up(job)

    def _expire(self, job: Job) -> None:
        """Stop a job whose lease has expired, if its agent has not noticed that itself."""
        error = job.lease.expired(job.now())
        if error is not None and job.expired is None:
            job.stop(error)

    def conclude_abandoned(self, job: Job) -> None:
        """End a job whose agent did not stop within the grace period."""
        self._jobs.tasks.spawn(self.conclude(job, job.stopping))

    def _clean_up(self, job: Job) -> None:
        """Remove an ended job from the node, cancel its children and revoke its credentials."""
        spec = job.spec
        self._jobs.remove(job)
        self._ended.add(EndedJob(spec.job_id, ended_key(spec), spec.key, time.time()))
        if job.children:
            self._jobs.tasks.spawn(self._cancellation.cancel_children(list(job.children)))
        if job.credentials is not None:
            self._credentials.revoke_later(spec.job_id)


def _ends(job: Job) -> bool:
    """Whether something else than its agent ends a job."""
    return not job.is_running or job.stopping is not None or job.expired is not None
