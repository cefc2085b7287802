"""The stores' fixtures, and an orchestrator on each backend whose time passes when told."""

from __future__ import annotations

import asyncio

import pytest

from amends import stores
from amends.tasks import Orchestrator, telemetry
from tests.stores.clocks import SetClock
from tests.stores.conftest import nats_server, other, store, url

__all__ = ["nats_server", "other", "store", "url"]


@pytest.fixture(params=["memory", "sqlite", "nats"])
def backend(request):
    return request.param


@pytest.fixture
def clock():
    return SetClock()


@pytest.fixture
async def still(clock):
    """An orchestrator in memory that does nothing until `drain()`, on a clock that stands still."""
    async with (
        await stores.open("memory:", clock=clock) as store,
        Orchestrator(store=store, worker=False, clock=clock.wall, keep=None) as orchestrator,
    ):
        yield orchestrator


@pytest.fixture
async def open_at(store):
    """Makes orchestrators on the store of this test, and closes them."""
    opened = []

    async def make(*agents, on=store, **options):
        options.setdefault("grace", 0)
        orchestrator = Orchestrator(agents, store=on, **options)
        await orchestrator.start()
        opened.append(orchestrator)
        return orchestrator

    yield make
    for orchestrator in opened:
        await orchestrator.close()


@pytest.fixture
def events():
    """Every task event of this test."""
    seen = []
    telemetry.set_hooks(seen.append)
    yield seen
    telemetry.set_hooks()
    telemetry._hooks = None


async def through_time(orchestrator, clock, handle, most=50):
    """Let time pass from one wait to the next until the task is over or asks; the waits."""
    waits = []
    for _ in range(most):
        await orchestrator.drain()
        state = await orchestrator.state(handle.id)
        if state.over or state.status == "input_required":
            return waits
        waits.append(round(state.release.until - clock.now, 6))
        clock.pass_(state.release.until - clock.now)
    raise AssertionError("it never ends")


async def until(condition, seconds=100.0):
    """Wait for something another task or process brings about."""
    end = asyncio.get_running_loop().time() + seconds
    while not await condition() if asyncio.iscoroutinefunction(condition) else not condition():
        assert asyncio.get_running_loop().time() < end, "it did not come about"
        await asyncio.sleep(0.01)
