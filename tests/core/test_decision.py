"""What is decided about one failure. No clock, no dice, no patching."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends import Decision, Fault, Operation, Policy, State, decide
from amends.core.backoff import Backoff
from amends.core.decision import REASONS
from amends.core.enums import Action, Executed, Recovery
from amends.core.policy import UNBOUNDED

READ = Operation(read_only=True)


def verdict(fault, **given):
    """Action, delay and reason."""
    decision = decide(fault, **given)
    return decision.action.value, decision.delay, decision.reason


def test_a_hint_is_waited_for():
    """A10: rounded up and clamped in AdCP, as it is elsewhere."""
    assert verdict(Fault(code="RATE_LIMITED", retry_after=1.5)) == ("retry", 1.5, "hint")
    assert verdict(Fault(code="RATE_LIMITED", vocabulary="adcp", retry_after=5.2)) == ("retry", 6.0, "hint")


def test_a_cli_code_brings_its_own_first_wait():
    """M6: 5 s for a rate limit on a command line, none for a time-out; M4: later ones are no shorter."""
    limited = Fault(code="RATE_LIMITED", vocabulary="cli")
    assert verdict(limited) == ("retry", 5.0, "row-wait")
    assert verdict(limited, state=State(attempt=2)) == ("retry", 5.0, "row-wait")
    assert verdict(limited, state=State(attempt=4)) == ("retry", 8.0, "backoff")
    assert verdict(Fault(code="TIMEOUT", vocabulary="cli"), operation=READ) == ("retry", 0.0, "row-wait")


def test_without_a_hint_the_wait_grows():
    """1, 2, 4 s; P9, T5."""
    fault = Fault(code="SERVICE_UNAVAILABLE")
    waits = [decide(fault, operation=READ, state=State(attempt=n)).delay for n in (1, 2, 3)]
    assert waits == [1, 2, 4]


def test_correctable_is_handed_back_and_terminal_escalated():
    """A10."""
    assert verdict(Fault(code="VALIDATION_ERROR")) == ("fix", None, "correctable")
    assert verdict(Fault(code="PERMISSION_DENIED")) == ("escalate", None, "terminal")


def test_the_other_way_is_taken_where_repeating_cannot_help():
    """T9: also for a connection that is not there, but not for a request that has to change."""
    policy = Policy(fallback=True)
    assert verdict(Fault(code="PERMISSION_DENIED"), policy=policy)[0] == "fallback"
    assert verdict(Fault(code="MCP_NOT_CONNECTED", vocabulary="task"), policy=policy)[0] == "fallback"
    assert verdict(Fault(code="VALIDATION_ERROR"), policy=policy)[0] == "fix"


def test_what_may_have_happened_is_looked_at_first():
    """M3: only a safe repeat is repeated."""
    fault = Fault(code="TIMEOUT")
    assert verdict(fault) == ("verify", None, "effect-unknown")
    assert verdict(fault, operation=READ)[0] == "retry"


def test_tries_count_wherever_they_were_made():
    """C10: those below, now and before, count towards our bound."""
    fault = Fault(code="RATE_LIMITED")
    assert verdict(fault, state=State(attempt=5))[2] == "attempts"
    assert verdict(Fault(code="RATE_LIMITED", attempt=5))[2] == "attempts"
    assert verdict(fault, state=State(attempt=2, below=3))[2] == "attempts"
    assert verdict(Fault(code="RATE_LIMITED", attempt=4))[0] == "retry"
    assert verdict(Fault(code="RATE_LIMITED", attempt=9), policy=UNBOUNDED)[0] == "retry"


def test_the_failing_side_may_ask_for_fewer_tries():
    """`max_retries` lowers ours and never raises them."""
    assert verdict(Fault(code="RATE_LIMITED", max_retries=0))[2] == "verdict"
    assert verdict(Fault(code="RATE_LIMITED", max_retries=1))[0] == "retry"
    assert verdict(Fault(code="RATE_LIMITED", max_retries=99), state=State(attempt=5))[2] == "attempts"
    assert verdict(Fault(code="RATE_LIMITED", max_retries=-1))[0] == "retry"


def test_maybe_gets_one_more_try():
    """Or as many as the policy says, and only where a repeat is safe."""
    fault = Fault(code="INTERNAL_ERROR")
    assert verdict(fault, operation=READ) == ("retry", 1.0, "uncertain")
    spent = State(attempt=2, uncertain=1)
    assert verdict(fault, operation=READ, state=spent)[2] == "uncertain-spent"
    assert verdict(fault, operation=READ, state=spent, policy=Policy(uncertain=2))[0] == "retry"


def test_a_wait_that_is_too_long_is_not_begun():
    """A hostile hour costs nothing: escalated at once, with the time to come back."""
    decision = decide(Fault(code="RATE_LIMITED", retry_after=86400))
    assert decision == Decision(action=Action.ESCALATE, delay=None, reason="wait-too-long", resume_in=86400.0)
    assert verdict(Fault(code="RATE_LIMITED", retry_after=2), state=State(waited=299))[2] == "wait-too-long"


def test_no_call_starts_after_the_deadline():
    """The own one, and the one of the operation around this one."""
    fault, policy = Fault(code="RATE_LIMITED", retry_after=5), Policy(deadline=10)
    begun = State(started=100.0)
    assert verdict(fault, policy=policy, state=begun, now=104.0)[0] == "retry"
    assert verdict(fault, policy=policy, state=begun, now=105.0)[2] == "deadline"
    assert verdict(fault, policy=policy, state=begun)[0] == "retry"
    assert verdict(fault, policy=policy, now=105.0)[0] == "retry"
    outer = State(started=100.0, until=103.0)
    assert verdict(fault, policy=policy, state=outer, now=100.0)[2] == "deadline"
    assert verdict(fault, state=outer, now=97.0)[0] == "retry"


def test_jitter_goes_below_our_waits_and_above_theirs():
    """And not past a bound that was kept without it."""
    assert decide(Fault(code="SERVICE_UNAVAILABLE"), operation=READ, draw=1.0).delay == 0.5
    assert decide(Fault(code="RATE_LIMITED", retry_after=10), draw=1.0).delay == 11.0
    assert (
        decide(Fault(code="RATE_LIMITED", retry_after=10), draw=1.0, policy=Policy(max_wait=10)).delay == 10.0
    )


faults = st.builds(
    Fault,
    code=st.sampled_from(["RATE_LIMITED", "TIMEOUT", "INTERNAL_ERROR", "SERVICE_UNAVAILABLE", "X"]),
    vocabulary=st.sampled_from(["everyday", "http", "cli", "task", "adcp", "arcp"]),
    recovery=st.sampled_from(list(Recovery)),
    executed=st.sampled_from(list(Executed)),
    retry_after=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    attempt=st.none() | st.integers(-3, 9),
    max_retries=st.none() | st.integers(-3, 9),
)


@given(
    fault=faults,
    state=st.builds(State, attempt=st.integers(1, 9), waited=st.floats(0, 400), uncertain=st.integers(0, 3)),
    operation=st.sampled_from([Operation(), READ]),
    fallback=st.booleans(),
    draw=st.none() | st.floats(0, 1, exclude_max=True),
)
def test_every_decision_keeps_every_bound(fault, state, operation, fallback, draw):
    """Whatever a peer sends: a known reason, no unsafe repeat, no wait beyond what is left, none below the hint."""
    policy = Policy(fallback=fallback)
    decision = decide(fault, policy=policy, state=state, operation=operation, draw=draw)
    assert decision.reason in REASONS
    if decision.action is Action.RETRY:
        assert operation.repeatable or fault.executed is Executed.NO
        assert fault.recovery in {Recovery.TRANSIENT, Recovery.UNCERTAIN}
        assert state.attempt < policy.limits(fault)[0]
        assert 0 <= decision.delay <= 300 - state.waited
        unjittered = decide(fault, policy=policy, state=state, operation=operation)
        if unjittered.reason == "hint":
            assert decision.delay >= unjittered.delay
    else:
        assert decision.delay is None


@pytest.mark.parametrize("kind", ["exponential", "linear"])
def test_a_policy_chooses_the_backoff(kind):
    """The policy's own where no rule says otherwise."""
    policy = Policy(backoff=Backoff(kind=kind, first=0.5))
    assert decide(Fault(code="TIMEOUT"), policy=policy, operation=READ, state=State(attempt=3)).delay in {
        2.0,
        1.5,
    }


def test_without_a_bound_on_attempts_a_no_is_still_a_no():
    """The sender's own limit and the one try of an uncertain failure hold whatever the policy leaves open."""
    asked = Fault(code="RATE_LIMITED", max_retries=0, retry_after=5)
    assert decide(asked, policy=UNBOUNDED).reason == "verdict"
    unknown = Fault(code="INTERNAL_ERROR", executed="no")
    assert decide(unknown, policy=UNBOUNDED).reason == "uncertain"
    assert decide(unknown, policy=UNBOUNDED, state=State(attempt=2, uncertain=1)).reason == "uncertain-spent"
