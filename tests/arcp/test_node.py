"""The store fails after the start of a job was written and before its agent runs: the job still ends."""

from __future__ import annotations

import asyncio
import time
import uuid

import pytest

from amends.arcp.runtime.entries import JobSpec
from amends.stores import StoreUnavailableError
from tests.arcp.raw import connected

BUDGET = {"cost.budget": ["USD:5.00"]}


async def left_over(input, ctx):
    """Returns the rest of its budget."""
    return ctx.budget


@pytest.fixture
def failing(monkeypatch):
    """Makes the next reads of a job's history fail."""

    def fail(node, times=1):
        history, left = node.ledger.history, times

        async def failing(job_id):
            nonlocal left
            if left > 0:
                left -= 1
                raise StoreUnavailableError("away", executed="no")
            async for found in history(job_id):
                yield found

        monkeypatch.setattr(node.ledger, "history", failing)
        return lambda: left

    return fail


async def test_store_fails_while_a_queued_job_starts(store_url, begin, failing):
    """The job is requeued and runs; the node counts no job that does not run."""
    runtime = await begin(store_url, limits={"node_lease": 0.3})
    runtime.register_agent("again", left_over, repeatable=True)
    node = runtime.node
    given = JobSpec(
        job_id=f"job_{uuid.uuid4().hex}",
        principal="alice",
        session="sess_x",
        agent="again@1.0.0",
        created=time.time(),
        trace="a" * 32,
        grants={"cost.budget": ("USD:5.00",)},
        repeatable=True,
    )
    left = failing(node)
    await node.ledger.accept(given, here=True)
    await node.ledger.requeue(given, await node.ledger.tail(given.job_id))
    node.capacity.queue_wakeup.set()
    async with asyncio.timeout(100):
        while not (tail := await node.ledger.tail(given.job_id))[1].ended:
            await asyncio.sleep(0.01)
    assert left() == 0
    assert b'"result":{"USD":"5.00"}' in bytes(tail[1].payload)
    assert not node.jobs
    assert not node.capacity.running
    assert not node.quota.here


async def test_store_fails_while_a_job_is_rerun(store_url, begin, failing):
    """The submission fails with INTERNAL_ERROR; the run ends in doubt, and its key returns that."""
    runtime = await begin(store_url, limits={"node_lease": 0.3})
    raw = await connected(runtime)
    asked = {"lease_request": BUDGET, "idempotency_key": "k"}
    assert (await raw.run("flaky", {"fails": 1}, **asked))["type"] == "job.error"
    left = failing(runtime.node)
    answer = await raw.submit("flaky", {"fails": 1}, **asked)
    assert (answer["type"], answer["payload"]["code"], left()) == ("job.error", "INTERNAL_ERROR", 0)
    assert not runtime.node.quota.here
    assert not runtime.node.capacity.running
    end = await raw.run("flaky", {"fails": 1}, **asked)
    assert end["payload"]["details"]["in_doubt"] is True
    await raw.close()
