"""A mistake of a worker's own, at a place nobody thought of: it goes on taking tasks, holding them and saying so."""

import asyncio

import pytest

from amends.tasks import Agent, offers
from amends.tasks import worker as worker_module
from amends.tasks.run import Run
from tests.failing import first_failing
from tests.tasks.conftest import until


@pytest.fixture
def failing(monkeypatch):
    """Makes a method fail the first few times."""
    monkeypatch.setattr(worker_module, "_PAUSE", 0.01)
    return lambda owner, name: first_failing(monkeypatch, owner, name, 3)


def worker():
    agent = Agent("worker")

    @agent.capability
    async def work(payload):
        await asyncio.sleep(payload)
        return "done"

    return agent


async def test_it_goes_on_taking(open_at, failing):
    failed = failing(worker_module.Worker, "_took")
    orchestrator = await open_at(worker())
    await until(failed)
    handle = await orchestrator.submit("work", 0.0)
    assert (await asyncio.wait_for(handle.wait(), 60)).result == "done"


async def test_it_goes_on_holding(open_at, failing):
    """What it works on stays its own for longer than a lease."""
    failed = failing(Run, "declare")
    orchestrator = await open_at(worker(), lease=1.0)
    handle = await orchestrator.submit("work", 2.5)
    assert (await asyncio.wait_for(handle.wait(), 60)).result == "done"
    assert failed()


async def test_it_goes_on_saying_what_it_offers(open_at, failing, monkeypatch):
    monkeypatch.setattr(offers, "_EXPIRES", 0.3)
    await open_at(worker())
    failed = failing(offers.Offers, "announce")
    client = await open_at(worker=False)
    await until(failed)
    await asyncio.sleep(0.5)
    handle = await client.submit("work", 0.0, agent="worker")
    assert (await asyncio.wait_for(handle.wait(), 60)).result == "done"
