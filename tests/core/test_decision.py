"""`decide`: the decision about one failure."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from amends import Decision, Fault, Operation, Policy, State, decide
from amends.core.backoff import Backoff
from amends.core.decision import NON_FATAL, REASONS, spent, too_late
from amends.core.enums import Action, Executed, Recovery
from amends.core.policy import UNBOUNDED

READ = Operation(read_only=True)


def verdict(fault, **given):
    """Return action, delay and reason of the decision."""
    decision = decide(fault, **given)
    return decision.action.value, decision.delay, decision.reason


def test_a_hint_is_waited_for():
    """A10: `retry_after` is rounded up and clamped for AdCP, and used unchanged elsewhere."""
    assert verdict(Fault(code="RATE_LIMITED", retry_after=1.5)) == ("retry", 1.5, "hint")
    assert verdict(Fault(code="RATE_LIMITED", vocabulary="adcp", retry_after=5.2)) == ("retry", 6.0, "hint")


def test_a_named_wait_is_not_shorter_than_ours_after_the_first_repeat():
    """A service may ask for one repeat at once. That one failed, so the next ones come no earlier than without a hint."""
    at_once = Fault(code="SERVICE_UNAVAILABLE", retry_after=0.0, executed="no")
    verdicts = [verdict(at_once, state=State(attempt=n)) for n in (1, 2, 3, 4)]
    assert verdicts == [("retry", 0.0, "hint"), *(("retry", wait, "backoff") for wait in (2.0, 4.0, 8.0))]
    assert (
        decide(at_once, state=State(attempt=3), draw=0.5).delay == 3.0
    )  # ours is shortened by jitter, as without a hint
    longer = Fault(code="RATE_LIMITED", retry_after=30.0)
    assert verdict(longer, state=State(attempt=4)) == ("retry", 30.0, "hint")
    assert verdict(at_once, state=State(attempt=3, exact=True)) == ("retry", 0.0, "hint")
    late = decide(at_once, state=State(attempt=4, waited=295.0))
    assert (late.reason, late.resume_in) == ("wait-too-long", 8.0)


def test_a_code_that_allows_a_repeat_at_once_keeps_it():
    """S2: after exit 7 the same command may be run again immediately, each time that it says so."""
    again = Fault(code="TIMEOUT", vocabulary="cli", retry_after=0.0)
    assert verdict(again, operation=READ, state=State(attempt=3)) == ("retry", 0.0, "hint")


def test_a_cli_code_has_its_own_first_wait():
    """M6: the first wait is 5 s for a rate limit and 0 s for a time-out; M4: later waits are not shorter."""
    limited = Fault(code="RATE_LIMITED", vocabulary="cli")
    assert verdict(limited) == ("retry", 5.0, "row-wait")
    assert verdict(limited, state=State(attempt=2)) == ("retry", 5.0, "row-wait")
    assert verdict(limited, state=State(attempt=4)) == ("retry", 8.0, "backoff")
    assert verdict(Fault(code="TIMEOUT", vocabulary="cli"), operation=READ) == ("retry", 0.0, "row-wait")


def test_without_a_hint_the_wait_grows():
    """P9, T5: without a hint the waits are 1, 2, 4 s."""
    fault = Fault(code="SERVICE_UNAVAILABLE")
    waits = [decide(fault, operation=READ, state=State(attempt=n)).delay for n in (1, 2, 3)]
    assert waits == [1, 2, 4]


def test_correctable_is_handed_back_and_terminal_escalated():
    """A10: a correctable failure is `fix`, a terminal one `escalate`."""
    assert verdict(Fault(code="VALIDATION_ERROR")) == ("fix", None, "correctable")
    assert verdict(Fault(code="PERMISSION_DENIED")) == ("escalate", None, "terminal")


def test_a_fallback_replaces_escalation():
    """T9: `fallback` is also the action for a missing connection, but not for a request that has to change."""
    policy = Policy(fallback=True)
    assert verdict(Fault(code="PERMISSION_DENIED"), policy=policy)[0] == "fallback"
    assert verdict(Fault(code="MCP_NOT_CONNECTED", vocabulary="task"), policy=policy)[0] == "fallback"
    assert verdict(Fault(code="VALIDATION_ERROR"), policy=policy)[0] == "fix"


def test_an_unknown_effect_is_verified_first():
    """M3: if the operation may have had its effect, only a repeatable operation is retried."""
    fault = Fault(code="TIMEOUT")
    assert verdict(fault) == ("verify", None, "effect-unknown")
    assert verdict(fault, operation=READ)[0] == "retry"


def test_attempts_of_all_layers_count():
    """C10: attempts of the lower layers, reported now or before, count towards the limit."""
    fault = Fault(code="RATE_LIMITED")
    assert verdict(fault, state=State(attempt=5))[2] == "attempts"
    assert verdict(Fault(code="RATE_LIMITED", attempt=5))[2] == "attempts"
    assert verdict(fault, state=State(attempt=2, below=3))[2] == "attempts"
    assert verdict(Fault(code="RATE_LIMITED", attempt=3))[0] == "retry"
    # Another call would make four tries again: eight in all.
    assert verdict(Fault(code="RATE_LIMITED", attempt=4))[2] == "attempts"
    assert verdict(Fault(code="RATE_LIMITED", attempt=9), policy=UNBOUNDED)[0] == "retry"


def test_calls_over_any_chain_are_bounded():
    """M8: with any attempts at each hop, the last service gets at most the largest of them plus hops - 1 calls."""

    def calls(hops):
        """Return the calls that the last service gets if every call fails."""
        policy, below = Policy(attempts=hops[0]), hops[1:]
        state = State(attempt=0)
        while True:
            cost = calls(below) if below else 1
            state = replace(state, attempt=state.attempt + 1)
            fault = Fault(code="RATE_LIMITED", attempt=cost)
            decision = decide(fault, policy=policy, state=state)
            state = replace(state, below=state.below + cost - 1)
            if decision.action is not Action.RETRY:
                return state.attempt + state.below

    for count in (1, 2, 3):
        for hops in product(range(1, 8), repeat=count):
            assert calls(hops) <= max(hops) + count - 1, hops


def test_max_retries_lowers_the_limit():
    """`max_retries` of the fault can lower our limit but not raise it."""
    assert verdict(Fault(code="RATE_LIMITED", max_retries=0))[2] == "verdict"
    assert verdict(Fault(code="RATE_LIMITED", max_retries=1))[0] == "retry"
    assert verdict(Fault(code="RATE_LIMITED", max_retries=99), state=State(attempt=5))[2] == "attempts"
    assert verdict(Fault(code="RATE_LIMITED", max_retries=-1))[0] == "retry"


def test_an_uncertain_failure_is_retried_twice():
    """An uncertain failure of a repeatable operation is retried as often as the policy allows; the default is twice."""
    fault = Fault(code="INTERNAL_ERROR")
    assert verdict(fault, operation=READ) == ("retry", 1.0, "uncertain")
    once, twice = State(attempt=2, uncertain=1), State(attempt=3, uncertain=2)
    assert verdict(fault, operation=READ, state=once)[0] == "retry"
    assert verdict(fault, operation=READ, state=twice)[2] == "uncertain-spent"
    assert verdict(fault, operation=READ, state=once, policy=Policy(uncertain=1))[2] == "uncertain-spent"
    asked = Fault(code="INTERNAL_ERROR", max_retries=1)
    assert verdict(asked, operation=READ, state=once)[2] == "verdict"


def test_a_wait_that_is_too_long_is_not_started():
    """A wait beyond the limit escalates at once, and `resume_in` is the bounded wait."""
    decision = decide(Fault(code="RATE_LIMITED", retry_after=86400))
    assert decision == Decision(action=Action.ESCALATE, delay=None, reason="wait-too-long", resume_in=86400.0)
    assert verdict(Fault(code="RATE_LIMITED", retry_after=2), state=State(waited=299))[2] == "wait-too-long"


def test_no_call_starts_after_the_deadline():
    """The deadline of the policy and that of the enclosing operation both apply."""
    fault, policy = Fault(code="RATE_LIMITED", retry_after=5), Policy(deadline=10)
    begun = State(started=100.0)
    assert verdict(fault, policy=policy, state=begun, now=104.0)[0] == "retry"
    assert verdict(fault, policy=policy, state=begun, now=105.0)[2] == "deadline"
    assert verdict(fault, policy=policy, state=begun)[0] == "retry"
    assert verdict(fault, policy=policy, now=105.0)[0] == "retry"
    outer = State(started=100.0, until=103.0)
    assert verdict(fault, policy=policy, state=outer, now=100.0)[2] == "deadline"
    assert verdict(fault, state=outer, now=97.0)[0] == "retry"


def test_jitter_shortens_backoff_and_lengthens_hints():
    """Jitter never exceeds `max_wait` if the wait without jitter does not."""
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
def test_every_decision_keeps_the_limits(fault, state, operation, fallback, draw):
    """For any fault: the reason is known, no unsafe retry, no wait beyond the rest of `max_wait` or below the hint."""
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
    """The backoff of the policy is used if no rule has one."""
    policy = Policy(backoff=Backoff(kind=kind, first=0.5))
    assert decide(Fault(code="TIMEOUT"), policy=policy, operation=READ, state=State(attempt=3)).delay in {
        2.0,
        1.5,
    }


def test_other_limits_hold_without_a_limit_on_attempts():
    """`max_retries` and the two retries of an uncertain failure also apply to the unbounded policy."""
    asked = Fault(code="RATE_LIMITED", max_retries=0, retry_after=5)
    assert decide(asked, policy=UNBOUNDED).reason == "verdict"
    unknown = Fault(code="INTERNAL_ERROR", executed="no")
    assert decide(unknown, policy=UNBOUNDED).reason == "uncertain"
    assert decide(unknown, policy=UNBOUNDED, state=State(attempt=3, uncertain=2)).reason == "uncertain-spent"


def test_a_remark_needs_no_action():
    """M1, M6: a fault that is not fatal gives `none`, whatever its recovery is."""
    for recovery in Recovery:
        remark = Fault(code="RATE_LIMITED", vocabulary="adcp", recovery=recovery, fatal=False)
        assert decide(remark, policy=Policy(fallback=True)) == NON_FATAL
    with pytest.raises(TypeError):
        Fault(code="X", fatal="no")


@pytest.mark.parametrize(
    ("fault", "state", "attempts", "uncertain", "reason"),
    [
        ({}, {"attempt": 1}, None, 0, None),
        ({}, {"attempt": 4}, 5, 0, None),
        ({}, {"attempt": 5}, 5, 0, "attempts"),
        ({}, {"attempt": 1, "below": 3}, 5, 0, None),
        ({}, {"attempt": 1, "below": 4}, 5, 0, "attempts"),
        # The last call cost three tries, and the next one is expected to cost as many.
        ({"attempt": 3}, {"attempt": 1}, 5, 0, None),
        ({"attempt": 3}, {"attempt": 1}, 4, 0, "attempts"),
        ({"attempt": 0}, {"attempt": 4}, 5, 0, None),
        ({"attempt": 3}, {"attempt": 9}, None, 0, None),
        ({"max_retries": 1}, {"attempt": 1}, None, 0, None),
        ({"max_retries": 1}, {"attempt": 2}, None, 0, "verdict"),
        ({"max_retries": 0}, {"attempt": 1}, None, 0, "verdict"),
        ({"max_retries": -1}, {"attempt": 9}, None, 0, None),
        ({"recovery": "uncertain"}, {"attempt": 2, "uncertain": 1}, None, 2, None),
        ({"recovery": "uncertain"}, {"attempt": 3, "uncertain": 2}, None, 2, "uncertain-spent"),
        ({}, {"attempt": 3, "uncertain": 2}, None, 2, None),
    ],
)
def test_when_no_further_try_is_allowed(fault, state, attempts, uncertain, reason):
    """After as many tries as allowed, those of lower layers included, and after as many retries as the sender allows."""
    found = spent(Fault(**{"code": "RATE_LIMITED", **fault}), State(**state), attempts, uncertain)
    assert found == reason


@pytest.mark.parametrize(
    ("policy", "state", "now", "delay", "reason"),
    [
        ({"max_wait": 10.0}, {"waited": 4.0}, None, 6.0, None),
        ({"max_wait": 10.0}, {"waited": 4.0}, None, 6.1, "wait-too-long"),
        ({"max_wait": None}, {"waited": 1e9}, None, 1e9, None),
        ({"deadline": 10.0}, {"started": 100.0}, 105.0, 4.9, None),
        ({"deadline": 10.0}, {"started": 100.0}, 105.0, 5.0, "deadline"),
        ({"deadline": 10.0}, {"started": 100.0}, None, 5.0, None),
        ({"deadline": 10.0}, {}, 105.0, 5.0, None),
        ({}, {"until": 103.0}, 101.0, 1.9, None),
        ({}, {"until": 103.0}, 101.0, 2.0, "deadline"),
        ({"deadline": 10.0}, {"started": 100.0, "until": 103.0}, 101.0, 2.0, "deadline"),
        ({"deadline": 10.0}, {"started": 100.0, "until": 120.0}, 101.0, 9.0, "deadline"),
    ],
)
def test_when_a_wait_is_too_long(policy, state, now, delay, reason):
    """Beyond the waiting in all; at the deadline, which is the earlier of the operation's and the one around."""
    assert too_late(Policy(**policy), State(attempt=1, **state), now, delay) == reason


def test_how_long_to_wait_without_a_hint():
    """The backoff, or the wait of the code: that is the first wait, and the least of the later ones."""
    limited = Fault(code="RATE_LIMITED", vocabulary="cli")
    waits = [decide(limited, state=State(attempt=number)).delay for number in (1, 2, 3, 4)]
    assert waits == [5.0, 5.0, 5.0, 8.0]
    reasons = [decide(limited, state=State(attempt=number)).reason for number in (1, 2, 3, 4)]
    assert reasons == ["row-wait", "row-wait", "row-wait", "backoff"]
    late = Fault(code="TIMEOUT", vocabulary="cli", executed="no")
    assert [decide(late, state=State(attempt=number)).delay for number in (1, 2)] == [0.0, 2.0]


def test_when_to_come_back():
    """An escalation names the whole wait that was asked for, also above an hour; a quota when it starts again."""
    for wait, expected in ((7200.0, 7200.0), (301.0, 301.0), (3600.0, 3600.0)):
        found = decide(Fault(code="RATE_LIMITED", retry_after=wait))
        assert (found.action, found.reason, found.resume_in) == ("escalate", "wait-too-long", expected)
    adcp = decide(Fault(code="RATE_LIMITED", vocabulary="adcp", retry_after=400.2))
    assert adcp.resume_in == 401.0
    spent_up = decide(Fault(code="RATE_LIMITED", retry_after=5.0), state=State(attempt=5))
    assert (spent_up.reason, spent_up.resume_in) == ("attempts", 5.0)
    assert decide(Fault(code="RATE_LIMITED"), state=State(attempt=5)).resume_in is None
    for code, wait, expected in (
        ("QUOTA_EXCEEDED", 60, 60.0),
        ("QUOTA_EXCEEDED", -5, 0.0),
        ("PAYMENT_REQUIRED", 60, None),
    ):
        assert decide(Fault(code=code, retry_after=wait)).resume_in == expected


def test_jitter():
    """It lengthens a wait that was asked for, not beyond a bound; it shortens one of our own."""
    hinted = Fault(code="RATE_LIMITED", retry_after=10.0)
    assert decide(hinted, draw=1.0).delay == 11.0
    assert decide(hinted, draw=1.0, policy=Policy(max_wait=10.5)).delay == 10.0
    assert decide(hinted, draw=1.0, policy=Policy(max_wait=11.0)).delay == 11.0
    own = Fault(code="RATE_LIMITED")
    assert decide(own).delay == 1.0
    assert 0.0 <= decide(own, draw=1.0).delay < 1.0
    assert decide(own, draw=0.0).delay == 1.0
