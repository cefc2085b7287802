"""Decisions about one failure, without a clock, random numbers or patching."""

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
    """Return (action, delay, reason) of a decision."""
    decision = decide(fault, **given)
    return decision.action.value, decision.delay, decision.reason


def test_a_hint_is_waited_for():
    """A10: rounded up and clamped in AdCP, unchanged elsewhere."""
    assert verdict(Fault(code="RATE_LIMITED", retry_after=1.5)) == ("retry", 1.5, "hint")
    assert verdict(Fault(code="RATE_LIMITED", vocabulary="adcp", retry_after=5.2)) == ("retry", 6.0, "hint")


def test_a_cli_code_has_its_own_first_wait():
    """M6: 5 s for a rate limit on a command line, none for a time-out; M4: later waits are not shorter."""
    limited = Fault(code="RATE_LIMITED", vocabulary="cli")
    assert verdict(limited) == ("retry", 5.0, "row-wait")
    assert verdict(limited, state=State(attempt=2)) == ("retry", 5.0, "row-wait")
    assert verdict(limited, state=State(attempt=4)) == ("retry", 8.0, "backoff")
    assert verdict(Fault(code="TIMEOUT", vocabulary="cli"), operation=READ) == ("retry", 0.0, "row-wait")


def test_without_a_hint_the_wait_grows():
    """P9, T5: 1, 2, 4 s."""
    fault = Fault(code="SERVICE_UNAVAILABLE")
    waits = [decide(fault, operation=READ, state=State(attempt=n)).delay for n in (1, 2, 3)]
    assert waits == [1, 2, 4]


def test_correctable_is_fixed_and_terminal_escalated():
    """A10: the actions of the two classes."""
    assert verdict(Fault(code="VALIDATION_ERROR")) == ("fix", None, "correctable")
    assert verdict(Fault(code="PERMISSION_DENIED")) == ("escalate", None, "terminal")


def test_a_fallback_is_used_where_a_retry_cannot_help():
    """T9: also for a missing connection, but not for a request that has to change."""
    policy = Policy(fallback=True)
    assert verdict(Fault(code="PERMISSION_DENIED"), policy=policy)[0] == "fallback"
    assert verdict(Fault(code="MCP_NOT_CONNECTED", vocabulary="task"), policy=policy)[0] == "fallback"
    assert verdict(Fault(code="VALIDATION_ERROR"), policy=policy)[0] == "fix"


def test_a_call_that_may_have_had_its_effect_is_verified():
    """M3: it is repeated only if a repeat is safe."""
    fault = Fault(code="TIMEOUT")
    assert verdict(fault) == ("verify", None, "effect-unknown")
    assert verdict(fault, operation=READ)[0] == "retry"


def test_tries_of_lower_layers_count():
    """C10: tries of lower layers count as attempts, those of this call and of earlier ones."""
    fault = Fault(code="RATE_LIMITED")
    assert verdict(fault, state=State(attempt=5))[2] == "attempts"
    assert verdict(Fault(code="RATE_LIMITED", attempt=5))[2] == "attempts"
    assert verdict(fault, state=State(attempt=2, below=3))[2] == "attempts"
    assert verdict(Fault(code="RATE_LIMITED", attempt=4))[0] == "retry"
    assert verdict(Fault(code="RATE_LIMITED", attempt=9), policy=UNBOUNDED)[0] == "retry"


def test_the_failing_service_may_ask_for_fewer_tries():
    """`max_retries` lowers the number of retries and never raises it."""
    assert verdict(Fault(code="RATE_LIMITED", max_retries=0))[2] == "verdict"
    assert verdict(Fault(code="RATE_LIMITED", max_retries=1))[0] == "retry"
    assert verdict(Fault(code="RATE_LIMITED", max_retries=99), state=State(attempt=5))[2] == "attempts"
    assert verdict(Fault(code="RATE_LIMITED", max_retries=-1))[0] == "retry"


def test_maybe_gets_one_more_try():
    """An uncertain failure gets one retry, or as many as the policy allows, if a repeat is safe."""
    fault = Fault(code="INTERNAL_ERROR")
    assert verdict(fault, operation=READ) == ("retry", 1.0, "uncertain")
    spent = State(attempt=2, uncertain=1)
    assert verdict(fault, operation=READ, state=spent)[2] == "uncertain-spent"
    assert verdict(fault, operation=READ, state=spent, policy=Policy(uncertain=2))[0] == "retry"


def test_a_wait_that_is_too_long_is_not_begun():
    """A hint beyond the waiting time left is escalated at once, with the time to come back."""
    decision = decide(Fault(code="RATE_LIMITED", retry_after=86400))
    assert decision == Decision(action=Action.ESCALATE, delay=None, reason="wait-too-long", resume_in=3600.0)
    assert verdict(Fault(code="RATE_LIMITED", retry_after=2), state=State(waited=299))[2] == "wait-too-long"


def test_no_call_starts_after_the_deadline():
    """The policy's deadline and that of an enclosing operation apply."""
    fault, policy = Fault(code="RATE_LIMITED", retry_after=5), Policy(deadline=10)
    begun = State(started=100.0)
    assert verdict(fault, policy=policy, state=begun, now=104.0)[0] == "retry"
    assert verdict(fault, policy=policy, state=begun, now=105.0)[2] == "deadline"
    assert verdict(fault, policy=policy, state=begun)[0] == "retry"
    assert verdict(fault, policy=policy, now=105.0)[0] == "retry"
    outer = State(started=100.0, until=103.0)
    assert verdict(fault, policy=policy, state=outer, now=100.0)[2] == "deadline"
    assert verdict(fault, state=outer, now=97.0)[0] == "retry"


def test_jitter_shortens_own_waits_and_lengthens_hints():
    """Jitter never pushes a wait over a bound that it kept without jitter."""
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
    """For any fault: a known reason, no unsafe repeat, no wait beyond the time left, none below the hint."""
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
    """The policy's backoff applies if no rule has another."""
    policy = Policy(backoff=Backoff(kind=kind, first=0.5))
    assert decide(Fault(code="TIMEOUT"), policy=policy, operation=READ, state=State(attempt=3)).delay in {
        2.0,
        1.5,
    }


def test_without_a_limit_on_attempts_max_retries_still_applies():
    """The sender's limit and the one retry of an uncertain failure apply without a limit on attempts."""
    asked = Fault(code="RATE_LIMITED", max_retries=0, retry_after=5)
    assert decide(asked, policy=UNBOUNDED).reason == "verdict"
    unknown = Fault(code="INTERNAL_ERROR", executed="no")
    assert decide(unknown, policy=UNBOUNDED).reason == "uncertain"
    assert decide(unknown, policy=UNBOUNDED, state=State(attempt=2, uncertain=1)).reason == "uncertain-spent"
