"""The bounds of recovery inside the tool call of an agent."""

import asyncio

import pytest

from amends import FaultError, Policy, Upstream, arecover, recover
from amends.errors import RateLimitedError, ServiceUnavailableError
from amends.errors import TimeoutError as LateError
from amends.recovery import TOOL
from amends.recovery.scope import current_tool_call, tool_call


def failing(clock, error, seconds=0.0, times=None):
    """A call that takes so many seconds and fails."""

    def call():
        if times is not None:
            times.append(clock.now())
        clock.advance(seconds)
        raise error

    return call


def test_a_tool_call_makes_three_calls_within_a_minute(clock):
    """The default policy is TOOL there; the give-up carries a wait."""
    times, began = [], clock.now()
    with tool_call(), pytest.raises(FaultError) as caught:
        recover(failing(clock, ServiceUnavailableError(executed="no"), 1.0, times))
    assert len(times) == 3
    assert clock.now() - began < 60
    assert caught.value.fault.retry_after >= 1


def test_no_repeat_starts_that_cannot_end_in_time(clock):
    """A call that took 30 s is not made again; it was not cut either."""
    times = []
    with tool_call(), pytest.raises(FaultError) as caught:
        recover(failing(clock, LateError(), 30.0, times), read_only=True)
    assert len(times) == 1
    assert caught.value.decision.reason == "deadline"
    assert caught.value.fault.retry_after


def test_all_recoveries_of_a_tool_call_share_its_time(clock):
    """Twenty calls that fail one after the other end in time together."""
    began = clock.now()
    with tool_call():
        for _ in range(20):
            with pytest.raises(FaultError):
                recover(failing(clock, ServiceUnavailableError(executed="no"), 1.0))
    # After the bound, each of them is made once.
    assert clock.now() - began < 55 + 20


def test_a_long_task_bounds_each_recovery(clock):
    """An agent's task may take hours; each of its calls is bounded by itself."""
    times = []
    with tool_call(long=True):
        clock.advance(3600)
        with pytest.raises(FaultError):
            recover(failing(clock, ServiceUnavailableError(executed="no"), 1.0, times))
    assert len(times) == 3


@pytest.mark.parametrize("policy", [Policy(attempts=5), Policy(max_wait=400.0)])
def test_a_policy_of_the_user_wins(clock, policy):
    """A policy that is given is not replaced."""
    times = []
    with tool_call(), pytest.raises(FaultError):
        recover(failing(clock, ServiceUnavailableError(executed="no"), 1.0, times), policy=policy)
    assert len(times) == 5


def test_an_outage_that_all_callers_know_of(clock):
    """A queue at the Upstream ends in time too, with the wait that the service asked for."""
    upstream, began = Upstream("api"), clock.now()
    limited = RateLimitedError(retry_after=90)
    with pytest.raises(FaultError):
        recover(failing(clock, limited), upstream=upstream, policy=Policy(max_wait=0))
    with tool_call(), pytest.raises(FaultError) as caught:
        recover(failing(clock, limited), upstream=upstream)
    assert clock.now() - began < 60
    assert caught.value.fault.retry_after >= 30


def test_async_recovery_and_nested_calls(clock):
    """The outermost tool call counts, also in tasks."""

    async def main():
        with tool_call() as outer:
            with tool_call() as inner:
                assert inner is outer
            assert current_tool_call() is outer

            async def fail():
                raise ServiceUnavailableError(executed="no")

            with pytest.raises(FaultError) as caught:
                await asyncio.create_task(arecover(fail))
            assert len(caught.value.history) == TOOL.attempts

            async def later():
                assert current_tool_call() is None  # it outlived the tool call

            await asyncio.sleep(0)
            task = asyncio.create_task(later())
        await task

    asyncio.run(main())
    assert current_tool_call() is None
