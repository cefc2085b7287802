"""The stores' fixtures, orchestrators on each backend, and an orchestrator with a manual clock."""

from __future__ import annotations

import asyncio

import pytest

from amends import stores
from amends.tasks import Orchestrator
from amends.tasks import events as hooks
from amends.tasks.events import log_event
from tests.stores.backends import backends
from tests.stores.clocks import SetClock
from tests.stores.conftest import nats_server, other, store, url

__all__ = ["nats_server", "other", "store", "url"]


@pytest.fixture(params=backends("memory", "sqlite", "nats"))
def backend(request):
    return request.param


@pytest.fixture
def clock():
    return SetClock()


@pytest.fixture
async def manual(clock):
    """An orchestrator in memory that works only in `drain()`, with a clock that only tests advance."""
    async with (
        await stores.open("memory:", clock=clock) as store,
        Orchestrator(store=store, worker=False, clock=clock.wall, keep=None) as orchestrator,
    ):
        yield orchestrator


@pytest.fixture
async def open_orchestrator(store):
    """Opens orchestrators on the store of this test, and closes them at its end."""
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
    """All task events of this test."""
    seen = []
    hooks.set_hooks(seen.append)
    yield seen
    hooks.set_hooks()
    hooks._hooks = (log_event,)


async def advance_until_rest(orchestrator, clock, handle, most=50):
    """Advance the clock from wait to wait until the task is over or needs an answer. Return the waits."""
    waits = []
    for _ in range(most):
        await orchestrator.drain()
        state = await orchestrator.state(handle.id)
        if state.over or state.status == "input_required":
            return waits
        waits.append(round(state.release.until - clock.now, 6))
        clock.pass_(state.release.until - clock.now)
    raise AssertionError(f"the task is not at rest after {most} waits")


async def wait_until(condition, seconds=100.0):
    """Wait until a condition is true that another task or process changes."""
    end = asyncio.get_running_loop().time() + seconds
    while not (await condition() if asyncio.iscoroutinefunction(condition) else condition()):
        assert asyncio.get_running_loop().time() < end, "the condition is still false"
        await asyncio.sleep(0.01)
