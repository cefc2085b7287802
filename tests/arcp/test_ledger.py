"""The writes of a job on a store without transactions, interrupted and repaired."""

from __future__ import annotations

from amends.arcp.runtime.entries import ACTIVE, JobEntry, job_log
from tests.arcp.raw import connected
from tests.arcp.test_cluster import (
    accepted_entry,
    job_spec,
    terminal_entry,
    write_job,
)


async def rows(node, table):
    return [row.key async for row in node.store.table(table).scan()]


async def test_an_end_that_is_only_in_the_log(node):
    """The tables are updated from the log."""
    spec = job_spec()
    row = await write_job(node, spec, [accepted_entry(spec), terminal_entry()], "dead")
    await node.takeover.take_over("dead", row)
    assert await rows(node, ACTIVE) == []
    assert [key.rpartition("/")[2] for key in await rows(node, "arcp.jobs")] == [spec.job_id]


async def test_a_row_without_a_job(node):
    """The job was never accepted: the row is deleted."""
    spec = job_spec()
    row = await write_job(node, spec, [], "dead")
    await node.takeover.take_over("dead", row)
    assert await rows(node, ACTIVE) == []


async def test_an_active_row_of_the_previous_owner(node):
    """The job has a new owner: the old row is deleted and the job is not changed."""
    spec = job_spec()
    row = await write_job(node, spec, [accepted_entry(spec), JobEntry("started", 1, 2, "other", 0.0)], "dead")
    await node.takeover.take_over("dead", row)
    assert not [key for key in await rows(node, ACTIVE) if key.startswith("dead/")]
    assert (await node.ledger.tail(spec.job_id))[1].node == "other"


async def test_a_key_whose_job_was_deleted(begin):
    """The key can be used for a new job."""
    runtime = await begin()
    raw = await connected(runtime)
    first = await raw.run("echo", 1, idempotency_key="k")
    await runtime._node.store.log(job_log(first["job_id"])).drop()
    again = await raw.run("echo", 1, idempotency_key="k")
    assert again["job_id"] != first["job_id"]
    await raw.close()
