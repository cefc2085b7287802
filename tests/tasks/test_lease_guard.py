"""Work that must not happen twice is cancelled when the lease on its task runs out, and for no other reason."""

import asyncio

import pytest

from amends.stores import StoreUnavailableError
from amends.tasks import Agent
from amends.tasks.journal import Fenced, LeaseGuard
from tests.tasks.conftest import wait_until


class FakeLease:
    """A lease that ends at a time of the event loop's clock; `extend` adds the next of the given durations."""

    def __init__(self, seconds, *extensions):
        self._end = asyncio.get_running_loop().time() + seconds
        self._extensions = list(extensions)

    @property
    def expires_in(self):
        return max(0.0, self._end - asyncio.get_running_loop().time())

    async def extend(self):
        self._end += self._extensions.pop(0)


async def run_forever(events):
    try:
        await asyncio.Event().wait()
    finally:
        events.append("stopped")


async def test_work_is_cancelled_when_the_lease_runs_out():
    """The task that ran the work is not cancelled afterwards."""
    events = []
    with pytest.raises(Fenced):
        await LeaseGuard(FakeLease(0.01)).run(run_forever(events))
    assert events == ["stopped"]
    assert asyncio.current_task().cancelling() == 0
    await asyncio.sleep(0)


async def test_work_under_an_expired_lease_stops_at_its_first_await():
    events = []
    with pytest.raises(Fenced):
        await LeaseGuard(FakeLease(-1)).run(run_forever(events))
    assert events == ["stopped"]


async def test_an_extension_moves_the_time_limit():
    """Running work may go on past the first end of the lease."""
    guard = LeaseGuard(FakeLease(0.01, 3600))

    async def work():
        await guard.extend()
        await asyncio.sleep(0.03)
        return "done"

    assert await guard.run(work()) == "done"
    assert guard.expires_in > 3000


async def test_work_is_cancelled_when_an_extended_lease_runs_out():
    guard, events = LeaseGuard(FakeLease(0.01, 0.05)), []

    async def work():
        await guard.extend()
        await run_forever(events)

    with pytest.raises(Fenced):
        await guard.run(work())
    assert events == ["stopped"]


async def test_an_extension_that_comes_too_late_revives_nothing():
    """Work that is being cancelled stays cancelled."""
    guard, events = LeaseGuard(FakeLease(0.01, 3600)), []

    async def work():
        try:
            await run_forever(events)
        finally:
            await guard.extend()

    with pytest.raises(Fenced):
        await guard.run(work())
    assert events == ["stopped"]


async def test_the_end_of_the_lease_after_the_work_has_no_effect():
    """Neither after a result nor after an exception of the work."""
    assert await LeaseGuard(FakeLease(0.01)).run(asyncio.sleep(0, "done")) == "done"
    await asyncio.sleep(0.03)
    with pytest.raises(ValueError, match="own"):
        await LeaseGuard(FakeLease(0.01)).run(failing(ValueError("its own failure")))
    await asyncio.sleep(0.03)


async def test_a_time_out_of_the_work_itself_is_raised():
    with pytest.raises(TimeoutError):
        await LeaseGuard(FakeLease(60)).run(failing(TimeoutError()))


async def failing(error):
    raise error


async def slow_to_stop(events):
    try:
        await run_forever(events)
    finally:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(60)  # until the lease runs out


@pytest.mark.parametrize("work", [run_forever, slow_to_stop])
async def test_a_cancellation_from_outside_is_passed_on(work):
    """Also if the lease runs out while the work is being cancelled."""
    events = []
    task = asyncio.ensure_future(LeaseGuard(FakeLease(0.05)).run(work(events)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (events, task.cancelled()) == (["stopped"], True)


async def test_the_result_of_work_that_ignores_its_cancellation_is_returned():
    """The log decides whether the result counts."""

    async def stubborn():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done anyway"

    assert await LeaseGuard(FakeLease(0.01)).run(stubborn()) == "done anyway"
    assert asyncio.current_task().cancelling() == 0


async def test_a_delegation_is_cancelled_when_the_lease_runs_out(open_orchestrator, monkeypatch):
    """Also if the delegating step may be repeated: what it delegates may not."""
    events, begun = [], asyncio.Event()
    agent = Agent("worker")

    @agent.capability(idempotent=True)
    async def order(payload, ctx):
        return await ctx.delegate("buy")

    @agent.capability
    async def buy(payload, ctx):
        begun.set()
        await run_forever(events)

    async def unanswered(self):
        raise StoreUnavailableError("the store does not answer")

    monkeypatch.setattr(LeaseGuard, "extend", unanswered)
    orchestrator = await open_orchestrator(agent, lease=0.3)
    await orchestrator.submit("order")
    await asyncio.wait_for(begun.wait(), 20)
    await wait_until(lambda: events == ["stopped"], 20)
