"""The pure way of one operation through its attempts."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends import Fault, Operation, Policy
from amends.core.decision import REASONS
from amends.core.enums import Action, Executed, Recovery
from amends.recovery import ADCP, CLI, NONE, TASK, Attempt, Stepper, from_retry_policy
from amends.recovery.stepper import remedy_for

READ = Operation(read_only=True)
DOWN = Fault(code="SERVICE_UNAVAILABLE")


def test_state_is_replaced_not_changed():
    """A step leaves the one before it as it was."""
    first = Stepper(operation=READ)
    second = first.failed(DOWN, started=1.0, ended=1.5)
    assert first.history == ()
    assert (second.decision.action, second.decision.delay) == (Action.RETRY, 1.0)
    third = second.waited(1.0)
    assert (second.state.waited, third.state.waited, third.history[0].wait) == (0.0, 1.0, 1.0)


def test_every_attempt_is_kept():
    """Number, start, duration, fault, exception, decision and wait of each, success included."""
    error = ValueError("x")
    stepper = (
        Stepper(operation=READ).failed(DOWN, started=1.0, ended=1.5, error=error, parked=0.25).waited(1.0)
    )
    stepper = stepper.succeeded(started=2.5, ended=2.75)
    one, two = stepper.history
    assert (one.number, one.started, one.duration, one.parked, one.wait) == (1, 1.0, 0.5, 0.25, 1.0)
    assert (one.fault, one.error, one.decision.reason) == (DOWN, error, "backoff")
    assert (two.number, two.duration, two.fault, two.decision) == (2, 0.25, None, None)


def test_nothing_is_decided_before_something_failed():
    """Asking is a programming mistake and says so."""
    with pytest.raises(LookupError):
        _ = Stepper().decision
    with pytest.raises(LookupError):
        Stepper().remedied("refresh", "refreshed", 0.0)


def test_waiting_before_the_first_call_counts():
    """Time in line counts towards the bound."""
    assert Stepper().waited(3.0).state.waited == 3.0


def test_patience_is_what_the_nearest_bound_leaves():
    """Waiting, the own deadline and the one around."""
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
    """New credentials, or a connection that has to be set up first (T7)."""
    assert remedy_for(fault) == remedy


def test_a_remedy_allows_one_more_try_within_the_bounds():
    """Attempts and time still count; the class of the failure does not."""
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


def test_what_did_not_happen_is_decided_again():
    """As a failure that surely had no effect, with its wait."""
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


def test_giving_up_takes_the_other_way_where_there_is_one():
    """For reasons outside the fault, too."""
    assert Stepper().failed(DOWN, started=0, ended=0).gave_up("parked").decision.action is Action.ESCALATE
    other = Stepper(policy=Policy(fallback=True)).failed(DOWN, started=0, ended=0)
    assert other.gave_up("parked", 3.0).decision.action is Action.FALLBACK


def test_tries_below_count_in_every_attempt():
    """Three below each of ours: the second of ours is the sixth call."""
    fault = Fault(code="RATE_LIMITED", attempt=3)
    stepper = Stepper(policy=Policy(attempts=6)).failed(fault, started=0, ended=0)
    assert (stepper.decision.action, stepper.tries) == (Action.RETRY, 3)
    stepper = stepper.failed(fault, started=1, ended=1)
    assert (stepper.decision.reason, stepper.tries) == ("attempts", 6)


def test_an_attempt_travels_without_what_cannot():
    """Exceptions of other libraries do not survive pickling; everything else does."""
    attempt = Attempt(number=1, started=0.0, duration=1.0, fault=DOWN, error=ValueError("x"), result=object())
    back = pickle.loads(pickle.dumps(attempt))
    assert (back.number, back.fault, back.error, back.result) == (1, DOWN, None, None)


# Ready policies ------------------------------------------------------------------------------------------------


def waits(policy, code, vocabulary="task", operation=READ):
    """The waits between calls that all fail alike."""
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
def test_the_task_policy_goes_by_category(code, expected):
    """T7: attempts count calls, waits are unjittered, a "no" is never retried."""
    assert waits(TASK, code) == expected


def test_a_task_may_bring_its_own_policy():
    """T8: it overrides every category, its delay is in milliseconds; an input error stays unrepeated."""
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
def test_a_policy_that_says_nothing_changes_nothing(nonsense):
    """Members of the wrong type are ignored."""
    assert from_retry_policy(nonsense) is TASK


def test_adcp_stops_after_three_and_the_command_line_too():
    """A11, C12: one more try where nobody knows."""
    assert len(waits(ADCP, "RATE_LIMITED", "adcp")) == 2
    assert len(waits(CLI, "TIMEOUT", "cli")) == 2
    assert len(waits(CLI, "INTERNAL_ERROR", "cli")) == 1
    assert waits(CLI, "INTERNAL_ERROR", "cli", Operation()) == []


# Whatever happens ------------------------------------------------------------------------------------------------

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
def test_no_script_of_failures_breaks_a_bound(policy, operation, script, until, draw):
    """Never more calls, waiting or time than allowed; never a repeat of what may have happened unless it is safe."""
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
