"""Tests of `recover` and `arecover`: the first call, and how steps are performed."""

import asyncio
import logging

import pytest

from amends import Fault, FaultError, Operation, Policy, Upstream, arecover, recover
from amends.errors import ServiceUnavailableError
from amends.recovery import current_operation, time_left
from amends.recovery.async_library import TaskWaiter, ThreadWaiter
from amends.recovery.call_errors import MisuseError
from amends.recovery.drivers import (
    aadvance,
    acall_first,
    advance,
    aperform,
    arun_flow,
    call_first,
    perform,
    run_flow,
)
from amends.recovery.operation_flow import Outcome
from amends.recovery.plan import plan_for
from amends.recovery.process_quota import process_quota
from amends.recovery.scope import SCOPE, Scope
from amends.recovery.steps import Do, Finish, Park, Send, Wait
from amends.testing import Script


def both(call, *args, **options):
    """Return what both drivers return; the async one gets an async function."""

    async def acall(*args, **kwargs):
        return call(*args, **kwargs)

    return recover(call, *args, **options), asyncio.run(arecover(acall, *args, **options))


def test_arguments_and_result(clock):
    """The call gets its arguments, and its result is returned."""
    assert both(lambda a, *, b: (a, b), 1, b=2) == ((1, 2), (1, 2))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"policy": None},
        {"policy": Policy(attempts=3)},
        {"operation": Operation(name="a")},
        {"timeout": 9},
    ],
)
def test_successes_are_counted(clock, options):
    """Every success without an upstream adds to the quota of the process, with and without a flow."""
    before = process_quota.successes
    both(lambda: 1, **options)
    assert process_quota.successes == before + 2


def test_an_upstream_hears_of_every_outcome(clock):
    """A success and an interrupt of a direct call are reported."""
    upstream, outcomes = Upstream("a"), []
    upstream.succeeded = lambda now, sent, **_: outcomes.append("succeeded")
    upstream.abandoned = lambda now, sent: outcomes.append("abandoned")
    both(lambda: 1, upstream=upstream)
    assert outcomes == ["succeeded"] * 2

    def interrupt():
        raise asyncio.CancelledError

    async def ainterrupt():
        interrupt()

    with pytest.raises(asyncio.CancelledError):
        recover(interrupt, upstream=upstream)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(arecover(ainterrupt, upstream=upstream))
    assert outcomes[2:] == ["abandoned"] * 2


@pytest.mark.parametrize("options", [{"operation": Operation(key="k")}, {"operation": Operation(keyed=True)}])
def test_a_key_needs_a_scope(clock, options):
    """A call with a key runs in its scope from the first attempt."""
    for found in both(current_operation, **options):
        assert found.key


def test_options_that_need_a_flow(clock):
    """History, examine, timeout and deadline hold for the first call too."""
    history = []
    both(lambda: 1, history=history)
    assert [attempt.number for attempt in history] == [1, 1]
    failed = Script(*[{"status": 503, "headers": {}}, {"status": 200, "headers": {}}] * 2)
    assert [each["status"] for each in both(failed, examine=True, read_only=True)] == [200, 200]
    assert both(time_left, policy=Policy(deadline=5.0)) == (5.0, 5.0)
    assert recover(time_left, timeout=3) == 3.0


def test_a_failure_is_repeated_with_the_options(clock):
    """After a direct first call that failed, all options hold."""
    seen = []
    script = Script(ServiceUnavailableError(), "done", ServiceUnavailableError(), "done")
    assert both(script, read_only=True, on_event=lambda event: seen.append(event.kind)) == ("done", "done")
    assert seen == ["retry", "recovered"] * 2
    with pytest.raises(KeyError):
        recover(Script(KeyError("a")), raises="original")
    with pytest.raises(FaultError):
        recover(Script(ServiceUnavailableError(), ServiceUnavailableError()), policy=Policy(attempts=2))


def test_wrong_options_are_found_at_the_first_failure(clock):
    """Options are checked after a direct call has failed, and before a flow."""
    with pytest.raises(TypeError, match="Policy"):
        recover(lambda: 1, policy=3)
    with pytest.raises(TypeError, match="Upstream"):
        recover(lambda: 1, upstream="a")
    with pytest.raises(TypeError, match="Operation"):
        recover(lambda: 1, operation="a")


def test_plain_functions_are_refused_by_arecover():
    """A plain function raises MisuseError; a function that returns an awaitable is fine."""
    with pytest.raises(MisuseError):
        asyncio.run(arecover(lambda: 1))

    async def later():
        async def work():
            return 1

        return await arecover(lambda: asyncio.ensure_future(work()))

    assert asyncio.run(later()) == 1


async def reply():
    return 1


def test_a_success_is_reported_once():
    """To the upstream, or else to the quota of the process."""
    before, upstream = process_quota.successes, Upstream("one")
    assert call_first(None, lambda: 1, (), {}) == (1, None)
    assert process_quota.successes == before + 1
    assert call_first(upstream, lambda: 1, (), {}) == (1, None)
    assert asyncio.run(acall_first(upstream, reply, (), {})) == (1, None)
    assert process_quota.successes == before + 1
    assert upstream.snapshot().calls == 2


def test_a_failure_is_the_first_outcome_of_the_flow():
    """It is not reported yet: the flow does that."""
    upstream = Upstream("one")
    result, first = call_first(upstream, lambda: 1 / 0, (), {})
    assert result is None
    assert isinstance(first.error, ZeroDivisionError)
    assert upstream.snapshot().calls == 0


def test_an_interrupted_call_gives_its_place_back():
    """KeyboardInterrupt and cancellation pass through."""

    def interrupted():
        raise KeyboardInterrupt

    upstream = Upstream("one")
    with pytest.raises(KeyboardInterrupt):
        call_first(upstream, interrupted, (), {})
    assert upstream.snapshot().calls == 1


def test_an_awaitable_of_a_plain_function_is_left_to_the_caller():
    """Without `awaitables` it is refused."""
    result, first = call_first(None, reply, (), {}, awaitables=True)
    assert first.fault is None
    assert asyncio.run(result) == 1
    with pytest.raises(MisuseError):
        call_first(None, reply, (), {})


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


def shut_upstream(clock):
    upstream = Upstream()
    for _ in range(9):
        upstream.failed(Fault(code="SERVICE_UNAVAILABLE"), clock.now(), clock.now(), 0.0)
    return upstream


@pytest.mark.parametrize(
    ("options", "direct"),
    [
        ({}, True),
        ({"policy": None}, True),
        ({"policy": Policy(attempts=2)}, True),
        ({"policy": Policy(deadline=5.0)}, False),
        ({"policy": "wrong"}, False),
        ({"operation": Operation(name="a")}, True),
        ({"operation": Operation(key="k")}, False),
        ({"operation": Operation(keyed=True)}, False),
        ({"operation": "wrong"}, False),
        ({"upstream": "open"}, True),
        ({"upstream": "shut"}, False),
        ({"upstream": "wrong"}, False),
        ({"history": []}, False),
        ({"examine": False}, False),
        ({"timeout": 5.0}, False),
    ],
)
def test_which_first_calls_are_made_without_a_flow(clock, options, direct):
    """Those that need nothing arranged. Their options are checked only when they fail."""
    made = {"open": lambda: Upstream(), "shut": lambda: shut_upstream(clock)}

    def given():
        upstream = options.get("upstream")
        return {**options, **({"upstream": made[upstream]()} if upstream in made else {})}

    if direct:
        assert recover(lambda: "x", raises="other", **given()) == "x"
        assert asyncio.run(arecover(Script("x").acall, raises="other", **given())) == "x"
    else:
        with pytest.raises((ValueError, TypeError, AttributeError)):
            recover(lambda: "x", raises="other", **given())
        with pytest.raises((ValueError, TypeError, AttributeError)):
            asyncio.run(arecover(Script("x").acall, raises="other", **given()))


@pytest.mark.parametrize("upstream", [True, False])
async def test_the_outcome_of_a_first_call(clock, upstream):
    """When it was sent and ended, with the credentials and the successes of that time."""
    service = Upstream() if upstream else None
    if service is not None:
        service.renewal.generation = 3
    before = process_quota.successes

    def fail():
        clock.advance(2.0)
        raise KeyError("x")

    async def afail():
        fail()

    for result, outcome in (call_first(service, fail, (), {}), await acall_first(service, afail, (), {})):
        assert result is None
        assert outcome.ended - outcome.sent == 2.0
        assert isinstance(outcome.error, KeyError)
        assert outcome.fault is not None
        assert (outcome.generation, outcome.successes) == ((3, 0) if upstream else (0, before))


@pytest.mark.parametrize("upstream", [True, False])
def test_a_first_call_that_succeeds_is_counted(clock, upstream):
    """By its upstream, or else by the process; never by both."""
    service, before = Upstream() if upstream else None, process_quota.successes
    assert call_first(service, lambda a, b: (a, b), (1,), {"b": 2}) == ((1, 2), None)
    assert asyncio.run(acall_first(service, Script("x").acall, (), {})) == ("x", None)
    assert asyncio.run(arecover(Script("x").acall, upstream=service)) == "x"
    assert process_quota.successes - before == (0 if upstream else 3)
    if service is not None:
        assert service.snapshot().calls == 3


async def test_an_interrupted_async_call_is_reported(clock):
    """To the upstream, with the time at which it was sent."""
    seen, service = [], Upstream()
    service.abandoned = lambda now, sent: seen.append((now, sent))

    async def cancelled():
        clock.advance(1.0)
        raise asyncio.CancelledError

    for run in (
        lambda: acall_first(service, cancelled, (), {}),
        lambda: arecover(cancelled, upstream=service),
    ):
        began = clock.now()
        with pytest.raises(asyncio.CancelledError):
            await run()
        assert seen.pop() == (began + 1.0, began)
    with pytest.raises(asyncio.CancelledError):
        await arecover(cancelled)
    assert seen == []
