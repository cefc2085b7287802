"""The ready-made policies, and the policy of a task request."""

import doctest

import pytest

from amends import Policy
from amends.core.backoff import BackoffKind
from amends.core.policy import Rule
from amends.recovery import policies
from amends.recovery.policies import ADCP, CLI, NONE, TASK, from_retry_policy


def test_its_examples():
    """The examples in the docstrings hold."""
    assert doctest.testmod(policies).failed == 0


def test_the_policies_of_the_specifications():
    """T7: three attempts, two for coordination, one for input. A11: three and 300 s. C12: three and one uncertain."""
    assert (TASK.attempts, TASK.uncertain, TASK.backoff.spread) == (3, 2, 0.0)
    assert TASK.rules["task/input"].attempts == 1
    coordination = TASK.rules["task/coordination"]
    assert (coordination.attempts, coordination.backoff.kind) == (2, BackoffKind.LINEAR)
    assert coordination.backoff.spread == 0.0
    assert (ADCP.attempts, ADCP.max_wait, ADCP.rules) == (3, 300.0, {})
    assert (CLI.attempts, CLI.uncertain, CLI.rules) == (3, 1, {})
    assert (NONE.attempts, NONE.max_wait, NONE.rules) == (1, 0.0, {})


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        "x",
        {},
        {"maxAttempts": 0},
        {"maxAttempts": True},
        {"maxAttempts": 1.5},
        {"maxAttempts": "3"},
        {"backoffType": "unknown"},
        {"backoffType": []},
        {"initialDelay": -1},
        {"initialDelay": float("nan")},
    ],
)
def test_documents_without_a_usable_member(document):
    """Members of the wrong type count as missing, and without any the base is returned."""
    assert from_retry_policy(document) is TASK


def test_max_attempts():
    """The attempts hold for every category except input, and uncertain errors get as many; 100 is the most."""
    found = from_retry_policy({"maxAttempts": 5})
    assert (found.attempts, found.uncertain) == (5, 4)
    assert found.rules["task/coordination"].attempts is None
    assert found.rules["task/coordination"].backoff is TASK.rules["task/coordination"].backoff
    assert found.rules["task/input"] == Rule(attempts=1)
    assert found.backoff is TASK.backoff
    assert from_retry_policy({"maxAttempts": 1}).attempts == 1
    assert from_retry_policy({"maxAttempts": 1}).uncertain == TASK.uncertain
    assert from_retry_policy({"maxAttempts": 100}).attempts == 100
    assert from_retry_policy({"maxAttempts": 101}).attempts == 100


def test_the_backoff():
    """A kind or a delay replaces the backoff of every category, without jitter; the attempts stay."""
    linear = from_retry_policy({"backoffType": "linear"})
    assert (linear.backoff.kind, linear.backoff.first, linear.backoff.spread) == (
        BackoffKind.LINEAR,
        TASK.backoff.first,
        0.0,
    )
    assert (linear.attempts, linear.uncertain) == (TASK.attempts, TASK.uncertain)
    assert linear.rules["task/coordination"].attempts == 2
    assert linear.rules["task/coordination"].backoff is None
    delayed = from_retry_policy({"initialDelay": 250, "backoffType": 7})
    assert (delayed.backoff.kind, delayed.backoff.first) == (TASK.backoff.kind, 0.25)
    assert from_retry_policy({"initialDelay": 0}).backoff.first == 0.0


def test_the_rest_comes_from_the_base():
    """Bounds and fallback of the base are kept."""
    base = Policy(attempts=2, max_wait=7.0, deadline=9.0, fallback=True, rules={})
    found = from_retry_policy({"maxAttempts": 4}, base)
    assert (found.max_wait, found.deadline, found.fallback) == (7.0, 9.0, True)
    assert found.rules == {"task/input": Rule(attempts=1)}


def test_one_attempt_of_a_task_request():
    """`maxAttempts` 1 is one call, and none is no answer."""
    assert from_retry_policy({"maxAttempts": 1}).attempts == 1
    assert from_retry_policy({"maxAttempts": 2}).attempts == 2
    assert from_retry_policy({"maxAttempts": 0}) is TASK
