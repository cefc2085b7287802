"""Which limits apply to which fault."""

import pytest

from amends import Fault, Policy
from amends.core.backoff import Backoff
from amends.core.policy import DEFAULT, UNBOUNDED, Rule


def test_the_default_is_five_calls_and_three_for_adcp():
    """A11's limit applies to AdCP errors also under the default policy."""
    assert DEFAULT.limits(Fault(code="RATE_LIMITED"))[0] == 5
    assert DEFAULT.limits(Fault(code="RATE_LIMITED", vocabulary="adcp"))[0] == 3
    assert DEFAULT.max_wait == 300


@pytest.mark.parametrize(
    ("code", "attempts", "kind"),
    [
        ("INVALID_INPUT", 1, "exponential"),
        ("AGENT_BUSY", 3, "exponential"),
        ("MCP_RATE_LIMITED", 3, "exponential"),
        ("TIMEOUT", 2, "linear"),
        ("RATE_LIMITED", 3, "exponential"),
    ],
)
def test_task_errors_go_by_category(code, attempts, kind):
    """T7: each category has its own rule."""
    found, backoff, _ = DEFAULT.limits(Fault(code=code, vocabulary="task"))
    assert (found, backoff.kind) == (attempts, kind)


def test_the_most_specific_rule_wins():
    """Code before category, category before vocabulary, vocabulary before recovery class."""
    slow = Backoff(first=9)
    policy = Policy(
        rules={
            "task:TIMEOUT": Rule(attempts=7),
            "task/coordination": Rule(attempts=6),
            "task": Rule(attempts=4),
            "transient": Rule(backoff=slow, uncertain=3),
        }
    )
    assert policy.limits(Fault(code="TIMEOUT", vocabulary="task"))[0] == 7
    assert policy.limits(Fault(code="DELEGATION_FAILED", vocabulary="task"))[0] == 6
    assert policy.limits(Fault(code="RATE_LIMITED", vocabulary="task"))[0] == 4
    assert policy.limits(Fault(code="RATE_LIMITED")) == (5, slow, 3)
    assert policy.limits(Fault(code="NOT_FOUND")) == (5, policy.backoff, 1)


def test_no_rules_means_the_policy_itself():
    """The policy of `amends decode` has no limits."""
    assert UNBOUNDED.limits(Fault(code="RATE_LIMITED", vocabulary="adcp"))[0] is None


@pytest.mark.parametrize(
    "wrong",
    [{"attempts": 0}, {"max_wait": -1}, {"max_wait": float("nan")}, {"deadline": 0}, {"uncertain": -1}],
)
def test_impossible_values_raise(wrong):
    """Values that a policy cannot have raise in the constructor."""
    with pytest.raises(ValueError):
        Policy(**wrong)
