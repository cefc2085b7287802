"""A runtime: its arguments, its start, and its end."""

from __future__ import annotations

import asyncio

import pytest

from amends import stores
from amends.arcp import Limits, Runtime
from amends.arcp.transports.memory import pair
from tests.arcp.agents import register
from tests.arcp.raw import TOKENS, connected
from tests.arcp.test_runtime_edges import resumed


def test_authentication_must_be_configured():
    """A runtime without authentication cannot be created."""
    for options in (
        {},
        {"tokens": "t", "authenticate": lambda token: "x"},
        {"tokens": []},
        {"tokens": {"": "x"}},
    ):
        with pytest.raises(ValueError):
            Runtime(**options)


async def test_a_runtime_is_started_once_and_before_it_serves():
    """Misuse raises."""
    runtime = Runtime(tokens=TOKENS)
    ours, theirs = pair()
    with pytest.raises(RuntimeError):
        await runtime.serve(theirs)
    assert await ours.receive() is None
    await runtime.stop()
    await runtime.abandon()
    async with runtime:
        with pytest.raises(RuntimeError):
            await runtime.start()
    # It can be started again after it was stopped.
    async with register(Runtime(tokens=TOKENS)) as again:
        raw = await connected(again)
        assert (await raw.run("echo", 1))["payload"]["result"] == 1
        await raw.close()


async def test_a_store_that_cannot_be_opened(tmp_path):
    """The runtime does not start, and keeps nothing open."""
    (tmp_path / "file").write_text("not a store")
    runtime = Runtime(f"sqlite:///{tmp_path / 'file'}", tokens=TOKENS)
    with pytest.raises(stores.StoreError):
        await runtime.start()


async def test_a_closed_event_loop_leaves_the_job_in_doubt(sqlite_url, begin):
    """If tasks are cancelled from outside, no end is written; the next node ends the job in doubt."""
    limits = Limits(node_lease=0.4, drain=0.0)
    ended = register(Runtime(sqlite_url, tokens=TOKENS, limits=limits))
    await ended.start()
    raw = await connected(ended)
    job_id = (await raw.submit("waiting"))["payload"]["job_id"]
    await raw.until("job.event")
    job = ended._node.jobs[job_id]
    job.task.cancel()
    await asyncio.wait([job.task])
    assert job_id in ended._node.jobs
    await ended.abandon()
    raw2 = await resumed(await begin(sqlite_url, limits={"node_lease": 0.4}), raw)
    end = await raw2.end(job_id)
    assert end["payload"]["details"]["in_doubt"] is True
    await raw2.close()


async def test_jobs_do_not_see_each_others_context(begin):
    """Context variables that an agent sets stay its own over every wait; each job has a task of its own."""
    from contextvars import ContextVar

    variable = ContextVar("variable", default="untouched")
    tasks = []

    async def setting(input, ctx):
        before = variable.get()
        token = variable.set(input)
        if input != "at once":
            await asyncio.sleep(0.01)
        tasks.append(asyncio.current_task())
        inside = variable.get()
        if input == "reset":
            variable.reset(token)
        return [before, inside, variable.get()]

    runtime = await begin()
    runtime.register_agent("setting", setting)
    raw = await connected(runtime)
    for input in ("at once", "waits", "at once", "reset", "at once"):
        after = "untouched" if input == "reset" else input
        assert (await raw.run("setting", input))["payload"]["result"] == ["untouched", input, after]
    assert len(set(tasks)) == len(tasks)
    assert None not in tasks
    await raw.close()
