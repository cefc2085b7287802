"""
Delegation (section 10): a job of its own, under a part of the lease of the job that asks for it.

The part of a budget that is handed on is taken off the asking job's counters first, and what is left of it comes back
at the end: two children cannot both spend the same money. Who listens to the asking job learns of the child from an
entry in its log, wherever it listens.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from amends.arcp.leases import Budget, Lease
from amends.arcp.leases import read as read_lease
from amends.arcp.runtime.admission import place, spent
from amends.arcp.runtime.agents import resolve
from amends.arcp.runtime.entries import JobEntry, JobSpec, encode
from amends.arcp.runtime.result_assembly import assembled
from amends.arcp.runtime.runner import run
from amends.arcp.runtime.submission import accepted_payload
from amends.arcp.wire import new_id
from amends.dialects import arcp as dialect
from amends.errors import FaultError
from amends.errors.arcp import ARCPError, InternalError

if TYPE_CHECKING:
    from amends.arcp.runtime.context import Context
    from amends.arcp.runtime.job import Job
    from amends.arcp.runtime.node import Node

__all__ = ["delegated"]

_PAUSE = 0.05


async def delegated(
    context: Context,
    job: Job,
    agent: str,
    input: Any,
    *,
    lease: Mapping[str, Any] | None,
    expires_at: str | None,
    max_runtime: float | None,
) -> Any:
    """Serve `Context.delegate`."""
    node = job.node
    delegate_id = new_id("del")
    request = {name: list(patterns) for name, patterns in (lease or {}).items()}
    body: dict[str, Any] = {
        "delegate_id": delegate_id,
        "agent": agent,
        "input": input,
        "lease_request": request,
    }
    if expires_at is not None:
        body["lease_constraints"] = {"expires_at": expires_at}
    job.emit("delegate", body)
    await job.room()
    try:
        name, version = resolve(agent, await node.known(agent))
        narrowed = _narrowed(job, name, request, body.get("lease_constraints"))
    except ARCPError as refusal:
        # R8: it is told on the job that asked, and the agent decides.
        raise context.refused(refusal, delegate_id) from None
    order = JobSpec(
        job_id=new_id("job"),
        principal=job.order.principal,
        session=job.order.session,
        agent=f"{name}@{version}",
        created=time.time(),
        trace=job.order.trace,
        input=input,
        grants=narrowed.grants,
        expires_at=narrowed.expires_at,
        max_runtime=max_runtime,
        parent=job.order.job_id,
        delegate=delegate_id,
        repeatable=await node.repeatable(name, version),
    )
    handed_on = narrowed.budget
    job.budget = _changed(job.budget, handed_on, -1)
    job.children[order.job_id] = None
    end, left = await _done(job, order)
    job.children.pop(order.job_id, None)
    job.budget = _changed(job.budget, left, 1)
    for currency, amount in _changed(handed_on, left, -1).left.items():
        if amount > 0:
            # Already taken off; told, so that whoever adds up this job's costs has them all.
            job.emit("metric", {"name": "cost.delegated", "value": f"{amount:f}", "unit": currency})
    return await _outcome(node, order, end)


def _narrowed(job: Job, name: str, request: dict[str, Any], constraints: Any) -> Lease:
    now = time.time()
    error = job.lease.check("agent.delegate", name, now, job.budget)
    if error is not None:
        raise error
    narrowed = job.lease.narrow(read_lease(request, constraints, now=now), job.budget, now)
    if isinstance(narrowed, ARCPError):
        raise narrowed
    return narrowed


async def _done(job: Job, order: JobSpec) -> tuple[JobEntry, Budget]:
    """Have the child run, here or elsewhere, and wait for its end."""
    node = job.node
    minted = None if node.credentials is None else await node.credentials.issue(order)
    child = await place(node, order, child=True)
    if child is not None:
        child.write_down()
    job.adopted(encode(accepted_payload(order, None)))
    if child is not None:
        if node.credentials is not None and minted is not None:
            node.credentials.give(child, minted)
        waiter: asyncio.Future[JobEntry] = node.loop.create_future()
        child.waiters.append(waiter)
        node.spawn(run(child))
        await asyncio.wait([waiter])
        if not waiter.cancelled():
            return waiter.result(), child.budget
    while True:
        # It runs elsewhere, or was taken over.
        tail = await node.ledger.tail(order.job_id)
        if tail is not None and tail[1].ended:
            return tail[1], await spent(node, order)
        await asyncio.sleep(_PAUSE)


async def _outcome(node: Node, order: JobSpec, end: JobEntry) -> Any:
    """The child's result, put together from its chunks where it has some; or its error, raised."""
    payload = msgspec.json.decode(end.payload)
    if end.kind == "error":
        fault = dialect.decode(payload)
        raise InternalError() if fault is None else FaultError.from_fault(fault)
    if "result_id" not in payload:
        return payload.get("result")
    return await assembled(node.ledger, order.job_id, end.run)


def _changed(budget: Budget, other: Budget, sign: int) -> Budget:
    """The counters with another's added or taken off, in the currencies both have."""
    left = {name: amount + sign * other.left.get(name, 0) for name, amount in budget.left.items()}
    return Budget(left)
