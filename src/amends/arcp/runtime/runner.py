"""
Running an agent, and making of what it does exactly one end.

Agent and runner share one task. Whatever the agent does (returns, raises, is told to stop, does not stop) the run ends
once, and the first reason to stop wins over whatever the agent says afterwards.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import msgspec

from amends.arcp.runtime.context import Context
from amends.arcp.runtime.entries import encode
from amends.arcp.runtime.job import RUNNING, Job
from amends.arcp.runtime.node import Ended, Node
from amends.arcp.wire import now_text
from amends.arcp.wire.messages import Result
from amends.core.fault import Fault
from amends.dialects import arcp as dialect
from amends.dialects.translation import translate
from amends.errors import FaultError
from amends.errors import arcp as errors

__all__ = ["conclude", "error_payload", "run", "status_of"]

_log = logging.getLogger("amends.arcp")

_SLACK = 128
"""Ended jobs beyond their number before somebody goes to forget them."""

_FINAL = {"CANCELLED": "cancelled", "TIMEOUT": "timed_out"}
"""Final statuses that say more than "error" (7.3)."""


async def run(job: Job) -> None:
    """Run a job that was begun, to its end."""
    node = job.node
    job.task = asyncio.current_task()
    limit = _shorter(job.order.max_runtime, node.limits.max_runtime)
    context = Context(job, None if limit is None else node.loop.time() + limit)
    if limit is not None:
        job.after(
            limit,
            job.stop,
            errors.TimeoutError("The job ran longer than it may", details={"max_runtime_sec": limit}),
        )
    value: Any = None
    error: FaultError | None = None
    try:
        if job.agent.streams:
            await context.stream_from(job.agent.function(job.order.input, context))
        else:
            value = await job.agent.function(job.order.input, context)
        if context.streamed is not None:
            await context.close()
    except FaultError as raised:
        error = raised
    except asyncio.CancelledError:
        if job.phase is RUNNING and job.stopping is None:
            if node.closed or (job.task is not None and job.task.cancelling()):
                # The event loop is being ended under us: what the agent has done by now nobody knows, and whoever
                # finds the job says so.
                raise
            # The agent's own doing: a task of its own was cancelled, and it waited for that.
            _log.warning("job %s: its agent cancelled itself (trace %s)", job.order.job_id, job.order.trace)
            error = errors.InternalError()
    except (Exception, SystemExit) as raised:  # noqa: BLE001 - whatever an agent raises ends its job, not the runtime
        _log.error("job %s failed (trace %s)", job.order.job_id, job.order.trace, exc_info=raised)
        error = errors.InternalError()
    if job.phase is RUNNING:
        await conclude(job, job.stopping or job.expired or error, value, context.streamed)
    # From here on the task may serve others.
    job.task = None


async def conclude(
    job: Job, error: FaultError | None, value: Any = None, streamed: tuple[str, int] | None = None
) -> None:
    """End a job: write it down, tell everybody, and let go of what it held."""
    node = job.node
    if error is None:
        try:
            kind, payload, status = "result", _result(job, value, streamed), "success"
        except _TooLarge:
            limit = node.limits.result_bytes
            error = errors.InternalError(
                "The result is too large to be sent whole",
                retryable=False,
                details={"limit": "result_bytes", "value": limit},
            )
        except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as raised:
            _log.error(
                "job %s returned no JSON value (trace %s)", job.order.job_id, job.order.trace, exc_info=raised
            )
            error = errors.InternalError()
    if error is not None:
        kind, (payload, status) = "error", error_payload(error.fault, job.run, node.limits.event_bytes)
    if await job.end(kind, payload, status):
        node.counts["" if error is None else error.code] += 1
        after(node, job)
    else:
        node.quota.ended(job.order.principal)


def after(node: Node, job: Job) -> None:
    """What follows from a job's end."""
    order = job.order
    node.gone(job)
    node.quota.ended(order.principal)
    keep(node, Ended(order.job_id, order.principal, order.key, time.time()))
    if job.children:
        from amends.arcp.runtime.cancel import cancel_children

        node.spawn(cancel_children(node, list(job.children)))
    if node.credentials is not None:
        node.spawn(node.credentials.revoke(order.job_id))


def keep(node: Node, ended: Ended) -> None:
    """Remember when an ended job is to be forgotten."""
    kept, most = (node.ended, node.limits.finished) if ended.key is None else (node.keyed, node.limits.keyed)
    kept.append(ended)
    if len(kept) > most + _SLACK and not node.evicting:
        from amends.arcp.runtime.maintenance import evict

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
    # 8.4: a streamed result is not mixed with another one; what a function returns beside it can only describe it.
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
    """The payload of a terminal `job.error` (R2, R4), and the job's final status."""
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
        _log.warning("the details of %s are no JSON value", fault.code, exc_info=raised)
    error.pop("details", None)
    error["message"] = fault.message[:1000]
    return encode(error), status


def status_of(kind: str, payload: bytes) -> str:
    """The final status in a terminal entry."""
    status = msgspec.json.decode(payload).get("final_status")
    return status if isinstance(status, str) else ("success" if kind == "result" else "error")


def _shorter(wanted: float | None, most: float | None) -> float | None:
    return min((limit for limit in (wanted, most) if limit is not None), default=None)
