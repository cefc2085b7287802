"""Waits for a turn, for the quota of repeats, and for new credentials, step by step."""

import pytest

from amends import Fault, Policy, Upstream
from amends.recovery.async_library import ThreadWaiter
from amends.recovery.queueing import renew_credentials, wait_for_turn
from amends.recovery.scope import SCOPE, Scope
from amends.recovery.stepper import Stepper
from amends.recovery.steps import Do, Park

STEPPER = Stepper(policy=Policy(max_wait=10.0))


def run(steps, clock):
    """Perform waits by advancing the clock. Return the result and the seconds of each wait."""
    waits = []
    try:
        step = next(steps)
        while True:
            if isinstance(step, Do):
                step = steps.send(step.call(*step.args))
                continue
            assert isinstance(step, Park)
            waits.append(step.seconds)
            clock.advance(step.seconds)
            step = steps.send(None)
    except StopIteration as stop:
        return stop.value, waits


def test_an_open_upstream_lets_calls_out(clock):
    """Nothing is waited for."""
    assert run(wait_for_turn(Upstream("a"), STEPPER, ThreadWaiter), clock) == (True, [])


def held(clock, seconds):
    """Return an upstream whose server asked for a pause."""
    upstream = Upstream("a")
    now = clock.now()
    upstream.failed(Fault(code="RATE_LIMITED", retry_after=seconds), now, now, 0.0)
    assert not upstream.open
    return upstream


def test_a_pause_that_the_server_asked_for(clock):
    """A call waits for it if its policy allows, and is given up at once if not."""
    granted, waits = run(wait_for_turn(held(clock, 4.0), STEPPER, ThreadWaiter), clock)
    assert granted
    assert sum(waits) == pytest.approx(4.0)
    assert run(wait_for_turn(held(clock, 40.0), STEPPER, ThreadWaiter), clock) == (False, [])


def test_a_call_inside_a_call_of_the_same_upstream(clock):
    """It joins the outer call instead of waiting for it."""
    upstream = held(clock, 40.0)
    token = SCOPE.set(Scope(STEPPER.operation, upstreams=(upstream,)))
    try:
        assert run(wait_for_turn(upstream, STEPPER, ThreadWaiter), clock) == (True, [])
    finally:
        SCOPE.reset(token)


def test_an_interrupted_wait_leaves_the_queue(clock):
    """An exception during the wait takes the waiter out of the queue."""
    upstream, left = held(clock, 4.0), []
    leave = upstream.leave
    upstream.leave = lambda waiter, now: (left.append(waiter), leave(waiter, now))
    steps = wait_for_turn(upstream, STEPPER, ThreadWaiter)
    step = next(steps)
    with pytest.raises(KeyboardInterrupt):
        steps.throw(KeyboardInterrupt())
    assert left == [step.waiter]


@pytest.mark.parametrize(("result", "worked"), [(None, True), ("token", True), (False, False)])
def test_leading_a_renewal(clock, result, worked):
    """The first operation renews; False means that it did not work."""
    upstream = Upstream("a")

    def refresh():
        return (yield Do(lambda: result))

    steps = renew_credentials(upstream, STEPPER, ThreadWaiter, 0, refresh())
    assert run(steps, clock) == (worked, [])
    assert (upstream.renewal.generation, upstream.renewal.leading) == (int(worked), False)


def test_waiting_for_the_leader(clock):
    """Others wait for the leader, within their time, and take its result."""
    for worked in (True, False):
        upstream = Upstream("a")
        leader = ThreadWaiter()
        upstream.ask_to_renew(leader, 0, 0)
        steps = renew_credentials(upstream, STEPPER, ThreadWaiter, 0, iter(()))
        step = next(steps)
        assert (type(step), step.seconds) == (Park, 10.0)
        upstream.end_renewal(worked, clock.now())
        assert step.waiter.event.is_set()
        with pytest.raises(StopIteration) as ended:
            steps.send(None)
        assert ended.value.value is worked
    upstream = Upstream("a")
    upstream.ask_to_renew(ThreadWaiter(), 0, 0)
    assert run(renew_credentials(upstream, STEPPER, ThreadWaiter, 0, iter(())), clock) == (False, [10.0])


def test_an_interrupted_leader_and_waiter(clock):
    """An interrupted leader lets another one lead; an interrupted waiter leaves."""
    upstream = Upstream("a")

    def refresh():
        yield Do(lambda: None)

    steps = renew_credentials(upstream, STEPPER, ThreadWaiter, 0, refresh())
    next(steps)
    waiting = renew_credentials(upstream, STEPPER, ThreadWaiter, 0, iter(()))
    waiter = next(waiting).waiter
    left = []
    upstream.leave = lambda *given: left.append(given[0])
    with pytest.raises(KeyboardInterrupt):
        waiting.throw(KeyboardInterrupt())
    assert left == [waiter]
    with pytest.raises(KeyboardInterrupt):
        steps.throw(KeyboardInterrupt())
    assert (upstream.renewal.leading, upstream.renewal.failures) == (False, 0)


def test_waiting_for_new_credentials_again(clock):
    """A waiter that was woken sleeps again if the next renewal has begun by then."""
    upstream = Upstream("a")
    leader = ThreadWaiter()
    upstream.ask_to_renew(leader, 0, 0)
    steps = wait_for_turn(upstream, STEPPER, ThreadWaiter)
    first = next(steps)
    assert (type(first), first.seconds) == (Park, 10.0)
    clock.advance(4.0)
    upstream.end_renewal(True, clock.now())
    assert first.waiter.event.is_set()
    upstream.ask_to_renew(leader, 1, 0)
    second = steps.send(None)
    assert (type(second), second.seconds, second.waiter.event.is_set()) == (Park, 6.0, False)
    upstream.end_renewal(True, clock.now())
    with pytest.raises(StopIteration) as ended:
        steps.send(None)
    assert ended.value.value is True
