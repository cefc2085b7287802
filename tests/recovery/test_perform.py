"""Performing the steps of a flow on a thread and on an event loop."""

import asyncio
import logging

import pytest

from amends import FaultError, Operation, Policy, Upstream
from amends.errors import ServiceUnavailableError
from amends.recovery.call_errors import MisuseError
from amends.recovery.operation_flow import Outcome
from amends.recovery.perform import aadvance, advance, aperform, arun_flow, perform, run_flow
from amends.recovery.plan import plan_for
from amends.recovery.scope import SCOPE, Scope, current_operation
from amends.recovery.steps import Do, Finish, Park, Send, Wait
from amends.recovery.waiter import TaskWaiter, ThreadWaiter
from amends.testing import Script

INSIDE = Scope(Operation(name="inside"))


def name_of_operation():
    operation = current_operation()
    return None if operation is None else operation.name


async def async_name():
    return name_of_operation()


def test_steps_on_a_thread(clock):
    """Waits use the clock; hooks and calls get their arguments; a call runs in its scope, which is reset."""
    assert perform(Wait(2.0)) is None
    perform(Park(ThreadWaiter(), 3.0))
    assert clock.waits == [2.0, 3.0]
    assert perform(Do(max, (1, 2), {"key": lambda each: -each})) == 1
    assert perform(Send(name_of_operation, (), {}, None)) is None
    assert perform(Send(name_of_operation, (), {}, INSIDE)) == "inside"
    with pytest.raises(KeyError):
        perform(Send({}.__getitem__, ("a",), {}, INSIDE))
    assert SCOPE.get() is None


async def test_steps_on_a_loop(clock):
    """The same, and hooks may be plain or async."""
    await aperform(Wait(2.0))
    await aperform(Park(TaskWaiter(), 3.0))
    assert clock.waits == [2.0, 3.0]
    assert await aperform(Do(max, (1, 2))) == 2
    assert await aperform(Do(async_name)) is None
    assert await aperform(Send(async_name, (), {}, None)) is None
    assert await aperform(Send(async_name, (), {}, INSIDE)) == "inside"
    assert SCOPE.get() is None


async def test_only_a_changed_call_may_be_plain():
    """`on_fix` may return a plain function; a plain function given to `arecover` is a mistake."""
    assert await aperform(Send(lambda: 3, (), {}, None, changed=True)) == 3
    assert await aperform(Send(async_name, (), {}, INSIDE, changed=True)) == "inside"
    with pytest.raises(MisuseError):
        await aperform(Send(lambda: 3, (), {}, None))


async def test_a_time_limit_cancels_an_async_call():
    """A call that takes longer is cancelled; one that does not keeps its result."""
    with pytest.raises(TimeoutError):
        await aperform(Send(asyncio.Event().wait, (), {}, None, timeout=0.001))
    assert await aperform(Send(async_name, (), {}, INSIDE, timeout=30)) == "inside"


def test_a_late_call_on_a_thread_is_logged(clock, caplog):
    """A thread cannot be stopped: its result is used, and a call over its time is logged."""

    def late(seconds):
        clock.advance(seconds)
        return seconds

    with caplog.at_level(logging.WARNING):
        assert perform(Send(late, (2.0,), {}, INSIDE, timeout=2.0)) == 2.0
        assert caplog.records == []
        assert perform(Send(late, (3.0,), {}, INSIDE, timeout=2.0)) == 3.0
    assert len(caplog.records) == 1


async def test_values_and_exceptions_go_into_the_flow():
    """`advance` and `aadvance` send the value of a step into the flow, or throw what it raised."""

    def flow():
        value = yield Do(max, (1, 2))
        try:
            yield Do({}.__getitem__, ("a",))
        except KeyError:
            yield Finish(value)

    steps = flow()
    second = advance(steps, next(steps))
    assert advance(steps, second) == Finish(2)
    steps = flow()
    second = await aadvance(steps, next(steps))
    assert await aadvance(steps, second) == Finish(2)


def test_wrong_arguments_are_no_failure():
    """A call that cannot be made raises MisuseError; a TypeError inside the call is a failure of the call."""
    with pytest.raises(MisuseError, match="cannot be called like this"):
        perform(Send(lambda a: None, (), {}, None))
    with pytest.raises(TypeError) as inside:
        perform(Send(lambda: len(3), (), {}, None))
    assert not isinstance(inside.value, MisuseError)


def test_flows_on_a_thread(clock):
    """A call that failed is repeated; a coroutine as the result is a mistake unless awaitables are expected."""
    plan = plan_for(policy=Policy(attempts=3), read_only=True)
    for awaitables in (False, True):
        script = Script(ServiceUnavailableError(), "done")
        assert run_flow(plan, script, (), {}, awaitables=awaitables) == "done"
    with pytest.raises(MisuseError):
        run_flow(plan, async_name, (), {})


async def test_flows_on_a_loop(clock):
    """The same with awaits. A flow that began on a thread goes on in a coroutine when a call returns an awaitable."""
    plan = plan_for(policy=Policy(attempts=3), read_only=True)
    assert await arun_flow(plan, failing_once(), (), {}) == "done"
    history = []
    assert await run_flow(plan, failing_once(), (), {}, history, awaitables=True) == "done"
    assert [attempt.number for attempt in history] == [1, 2]


def failing_once():
    script = Script(ServiceUnavailableError(), "done")

    async def call():
        return script()

    return call


async def test_a_misused_first_call_is_abandoned():
    """A first call that could not be made is not counted as a failure of the upstream."""
    upstream, abandoned = Upstream("a"), []
    upstream.abandoned = lambda now, sent: abandoned.append(sent)
    plan = plan_for(upstream=upstream)
    for error in (MisuseError("a"), _call_wrongly()):
        first = Outcome(sent=5.0, ended=6.0, error=error)
        with pytest.raises(MisuseError):
            run_flow(plan, lambda a: None, (), {}, first=first)
        with pytest.raises(MisuseError):
            await arun_flow(plan, lambda a: None, (), {}, first=first)
    assert abandoned == [5.0] * 4


def _call_wrongly():
    try:
        perform(Do(lambda a: None))
    except TypeError as error:
        return error
    raise AssertionError


def test_the_final_error(clock):
    """A flow that gives up raises."""
    with pytest.raises(FaultError):
        run_flow(plan_for(policy=Policy(attempts=1)), Script(ServiceUnavailableError()), (), {})
