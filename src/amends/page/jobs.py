"""ARCP jobs on the page: a list as trees of delegations, with what is left of budgets, and cancelling them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from amends.core.redaction import redact
from amends.page.sources import Opened
from amends.recorder.traces import stamp
from amends.stores.contract import Store

if TYPE_CHECKING:
    from amends.arcp.runtime.entries import JobSpec, Summary
    from amends.arcp.runtime.ledger import Ledger
    from amends.arcp.runtime.runtime import Runtime

__all__ = ["JobSource", "cancel_job", "list_jobs", "read_job"]

_LISTED = 200
_TONES = {"success": "good", "error": "bad", "timed_out": "bad", "cancelled": "doubt"}
_STEP_TONES = {"done": "good", "failed": "bad", "doubt": "doubt"}
_DEEPEST = 4


class JobSource(Opened["Ledger"]):
    """The ledger of a running runtime, or of the store that runtimes share."""

    def __init__(self, source: Runtime | Store | str) -> None:
        """
        Args:
            source: a started runtime, an open store, or a store's URL.

        """
        super().__init__()
        self._source = source

    async def _open(self, stack: AsyncExitStack) -> Ledger:
        from amends import stores
        from amends.arcp.runtime.ledger import Ledger
        from amends.arcp.runtime.limits import Limits
        from amends.arcp.runtime.runtime import Runtime

        source = self._source
        if isinstance(source, Runtime):
            if source.node is None:
                raise RuntimeError("start the runtime before the page is opened")
            return source.node.ledger
        if isinstance(source, str):
            source = await stack.enter_async_context(await stores.open(source))
        return Ledger(source, "", Limits())

    async def cancel(self, spec: JobSpec) -> None:
        """Cancel a job: at the runtime, or by its store, which its runtimes read."""
        from amends.arcp.runtime.jobs.cancel import cancel_in_store
        from amends.arcp.runtime.limits import Limits

        reason = "cancelled on the page"
        node = getattr(self._source, "node", None)
        if node is not None:
            await node.cancellation.cancel(spec, reason)
        else:
            await cancel_in_store(await self.get(), spec, reason, Limits())


async def list_jobs(ledger: Ledger) -> list[dict[str, object]]:
    """Return the newest jobs, each before those that it delegated to."""
    found: dict[str, Summary] = {}
    async for _, summary in ledger.active():
        found[summary.job_id] = summary
    async for summary in ledger.ended():
        found[summary.job_id] = summary
    newest = sorted(found.values(), key=lambda each: -each.created)[:_LISTED]
    listed = {each.job_id for each in newest}
    children: dict[str | None, list[Summary]] = {}
    for each in newest:
        children.setdefault(each.parent if each.parent in listed else None, []).append(each)
    stack = [(0, each) for each in reversed(children.get(None, []))]
    rows = []
    while stack:
        depth, each = stack.pop()
        rows.append(await _row(ledger, each, depth))
        stack += [(depth + 1, child) for child in children.get(each.job_id, [])]
    return rows


async def _row(ledger: Ledger, summary: Summary, depth: int) -> dict[str, object]:
    return {
        "id": summary.job_id,
        "depth": min(depth, _DEEPEST),
        "agent": summary.agent,
        "status": summary.status,
        "tone": _TONES.get(summary.status, "wait"),
        "created": stamp(summary.created),
        "trace": summary.trace,
        "budget": await _budget(ledger, summary),
        "over": bool(summary.ended),
    }


async def _budget(ledger: Ledger, summary: Summary) -> str:
    """Return what is left of a job's budget, and of how much."""
    from amends.arcp.leases import Lease
    from amends.arcp.runtime.jobs.amounts import remaining_budget

    if "cost.budget" not in summary.grants:
        return ""
    spec = await ledger.spec(summary.job_id)
    if spec is None:
        return ""
    whole = Lease(spec.grants).budget.left
    left = (await remaining_budget(ledger, spec)).left
    return ", ".join(f"{amount:g} of {whole[name]:g} {name}" for name, amount in left.items())


async def read_job(ledger: Ledger, id: str) -> dict[str, object] | None:
    """Return a job with its steps, without their values; None if there is none."""
    from amends.arcp.runtime.jobs.answers import read_steps
    from amends.arcp.runtime.jobs.outcome import status_of

    spec, tail = await ledger.spec_and_tail(id)
    if spec is None or tail is None:
        return None
    status = status_of(tail[1]) if tail[1].ended else "running" if tail[1].node else "pending"
    steps = [
        {
            "step": redact(step.step),
            "state": step.state,
            "tone": _STEP_TONES.get(step.state, "wait"),
            "attempts": step.attempts,
            "since": stamp(step.since),
            "until": None if step.until is None else stamp(step.until),
            "question": None if step.question is None else redact(step.question),
            "author": step.author,
        }
        for step in await read_steps(ledger, id)
    ]
    tone = _TONES.get(status, "wait")
    return {"id": id, "agent": spec.agent, "status": status, "tone": tone, "run": tail[1].run, "steps": steps}


async def cancel_job(source: JobSource, id: str) -> bool:
    """
    Cancel a job; return False if there is none.

    Raises:
        FaultError: the job has ended.

    """
    spec = await (await source.get()).spec(id)
    if spec is None:
        return False
    await source.cancel(spec)
    return True
