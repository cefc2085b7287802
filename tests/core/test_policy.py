"""Policy: the limits for a fault."""

import pickle

import pytest
from msgspec.structs import replace

from amends import Fault, Policy, translate
from amends.core.backoff import Backoff
from amends.core.policy import DEFAULT, UNBOUNDED, Rule, meaning


def test_the_default_is_five_calls_and_three_for_adcp():
    """A11: the default policy allows five calls, and three for AdCP errors."""
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
    """T7: attempts and backoff of a task error depend on its category."""
    found, backoff, _ = DEFAULT.limits(Fault(code=code, vocabulary="task"))
    assert (found, backoff.kind) == (attempts, kind)


def test_the_most_specific_rule_wins():
    """A rule for the code applies before one for the category, the vocabulary and the recovery class."""
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
    assert policy.limits(Fault(code="NOT_FOUND")) == (5, policy.backoff, 2)


def test_a_bare_code_matches_by_meaning():
    """A rule for RATE_LIMITED applies to every vocabulary; one that names a vocabulary applies to that one only."""
    limited = [
        Fault(code="RATE_LIMITED"),
        Fault(code="RATE_LIMITED", vocabulary="http", status=429),
        Fault(code="HTTP_429", vocabulary="http", status=429),
        Fault(code="RATE_LIMITED", vocabulary="adcp"),
        Fault(code="RATE_LIMITED", vocabulary="arcp"),
        Fault(code="MCP_RATE_LIMITED", vocabulary="task"),
        translate(Fault(code="RATE_LIMITED"), to="arcp")[0],
        translate(Fault(code="MCP_RATE_LIMITED", vocabulary="task"), to="arcp")[0],
    ]
    by_meaning = Policy(rules={"RATE_LIMITED": Rule(attempts=9)})
    assert [by_meaning.limits(fault)[0] for fault in limited] == [9] * len(limited)
    assert by_meaning.limits(Fault(code="SERVICE_UNAVAILABLE"))[0] == 5
    named = Policy(rules={"adcp:RATE_LIMITED": Rule(attempts=2), "RATE_LIMITED": Rule(attempts=9)})
    assert [named.limits(fault)[0] for fault in limited] == [9, 9, 9, 2, 9, 9, 9, 9]
    only = Policy(rules={"http:RATE_LIMITED": Rule(attempts=2)})
    assert [only.limits(fault)[0] for fault in limited[:5]] == [5, 2, 5, 5, 5]
    for details in (
        {"translated_from": 3},
        {"translated_from": {"vocabulary": [], "code": {}}},
        {"translated_from": {}},
    ):
        assert by_meaning.limits(Fault(code="TIMEOUT", details=details))[0] == 5


def test_a_given_number_wins_over_the_default_of_a_vocabulary():
    """`Policy(attempts=N)` applies to AdCP and task errors too; a rule that the user gives wins over it."""
    adcp, task = Fault(code="RATE_LIMITED", vocabulary="adcp"), Fault(code="TIMEOUT", vocabulary="task")
    wrong = Fault(code="INVALID_INPUT", vocabulary="task")
    for given in (1, 2, 5, 8, None):
        policy = Policy(attempts=given)
        for same in (policy, pickle.loads(pickle.dumps(policy)), replace(policy, max_wait=9)):
            assert [same.limits(fault)[0] for fault in (adcp, task)] == [given, given]
            # The backoff of the category stays, and input errors are never repeated.
            assert same.limits(task)[1].kind == "linear"
            assert same.limits(wrong)[0] == 1
    default = replace(DEFAULT, max_wait=9)
    assert [default.limits(fault)[0] for fault in (adcp, task)] == [3, 2]
    given = Policy(attempts=5, rules={"adcp:RATE_LIMITED": Rule(attempts=7), "adcp": Rule(attempts=6)})
    assert given.limits(adcp)[0] == 7
    assert given.limits(Fault(code="CONFLICT", vocabulary="adcp"))[0] == 6


def test_the_unbounded_policy():
    """The policy of `amends decode` has no limit on attempts."""
    assert UNBOUNDED.limits(Fault(code="RATE_LIMITED", vocabulary="adcp"))[0] is None


@pytest.mark.parametrize(
    "wrong",
    [{"attempts": 0}, {"max_wait": -1}, {"max_wait": float("nan")}, {"deadline": 0}, {"uncertain": -1}],
)
def test_invalid_values_raise(wrong):
    """The constructor validates its arguments."""
    with pytest.raises(ValueError):
        Policy(**wrong)


@pytest.mark.parametrize("wrong", [1.5, "3", True])
def test_counts_are_integers(wrong):
    """A number of attempts or retries of another type is a mistake of the caller."""
    for made in (Rule, Policy):
        with pytest.raises(TypeError):
            made(attempts=wrong)
        with pytest.raises(TypeError):
            made(uncertain=wrong)


def test_limits_of_the_wrong_type_and_range():
    """The message names the argument; the least possible values are accepted."""
    for wrong in ({"max_wait": "5"}, {"deadline": "5"}, {"deadline": True}, {"max_wait": []}):
        with pytest.raises(TypeError, match=next(iter(wrong))):
            Policy(**wrong)
    for wrong in ({"deadline": 0}, {"deadline": -1}, {"deadline": float("nan")}, {"max_wait": -0.1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Policy(**wrong)
    least = Policy(attempts=1, max_wait=0, deadline=0.001, uncertain=0)
    assert (least.attempts, least.max_wait, least.deadline, least.uncertain) == (1, 0, 0.001, 0)
    with pytest.raises(TypeError, match="rules"):
        Policy(rules=[Rule()])
    with pytest.raises(TypeError, match="rules"):
        Policy(rules={"adcp": 3})
    with pytest.raises(TypeError, match="backoff"):
        Policy(backoff=5)


def test_the_defaults():
    """Five calls, five minutes, two repeats after uncertain failures, no deadline, no fallback."""
    policy = Policy()
    assert (policy.attempts, policy.max_wait, policy.deadline) == (5, 300.0, None)
    assert (policy.uncertain, policy.backoff, policy.fallback) == (2, Backoff(), False)
    assert (UNBOUNDED.attempts, UNBOUNDED.max_wait, UNBOUNDED.rules) == (None, None, {})
    rule = Rule()
    assert (rule.attempts, rule.backoff, rule.uncertain) == (None, None, None)


def test_a_translated_code_counts_only_if_it_is_complete():
    """Both its vocabulary and its code are needed."""
    source = {"vocabulary": "everyday", "code": "RATE_LIMITED"}
    assert meaning(Fault(code="TIMEOUT", details={"translated_from": source})) == "RATE_LIMITED"
    for half in (
        {"vocabulary": "everyday"},
        {"code": "RATE_LIMITED"},
        {**source, "code": 7},
        {**source, "vocabulary": None},
    ):
        assert meaning(Fault(code="TIMEOUT", details={"translated_from": half})) == "TIMEOUT"


def test_a_rule_without_attempts_leaves_them():
    """So does one without a backoff or without retries after uncertain failures."""
    slow = Backoff(first=9)
    policy = Policy(
        attempts=4,
        backoff=slow,
        uncertain=1,
        rules={"transient": Rule(uncertain=0), "terminal": Rule(attempts=2)},
    )
    assert policy.limits(Fault(code="RATE_LIMITED")) == (4, slow, 0)
    assert policy.limits(Fault(code="PERMISSION_DENIED")) == (2, slow, 1)
    assert policy.limits(Fault(code="NOT_FOUND")) == (4, slow, 1)
