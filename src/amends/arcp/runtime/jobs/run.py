"""
Run an agent, and write exactly one end for its run.

The agent runs in the runner's task. The run ends once, whether the agent returns, raises, or is cancelled and does or
does not stop. The first reason to stop takes precedence over anything that the agent returns or raises later.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import msgspec

from amends.arcp.runtime.entries import encode
from amends.arcp.runtime.jobs.context import Context
from amends.arcp.runtime.jobs.job import RUNNING, Job
from amends.arcp.runtime.node import EndedJob, Node
from amends.arcp.wire import now_text
from amends.arcp.wire.messages import Result
from amends.core import recording
from amends.core.fault import Fault
from amends.dialects import arcp as dialect
from amends.dialects.translation import translate
from amends.errors import FaultError
from amends.errors import arcp as errors

__all__ = ["conclude", "error_payload", "run", "status_of"]

_log = logging.getLogger("amends.arcp")

_SLACK = 128
"""How far the number of ended jobs may exceed its limit before `evict` is started."""

_FINAL = {"CANCELLED": "cancelled", "TIMEOUT": "timed_out"}
"""Final statuses that are more specific than "error" (7.3)."""


async def run(job: Job) -> None:
    """Run a started job to its end."""
    node = job.node
    job.task = asyncio.current_task()
    limit = _shorter(job.spec.max_runtime, node.limits.max_runtime)
    context = Context(job, None if limit is None else node.loop.time() + limit)
    if limit is not None:
        job.after(
            limit,
            job.stop,
            errors.TimeoutError("The job exceeded its maximum runtime", details={"max_runtime_sec": limit}),
        )
    value: Any = None
    error: FaultError | None = None
    try:
        if job.agent.streams:
            await context.stream_from(job.agent.function(job.spec.input, context))
        else:
            value = await job.agent.function(job.spec.input, context)
        if context.streamed is not None:
            await context.close()
    except FaultError as raised:
        error = raised
    except asyncio.CancelledError:
        if job.phase is RUNNING and job.stopping is None:
            if node.closed or (job.task is not None and job.task.cancelling()):
                # The event loop is shutting down. The effect of the agent so far is unknown; the node that takes the
                # job over ends it in doubt.
                raise
            # The agent awaited a task of its own that was cancelled.
            _log.warning(
                "job %s failed because its agent cancelled itself (trace %s)", job.spec.job_id, job.spec.trace
            )
            error = errors.InternalError()
    except (Exception, SystemExit) as raised:  # noqa: BLE001 - an agent's failure ends its job, not the runtime
        _log.error(
            "job %s failed because its agent raised an exception (trace %s)",
            job.spec.job_id,
            job.spec.trace,
            exc_info=raised,
        )
        error = errors.InternalError()
    if job.phase is RUNNING:
        await conclude(job, job.stopping or job.expired or error, value, context.streamed)
    # The task may serve other jobs after this one.
    job.task = None


async def conclude(
    job: Job, error: FaultError | None, value: Any = None, streamed: tuple[str, int] | None = None
) -> None:
    """End a job: write its terminal entry, send it to subscribers, and release the job's resources."""
    node = job.node
    if error is None:
        try:
            kind, payload, status = "result", _result(job, value, streamed), "success"
        except _TooLarge:
            limit = node.limits.result_bytes
            error = errors.InternalError(
                "The result is too large to be sent in one message",
                retryable=False,
                details={"limit": "result_bytes", "value": limit},
            )
        except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as raised:
            _log.error(
                "job %s failed because its result cannot be encoded as JSON (trace %s)",
                job.spec.job_id,
                job.spec.trace,
                exc_info=raised,
            )
            error = errors.InternalError()
    if error is not None:
        kind, (payload, status) = "error", error_payload(error.fault, job.run, node.limits.event_bytes)
    if await job.end(kind, payload, status):
        node.counts["" if error is None else error.code] += 1
        if error is not None:
            recording.emit(
                "arcp runtime", "failed", error.fault, name=job.spec.agent, trace_id=job.spec.trace
            )
        _clean_up(node, job)


def _clean_up(node: Node, job: Job) -> None:
    """Remove an ended job from the node, cancel its children and revoke its credentials."""
    spec = job.spec
    node.remove_job(job)
    schedule_eviction(node, EndedJob(spec.job_id, spec.principal, spec.key, time.time()))
    if job.children:
        from amends.arcp.runtime.jobs.cancel import cancel_children

        node.spawn(cancel_children(node, list(job.children)))
    if node.credentials is not None:
        node.spawn(node.credentials.revoke(spec.job_id))


def schedule_eviction(node: Node, ended: EndedJob) -> None:
    """Add an ended job to the list of jobs that `evict` deletes when they are too old or too many."""
    retention = node.retained[ended.key is not None]
    retention.add(ended)
    if retention.excess > _SLACK:
        from amends.arcp.runtime.cluster.takeover import evict

        node.spawn(evict(node))


class _TooLarge(Exception):
    pass


def _result(job: Job, value: Any, streamed: tuple[str, int] | None) -> bytes:
    run = job.run if job.run > 1 else None
    if streamed is None:
        payload = encode(Result("success", value, completed_at=now_text(), run=run))
        if len(payload) > job.node.limits.result_bytes:
            raise _TooLarge
        return payload
    # 8.4: a streamed result has no other value. A string that the agent returns becomes its summary.
    summary = value if isinstance(value, str) else None
    return encode(
        Result(
            "success",
            result_id=streamed[0],
            result_size=streamed[1],
            summary=summary,
            completed_at=now_text(),
            run=run,
        )
    )


def error_payload(fault: Fault, run: int, limit: int) -> tuple[bytes, str]:
    """Return the payload of a terminal `job.error` (R2, R4) and the job's final status."""
    if fault.vocabulary != "arcp":
        fault, _ = translate(fault, to="arcp")
    error = dialect.encode(fault)
    status = _FINAL.get(fault.code, "error")
    error |= {"final_status": status, "completed_at": now_text()}
    if run > 1:
        error["run"] = run
    try:
        payload = encode(error)
        if len(payload) <= limit:
            return payload, status
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as raised:
        _log.warning(
            "the details of an error %s cannot be encoded as JSON and are omitted",
            fault.code,
            exc_info=raised,
        )
    error.pop("details", None)
    error["message"] = fault.message[:1000]
    return encode(error), status


def status_of(kind: str, payload: bytes) -> str:
    """Return the final status of a terminal entry."""
    status = msgspec.json.decode(payload).get("final_status")
    return status if isinstance(status, str) else ("success" if kind == "result" else "error")


def _shorter(wanted: float | None, most: float | None) -> float | None:
    return min((limit for limit in (wanted, most) if limit is not None), default=None)
