"""The flow of one operation as a list of steps: no thread, no event loop and no waits."""

import asyncio
import time
from functools import partial

import pytest
from msgspec.structs import replace

from amends import Decision, Fault, FaultError, Operation, Policy, Upstream, arecover, recover
from amends.core.enums import Action, Executed
from amends.errors import RateLimitedError, ServiceUnavailableError, UnauthenticatedError, ValidationError
from amends.recovery.async_library import ThreadWaiter
from amends.recovery.events import LONG_WAIT
from amends.recovery.operation_flow import Flow, Outcome, wait_for_quota
from amends.recovery.plan import plan_for
from amends.recovery.scope import SCOPE, Scope, scope_of, time_left
from amends.recovery.stepper import Stepper
from amends.recovery.steps import Do, Finish, Send, Wait
from amends.testing import Script


def call(*args, **kwargs):
    raise AssertionError("the steps are only looked at")


def flow(first=None, history=None, **options):
    return Flow(plan_for(**options), call, (1,), {"a": 2}, ThreadWaiter, history, first)


def play(made, *outcomes):
    """Return the steps of a flow whose steps end as given: an exception is thrown, another value is sent."""
    steps = made.steps()
    seen = [next(steps)]
    for outcome in outcomes:
        seen.append(steps.throw(outcome) if isinstance(outcome, BaseException) else steps.send(outcome))
    return seen


def test_a_success(clock):
    """The call is sent once with its arguments, and the flow finishes with its result."""
    send, finish = play(flow(), "done")
    assert send == Send(call, (1,), {"a": 2}, None)
    assert finish == Finish("done")


def test_a_repeat(clock):
    """A failure is followed by a wait and the same call."""
    history = []
    send, wait, again, finish = play(flow(history=history), RateLimitedError(retry_after=3), None, "done")
    left = Scope(None, tries=4)  # what the layers below may still call
    assert (wait, again, finish) == (Wait(3.0), replace(send, scope=left), Finish("done"))
    assert [(each.number, each.wait) for each in history] == [(1, 3.0), (2, 0.0)]


def test_a_first_call_that_was_made_already(clock):
    """The flow starts after it: with the wait before the second call."""
    error = ServiceUnavailableError()
    first = Outcome(sent=clock.now(), ended=clock.now(), error=error, fault=error.fault)
    steps = play(flow(first, read_only=True), None)
    assert [type(step) for step in steps] == [Wait, Send]


def test_verify(clock):
    """False: the call is repeated. None: the operation fails. Another value is the result."""
    lost = FaultError.from_fault(Fault(code="TIMEOUT", executed=Executed.MAYBE))

    def verify(fault):
        return None

    steps = play(flow(verify=verify), lost, False)
    assert steps[1] == Do(verify, (lost.fault,), timeout=60.0)
    assert isinstance(steps[2], Wait)
    assert play(flow(verify=verify), lost, "paid")[-1] == Finish("paid")
    with pytest.raises(FaultError):
        play(flow(verify=verify), lost, None)
    with pytest.raises(FaultError) as noted:
        play(flow(verify=verify), lost, KeyError("a"))
    assert any("verify did not work: KeyError" in note for note in noted.value.__notes__)


def test_credentials_are_renewed_once(clock):
    """`refresh` is run once, then the refusal is final; a repeat after it does not wait."""

    def refresh():
        return None

    refused = UnauthenticatedError()
    steps = play(flow(refresh=refresh), refused, None)
    assert [type(step) for step in steps] == [Send, Do, Send]
    with pytest.raises(FaultError):
        play(flow(refresh=refresh), refused, None, UnauthenticatedError())
    with pytest.raises(FaultError):
        play(flow(refresh=refresh), refused, False)


def test_credentials_that_were_renewed_before(clock):
    """A call that was sent with the new credentials and is refused renews them again."""
    upstream, renewed = Upstream("a"), []
    for _ in range(2):
        script = Script(UnauthenticatedError(), "done")
        refresh = lambda: renewed.append(1)  # noqa: E731
        assert recover(script, upstream=upstream, refresh=refresh, history=[]) == "done"
    assert len(renewed) == 2


def test_fallbacks(clock):
    """They are tried in order with the arguments of the call; a failed one is noted."""
    denied = FaultError.from_fault(Fault(code="PERMISSION_DENIED"))

    def one(*args, **kwargs):
        return None

    def two(*args, **kwargs):
        return None

    steps = play(flow(fallback=[one, two]), denied, KeyError("a"), "second")
    assert steps[1:] == [Do(one, (1,), {"a": 2}, 60.0), Do(two, (1,), {"a": 2}, 60.0), Finish("second")]
    with pytest.raises(FaultError) as failed:
        play(flow(fallback=one), denied, KeyError("a"))
    assert any("fallback did not work: KeyError" in note for note in failed.value.__notes__)


def test_what_is_raised(clock):
    """`raises`: the typed error, the original exception with the fault, or the failed response."""
    with pytest.raises(FaultError) as typed:
        play(flow(policy=Policy(attempts=1)), ConnectionError("a"))
    assert isinstance(typed.value.__cause__, ConnectionError)
    original = ConnectionError("a")
    for raises in ("original", "nothing"):
        with pytest.raises(ConnectionError) as raised:
            play(flow(policy=Policy(attempts=1), raises=raises), original)
        assert raised.value is original
        assert original.fault.code
    response = {"status": 403, "headers": {}}
    options = {"policy": Policy(attempts=1), "examine": True}
    assert play(flow(**options, raises="nothing"), response)[-1] == Finish(response)
    with pytest.raises(FaultError):
        play(flow(**options), response)


def test_the_time_of_a_call(clock):
    """A call with a time limit has it in its step and in its scope."""
    send = play(flow(timeout=3))[0]
    assert (send.timeout, send.scope.until) == (3.0, clock.now() + 3)


def test_interrupts_leave_the_flow(clock):
    """An interrupt is raised as it is, reported as abandoned, and the history is kept."""
    upstream, abandoned, history = Upstream("a"), [], []
    upstream.abandoned = lambda now, sent: abandoned.append(sent)
    with pytest.raises(KeyboardInterrupt):
        play(flow(upstream=upstream, history=history), KeyboardInterrupt())
    assert (abandoned, history) == ([clock.now()], [])


def test_an_upstream_of_our_own_system(clock):
    """The error of such an upstream is marked, so that a server passes it on."""
    for own in (True, False):
        with pytest.raises(FaultError) as raised:
            play(flow(upstream=Upstream("a", own=own), policy=Policy(attempts=1)), ServiceUnavailableError())
        assert raised.value.own is own


def test_named_exceptions(clock):
    """`on` repeats exactly what it names, whatever the operation declares; a bug is never repeated by accident."""
    assert [type(step) for step in play(flow(on=KeyError), KeyError("a"), None)] == [Send, Wait, Send]
    for on, error, reason in [(KeyError, ConnectionError("a"), "not-in-on"), (None, KeyError("a"), "bug")]:
        with pytest.raises(FaultError) as raised:
            play(flow(on=on, read_only=True), error)
        assert raised.value.decision.reason == reason
    assert play(flow(on=lambda error: 7.0), ConnectionError("a"))[1] == Wait(7.0)
    with pytest.raises(FaultError) as broken:
        play(flow(on=lambda error: 1 / 0), ConnectionError("a"))
    assert any("on did not work: ZeroDivisionError" in note for note in broken.value.__notes__)


def test_scopes(clock):
    """A scope has the earliest deadline, the key and the upstreams; without any of them there is none."""
    now, upstream = clock.now(), Upstream("a")
    assert scope_of(flow().stepper) is None
    limited = flow(policy=Policy(deadline=5.0)).stepper
    assert scope_of(limited).until == now + 5
    assert scope_of(limited, None, now + 2).until == now + 2
    assert scope_of(limited, None, now + 9).until == now + 5
    assert scope_of(flow().stepper, None, now + 9).until == now + 9
    assert scope_of(flow().stepper, upstream).upstreams == (upstream,)
    keyed = flow(operation=Operation(key="k")).stepper
    assert (scope_of(keyed).operation.key, scope_of(keyed).until) == ("k", None)
    outer = Scope(Operation(key="outer"), now + 3, upstreams=(upstream,))
    token = SCOPE.set(outer)
    try:
        inner = flow(policy=Policy(deadline=5.0)).stepper
        assert scope_of(inner) is None  # the deadline around is earlier
        other = Upstream("b")
        found = scope_of(inner, other)
        assert (found.operation.key, found.until, found.upstreams) == ("outer", now + 3, (upstream, other))
        assert scope_of(flow(operation=Operation(key="mine")).stepper).operation.key == "mine"
    finally:
        SCOPE.reset(token)


def test_no_decision_before_a_failure():
    """A stepper without a failure has no decision; the flow of a success never asks."""
    with pytest.raises(LookupError):
        _ = Stepper().decision
    decided = Stepper().with_decision(Decision(action=Action.NONE, delay=None, reason="x"))
    assert decided.decision.reason == "x"


@pytest.mark.parametrize(("seconds", "kinds"), [(LONG_WAIT, []), (LONG_WAIT + 0.01, ["queued"])])
def test_a_wait_for_a_turn_that_is_not_long_is_no_event(clock, seen, seconds, kinds):
    """A wait of exactly the limit is not long."""
    upstream = Upstream()
    upstream.failed(Fault(code="RATE_LIMITED", retry_after=seconds), clock.now(), clock.now(), 0.0)
    assert upstream.snapshot(clock.now()).resumes_in == pytest.approx(seconds)
    assert recover(lambda: "x", upstream=upstream) == "x"
    assert [event.kind for event in seen] == kinds


def waits_for(steps, clock):
    """Wait as the steps ask. Return their result and the seconds of each wait."""
    waits = []
    try:
        while True:
            waits.append(next(steps).seconds)
            clock.advance(waits[-1])
    except StopIteration as stop:
        return stop.value, waits


def test_the_quota(clock):
    """A repeat is taken at once, or at the time that the quota names if that is not too late."""
    now = clock.now()
    assert waits_for(wait_for_quota(lambda at: 0.0, 0.0), clock) == (True, [])
    later = wait_for_quota(lambda at: 0.0 if at >= now + 2 else now + 2, 2.0)
    assert waits_for(later, clock) == (True, [2.0])
    now = clock.now()
    assert waits_for(wait_for_quota(lambda at: now + 2.5, 2.0), clock) == (False, [])


def test_a_named_exception_that_a_hook_can_remove(clock):
    """The hook runs first. Its failure is final, although `on` names the exception; without a hook it is repeated."""
    refused = UnauthenticatedError()

    def refresh():
        return None

    steps = play(flow(on=UnauthenticatedError, refresh=refresh), refused, None)
    assert [type(step) for step in steps] == [Send, Do, Send]
    assert [type(step) for step in play(flow(on=UnauthenticatedError), refused)] == [Send, Wait]


def test_examine_returns_a_fault_or_none(clock):
    """Another value is a mistake of the caller: a TypeError says so, and the upstream's place is free again."""

    async def later(response):
        return None

    upstream = Upstream("s", concurrency=1)
    for examine in (lambda response: True, lambda response: "503", later):
        with pytest.raises(TypeError, match="examine returns a Fault, or None"):
            recover(lambda: 1, examine=examine, upstream=upstream)
    assert recover(lambda: 1, examine=lambda response: None, upstream=upstream) == 1


def test_on_fix_that_returns_no_function(clock):
    """The failure itself is raised, with a note."""

    def call():
        raise ValidationError("too long")

    with pytest.raises(ValidationError) as caught:
        recover(call, on_fix=lambda fault: 7)
    assert "on_fix returned int, not the function to call" in caught.value.__notes__


async def test_an_async_hook_is_cancelled_when_its_time_is_over():
    """A minute, the `timeout` of a call, or the rest of the deadline; the operation goes on as if it had failed."""
    never = asyncio.Event()

    async def hang(*_):
        await never.wait()

    async def lost():
        raise TimeoutError

    began = time.monotonic()
    with pytest.raises(FaultError) as caught:
        await arecover(lost, verify=hang, timeout=0.02)
    assert "verify did not work: TimeoutError" in caught.value.__notes__
    with pytest.raises(FaultError) as caught:
        await arecover(lost, fallback=[hang, hang], timeout=0.02, policy=Policy(attempts=1), read_only=True)
    assert caught.value.__notes__.count("fallback did not work: TimeoutError") == 2
    assert time.monotonic() - began < 5


def test_a_plain_hook_sees_its_time(clock):
    """And the deadline, if that is earlier. A late one is logged."""
    seen = []

    def verify():
        seen.append(time_left())

    for options in ({}, {"timeout": 7}, {"policy": Policy(deadline=3)}):
        with pytest.raises(FaultError):
            recover(Script(TimeoutError()), verify=verify, **options)
    assert seen == [60.0, 7.0, 3.0]
    assert time_left() is None


def test_a_generator_function_is_refused():
    """Its body has not run when the call is over. A plain function may return a generator."""

    def numbers():
        yield 1

    for call in (numbers, partial(numbers)):
        with pytest.raises(TypeError, match="recover_stream"):
            recover(call)
        with pytest.raises(TypeError, match="recover_stream"):
            recover(call, upstream=Upstream("a", concurrency=1))
    assert list(recover(lambda: (each for each in (1, 2)))) == [1, 2]
