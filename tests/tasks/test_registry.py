"""The agents of a worker, and a clock that is the same for all workers of a store."""

import time

import pytest

from amends.errors import task as errors
from amends.tasks import Agent
from tests.tasks.conftest import advance_until_rest, wait_until

HOUR = 3600.0


@pytest.mark.parametrize("shift", [HOUR, -HOUR])
async def test_workers_whose_clocks_differ(open_orchestrator, shift):
    """Delays and deadlines are kept, whichever worker goes on."""
    seen, agent = [], Agent("worker")

    @agent.capability(read_only=True)
    async def work(payload, ctx):
        seen.append(time.monotonic())
        if ctx.attempt == 1:
            raise errors.RateLimitedError(retry_after=0.5)
        assert 0 < ctx.time_left < 60
        return "done"

    first = await open_orchestrator(agent, worker=False)
    handle = await first.submit("work", id="t", deadline=60)
    wrong = await open_orchestrator(agent, clock=lambda: time.time() + shift)

    async def waits():
        return len(seen) == 1 and not (await first.state("t")).held

    await wait_until(waits)
    until = (await first.state("t")).release.until
    assert until - time.time() < 60
    await wrong.close()
    await open_orchestrator(agent, clock=lambda: time.time() - shift)
    response = await handle.wait(timeout=60)
    assert response.result == "done"
    assert seen[1] - seen[0] >= 0.5


async def test_a_deadline_of_a_submitter_whose_clock_is_wrong(open_orchestrator):
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def work(payload, ctx):
        return 0 < ctx.time_left <= 60

    behind = await open_orchestrator(worker=False, clock=lambda: time.time() - HOUR)
    handle = await behind.submit("work", agent="worker", id="t", deadline=60)
    await open_orchestrator(agent)
    assert (await handle.wait(timeout=60)).result is True


async def test_the_clock_of_a_store_that_does_not_answer(manual, caplog):
    """The last known difference is used further."""
    from amends.stores import StoreUnavailableError

    class Silent:
        async def now(self):
            raise StoreUnavailableError("silent", "no")

    registry = manual._registry
    registry.offset = 5.0
    await registry.synchronize(Silent())
    assert (registry.offset, "clock of the store" in caplog.text) == (5.0, True)


async def test_manual_clocks_still_work(manual, clock):
    agent = Agent("worker")

    @agent.capability(read_only=True)
    async def work(payload, ctx):
        if ctx.attempt < 3:
            raise errors.RateLimitedError(retry_after=600)
        return "done"

    manual.register(agent)
    handle = await manual.submit("work", retry_policy={"maxAttempts": 5})
    await advance_until_rest(manual, clock, handle)
    assert (await handle.response()).error.code == "RATE_LIMITED", "longer than the policy waits"


def test_two_agents_with_the_same_capability():
    """An error at registration, unless one of them is named."""
    from amends.tasks import Orchestrator

    agents = [Agent("one"), Agent("two")]
    for agent in agents:
        agent.capability("search")(lambda payload: None)
    with pytest.raises(ValueError, match="'search'"):
        Orchestrator(agents)
    named = Orchestrator(agents, prefer={"search": "two"})
    assert named._registry.agent_for("search", None).name == "two"
    assert named._registry.agent_for("search", "one").name == "one"
