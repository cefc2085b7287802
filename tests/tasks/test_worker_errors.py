"""After an unexpected error in its own code, a worker goes on taking tasks, extending leases and announcing its agents."""

import asyncio

import pytest

from amends.durable import worker as worker_module
from amends.tasks import Agent, offers
from amends.tasks.run import Run
from tests.failing import first_failing
from tests.tasks.conftest import wait_until


@pytest.fixture
def failing(monkeypatch):
    """Makes a method fail the first three times."""
    monkeypatch.setattr(worker_module, "_PAUSE", 0.01)
    return lambda owner, name: first_failing(monkeypatch, owner, name, 3)


def worker():
    agent = Agent("worker")

    @agent.capability
    async def work(payload):
        await asyncio.sleep(payload)
        return "done"

    return agent


async def test_taking_tasks_goes_on(open_orchestrator, failing):
    failed = failing(worker_module.Worker, "_take")
    orchestrator = await open_orchestrator(worker())
    await wait_until(failed)
    handle = await orchestrator.submit("work", 0.0)
    assert (await asyncio.wait_for(handle.wait(), 60)).result == "done"


async def test_extending_leases_goes_on(open_orchestrator, failing):
    """A task that takes longer than a lease is not taken over."""
    failed = failing(Run, "read_commands")
    agent, go_on = Agent("holder"), asyncio.Event()

    @agent.capability
    async def hold(payload):
        await go_on.wait()
        return "done"

    orchestrator = await open_orchestrator(agent, lease=2.0)
    handle = await orchestrator.submit("hold")
    await wait_until(failed)
    await asyncio.sleep(2.2)  # longer than the lease
    go_on.set()
    assert (await asyncio.wait_for(handle.wait(), 60)).result == "done"


async def test_announcing_goes_on(open_orchestrator, failing, monkeypatch):
    """The row of the worker is written again after the failures."""
    monkeypatch.setattr(offers, "_EXPIRES", 0.3)
    orchestrator = await open_orchestrator(worker())
    rows, name = orchestrator.store.table("tasks.workers"), orchestrator._registry.worker
    failed = failing(offers.Offers, "announce")
    row = await rows.get(name)
    before = 0 if row is None else row.revision
    await wait_until(failed)

    async def announced():
        row = await rows.get(name)
        return row is not None and row.revision > before

    await wait_until(announced)
