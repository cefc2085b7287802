"""Tests of the pure Stepper and of the ready-made policies."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from amends import Fault, Operation, Policy
from amends.core.decision import REASONS, State
from amends.core.enums import Action, Executed, Recovery
from amends.recovery import ADCP, CLI, NONE, TASK, Attempt, Stepper, from_retry_policy
from amends.recovery.stepper import remedy_for

READ = Operation(read_only=True)
DOWN = Fault(code="SERVICE_UNAVAILABLE")


def test_a_step_does_not_change_the_stepper():
    """Each method returns a new Stepper."""
    first = Stepper(operation=READ)
    second = first.failed(DOWN, started=1.0, ended=1.5)
    assert first.history == ()
    assert (second.decision.action, second.decision.delay) == (Action.RETRY, 1.0)
    third = second.waited(1.0)
    assert (second.state.waited, third.state.waited, third.history[0].wait) == (0.0, 1.0, 1.0)


def test_every_attempt_is_kept():
    """The history has number, start, duration, fault, exception, decision and wait of each attempt."""
    error = ValueError("x")
    stepper = (
        Stepper(operation=READ).failed(DOWN, started=1.0, ended=1.5, error=error, parked=0.25).waited(1.0)
    )
    stepper = stepper.succeeded(started=2.5, ended=2.75)
    one, two = stepper.history
    assert (one.number, one.started, one.duration, one.parked, one.wait) == (1, 1.0, 0.5, 0.25, 1.0)
    assert (one.fault, one.error, one.decision.reason) == (DOWN, error, "backoff")
    assert (two.number, two.duration, two.fault, two.decision) == (2, 0.25, None, None)


def test_there_is_no_decision_before_a_failure():
    """Reading the decision raises LookupError."""
    with pytest.raises(LookupError):
        _ = Stepper().decision
    with pytest.raises(LookupError):
        Stepper().remedied("refresh", "refreshed", 0.0)


def test_waiting_before_the_first_call_counts():
    """A wait in the queue counts towards the policy's bound."""
    assert Stepper().waited(3.0).state.waited == 3.0


def test_patience_is_the_time_until_the_nearest_bound():
    """The bounds are `max_wait`, the own deadline and the outer one."""
    stepper = Stepper(policy=Policy(max_wait=10, deadline=8)).waited(3.0)
    assert stepper.patience(0.0) == 7.0
    begun = stepper.failed(DOWN, started=100.0, ended=101.0)
    assert begun.patience(104.0) == 4.0
    assert begun.patience(200.0) == 0.0
    assert Stepper(policy=Policy(max_wait=None)).patience(0.0) == float("inf")


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        (Fault(code="UNAUTHENTICATED"), "refresh"),
        (Fault(code="AUTH_INVALID", vocabulary="adcp"), "refresh"),
        (Fault(code="AUTH_MISSING", vocabulary="adcp"), "refresh"),
        (Fault(code="MCP_AUTH_FAILED", vocabulary="task"), "refresh"),
        (Fault(code="UNAUTHENTICATED", vocabulary="arcp"), "refresh"),
        (Fault(code="UNAUTHENTICATED", vocabulary="http", status=401), "refresh"),
        (Fault(code="MCP_NOT_CONNECTED", vocabulary="task"), "setup"),
        (Fault(code="PERMISSION_DENIED"), None),
        (DOWN, None),
    ],
)
def test_some_failures_have_a_remedy(fault, remedy):
    """Refused credentials and a missing connection have one (T7)."""
    assert remedy_for(fault) == remedy


def test_a_remedy_allows_one_more_try_within_the_bounds():
    """Attempts and time limit the repeat; the recovery class does not."""
    refused = Fault(code="UNAUTHENTICATED")
    stepper = Stepper().failed(refused, started=0.0, ended=1.0)
    again = stepper.remedied("refresh", "refreshed", 1.0)
    assert (again.decision.action, again.decision.delay, again.decision.reason) == (
        Action.RETRY,
        0.0,
        "refreshed",
    )
    assert again.remedies == {"refresh"}
    spent = Stepper(policy=NONE).failed(refused, started=0.0, ended=1.0).remedied("refresh", "refreshed", 1.0)
    assert spent.decision.reason == "attempts"
    late = Stepper(policy=Policy(deadline=1)).failed(refused, started=0.0, ended=2.0)
    assert late.remedied("refresh", "refreshed", 2.0).decision.reason == "deadline"


def test_not_happened_decides_again():
    """The failure then counts as one without effect, and has its wait."""
    stepper = Stepper().failed(Fault(code="TIMEOUT"), started=0.0, ended=1.0)
    assert stepper.decision.action is Action.VERIFY
    again = stepper.not_happened(1.0)
    assert (again.decision.action, again.decision.delay, again.decision.reason) == (
        Action.RETRY,
        1.0,
        "not-happened",
    )
    maybe = Stepper().failed(Fault(code="INTERNAL_ERROR"), started=0.0, ended=1.0).not_happened(1.0)
    assert maybe.state.uncertain == 1
    ended = Stepper(policy=NONE).failed(Fault(code="TIMEOUT"), started=0.0, ended=1.0).not_happened(1.0)
    assert ended.decision.reason == "attempts"


def test_not_happened_keeps_the_bounds():
    """The attempts inside the call count once, the time and the random number of now count, and waits are drawn."""
    inner = Fault(code="TIMEOUT", attempt=3)
    stepper = Stepper(policy=Policy(attempts=5)).failed(inner, started=0.0, ended=1.0)
    assert (stepper.tries, stepper.not_happened(1.0).decision.action) == (3, Action.RETRY)
    late = Stepper(policy=Policy(deadline=5.0)).failed(Fault(code="TIMEOUT"), started=0.0, ended=1.0)
    assert late.not_happened(3.0).decision.action is Action.RETRY
    assert late.not_happened(5.0).decision.reason == "deadline"
    none, most = (late.not_happened(1.0, draw).decision.delay for draw in (0.0, 1.0))
    assert none != most
    assert late.not_happened(1.0).state.uncertain == 0
    assert late.not_happened(1.0).history[-1].decision.reason == "not-happened"
    with pytest.raises(LookupError):
        Stepper().not_happened(1.0)


def test_giving_up_takes_the_fallback_if_there_is_one():
    """This holds also for reasons outside the fault."""
    assert Stepper().failed(DOWN, started=0, ended=0).gave_up("parked").decision.action is Action.ESCALATE
    other = Stepper(policy=Policy(fallback=True)).failed(DOWN, started=0, ended=0)
    assert other.gave_up("parked", 3.0).decision.action is Action.FALLBACK


def test_inner_attempts_count():
    """With three inner calls for each of ours, our second attempt is the sixth call."""
    fault = Fault(code="RATE_LIMITED", attempt=3)
    stepper = Stepper(policy=Policy(attempts=6)).failed(fault, started=0, ended=0)
    assert (stepper.decision.action, stepper.tries) == (Action.RETRY, 3)
    stepper = stepper.failed(fault, started=1, ended=1)
    assert (stepper.decision.reason, stepper.tries) == ("attempts", 6)


def test_a_pickled_attempt_leaves_out_error_and_result():
    """Everything else is kept."""
    attempt = Attempt(number=1, started=0.0, duration=1.0, fault=DOWN, error=ValueError("x"), result=object())
    back = pickle.loads(pickle.dumps(attempt))
    assert (back.number, back.fault, back.error, back.result) == (1, DOWN, None, None)


# Ready-made policies -------------------------------------------------------------------------------------------


def waits(policy, code, vocabulary="task", operation=READ):
    """Return the waits between calls that all fail in the same way."""
    stepper, found = Stepper(policy=policy, operation=operation), []
    while True:
        stepper = stepper.failed(Fault(code=code, vocabulary=vocabulary), started=0.0, ended=0.0, draw=0.7)
        if stepper.decision.action is not Action.RETRY:
            return found
        found.append(stepper.decision.delay)
        stepper = stepper.waited(stepper.decision.delay)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("INVALID_INPUT", []),
        ("MCP_RATE_LIMITED", [1, 2]),
        ("MCP_ERROR", [1, 2]),
        ("TIMEOUT", [1]),
        ("INTERNAL_ERROR", [1, 2]),
        ("AGENT_BUSY", [1, 2]),
        ("AGENT_NOT_FOUND", []),
        ("KNOWLEDGE_NOT_FOUND", []),
        ("MCP_NOT_CONNECTED", []),
    ],
)
def test_the_task_policy_depends_on_the_category(code, expected):
    """T7: attempts count calls, waits have no jitter, and an error that is not recoverable is never retried."""
    assert waits(TASK, code) == expected


def test_a_task_may_have_its_own_retry_policy():
    """T8: it overrides every category, its delay is in milliseconds; input errors are still not repeated."""
    policy = from_retry_policy({"maxAttempts": 4, "backoffType": "linear", "initialDelay": 500})
    assert waits(policy, "MCP_ERROR") == [0.5, 1.0, 1.5]
    assert waits(policy, "TIMEOUT") == [0.5, 1.0, 1.5]
    assert waits(policy, "INVALID_INPUT") == []
    assert waits(from_retry_policy({"backoffType": "constant"}), "TIMEOUT") == [1.0]
    assert waits(from_retry_policy({"maxAttempts": 3}), "TIMEOUT") == [1.0, 2.0]
    assert from_retry_policy({"maxAttempts": 10**9}).attempts == 100


@pytest.mark.parametrize(
    "nonsense",
    [None, 5, {}, {"maxAttempts": 0}, {"maxAttempts": True}, {"initialDelay": -1}, {"backoffType": ["x"]}],
)
def test_invalid_members_of_a_retry_policy_are_ignored(nonsense):
    """Members of a wrong type count as missing."""
    assert from_retry_policy(nonsense) is TASK


def test_adcp_and_cli_policies_stop_after_three_attempts():
    """A11, C12: an uncertain failure gets one more try."""
    assert len(waits(ADCP, "RATE_LIMITED", "adcp")) == 2
    assert len(waits(CLI, "TIMEOUT", "cli")) == 2
    assert len(waits(CLI, "INTERNAL_ERROR", "cli")) == 1
    assert waits(CLI, "INTERNAL_ERROR", "cli", Operation()) == []


# Any sequence of failures ----------------------------------------------------------------------------------------

faults = st.builds(
    Fault,
    code=st.sampled_from(
        ["RATE_LIMITED", "TIMEOUT", "INTERNAL_ERROR", "SERVICE_UNAVAILABLE", "UNAUTHENTICATED"]
    ),
    vocabulary=st.sampled_from(["everyday", "http", "cli", "task", "adcp", "arcp"]),
    recovery=st.sampled_from(list(Recovery)),
    executed=st.sampled_from(list(Executed)),
    retry_after=st.none() | st.floats(-10, 5000),
    attempt=st.none() | st.integers(0, 4),
    max_retries=st.none() | st.integers(0, 4),
)
policies = st.builds(
    Policy,
    attempts=st.integers(1, 6),
    max_wait=st.floats(0, 400),
    deadline=st.none() | st.floats(0.1, 400),
    uncertain=st.integers(0, 3),
    rules=st.just({}),
)


@given(
    policy=policies,
    operation=st.sampled_from([Operation(), READ, Operation(key="k")]),
    script=st.lists(
        st.tuples(faults, st.floats(0, 5), st.sampled_from(["", "remedy", "looked"])), max_size=12
    ),
    until=st.none() | st.floats(0, 300),
    draw=st.floats(0, 1, exclude_max=True),
)
def test_no_sequence_of_failures_breaks_a_bound(policy, operation, script, until, draw):
    """Calls, waiting and time stay within the bounds, and no unsafe call is repeated after an unknown effect."""
    now, calls = 0.0, 0
    stepper = Stepper(policy=policy, operation=operation)
    stepper = Stepper(
        policy=policy, operation=operation, state=type(stepper.state)(attempt=0, started=0.0, until=until)
    )
    for fault, took, hook in script:
        calls += 1
        started, now = now, now + took
        stepper = stepper.failed(fault, started=started, ended=now, draw=draw)
        looked = False
        if hook == "remedy" and stepper.decision.action in {Action.FIX, Action.ESCALATE}:
            stepper = stepper.remedied("refresh", "refreshed", now)
        elif hook == "looked" and stepper.decision.action is Action.VERIFY:
            stepper, looked = stepper.not_happened(now, draw), True
        decision = stepper.decision
        assert decision.reason in REASONS
        assert stepper.history[-1].decision == decision
        if decision.action is not Action.RETRY:
            break
        remedied = decision.reason == "refreshed"
        assert looked or remedied or fault.executed is Executed.NO or operation.repeatable
        now += decision.delay
        stepper = stepper.waited(decision.delay)
        limits = [each for each in (policy.deadline, until) if each is not None]
        assert all(now < limit for limit in limits)
    assert calls <= policy.attempts
    assert stepper.state.waited <= policy.max_wait + 1e-6
    assert len(stepper.history) == calls


def test_what_a_call_without_facts_counts():
    """It did not wait in a queue, nothing waited below it, and it is one try."""
    fault = Fault(code="RATE_LIMITED", retry_after=3.0)
    failed = Stepper().failed(fault, started=1.0, ended=3.0, draw=0.0)
    (attempt,) = failed.history
    assert (attempt.number, attempt.started, attempt.duration) == (1, 1.0, 2.0)
    assert (attempt.parked, attempt.wait, attempt.error, attempt.result) == (0.0, 0.0, None, None)
    assert (failed.state.waited, failed.state.below, failed.state.uncertain) == (0.0, 0, 0)
    assert (failed.tries, failed.state.started) == (1, 1.0)
    done = failed.succeeded(started=5.0, ended=5.5)
    assert (done.history[-1].parked, done.history[-1].duration, done.history[-1].number) == (0.0, 0.5, 2)
    assert done.state.attempt == 2
    fresh = Stepper()
    assert (fresh.state.attempt, fresh.tries, fresh.history, fresh.remedies) == (0, 0, (), frozenset())


def test_the_facts_of_a_failed_call():
    """Waits and tries of recoveries inside it count; the first start stays."""
    fault = Fault(code="RATE_LIMITED", retry_after=3.0, attempt=4)
    stepper = Stepper().failed(fault, started=1.0, ended=3.0, draw=0.0, parked=2.5, waited_below=7.0)
    assert (stepper.history[0].parked, stepper.state.waited) == (2.5, 7.0)
    assert (stepper.state.below, stepper.tries) == (3, 4)
    again = stepper.waited(2.0).failed(fault, started=9.0, ended=9.5, draw=0.0)
    assert (again.state.started, again.state.attempt, again.tries) == (1.0, 2, 8)
    assert again.history[0].wait == 2.0
    assert again.state.waited == 9.0
    zero = Stepper().failed(replace(fault, attempt=0), started=1.0, ended=3.0, draw=0.0)
    assert zero.state.below == 0


def test_the_patience_of_an_operation():
    """The least of what the policy's waiting, the deadline and the operation around leave; never negative."""
    assert Stepper(policy=Policy(max_wait=None)).patience(5.0) == float("inf")
    stepper = Stepper(
        policy=Policy(max_wait=10.0, deadline=30.0), state=State(attempt=0, started=100.0, waited=4.0)
    )
    assert stepper.patience(100.0) == 6.0
    assert stepper.patience(126.0) == 4.0
    assert stepper.patience(131.0) == 0.0
    around = replace(stepper, state=replace(stepper.state, until=103.0))
    assert around.patience(101.0) == 2.0
    unlimited = Stepper(policy=Policy(max_wait=None, deadline=5.0))
    assert unlimited.patience(99.0) == float("inf")


def test_a_wait_before_the_first_call():
    """It counts towards the bound, and no attempt has it."""
    stepper = Stepper().waited(3.0).waited(2.0)
    assert (stepper.state.waited, stepper.history) == (5.0, ())
