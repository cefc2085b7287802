"""A `retryPolicy` that makes no sense is refused with the field; where the contract overrides it, the response says so."""

import pytest

from amends.core.fault import Fault
from amends.errors.base import FaultError
from amends.tasks.recovery import overridden
from amends.tasks.submit import check_retry_policy


@pytest.mark.parametrize(
    ("policy", "pointer"),
    [
        ({"maxAttempts": 0}, "/retryPolicy/maxAttempts"),
        ({"maxAttempts": -1}, "/retryPolicy/maxAttempts"),
        ({"maxAttempts": 2.5}, "/retryPolicy/maxAttempts"),
        ({"maxAttempts": "3"}, "/retryPolicy/maxAttempts"),
        ({"maxAttempts": True}, "/retryPolicy/maxAttempts"),
        ({"maxAttempts": 10**6}, "/retryPolicy/maxAttempts"),
        ({"backoffType": "sometimes"}, "/retryPolicy/backoffType"),
        ({"backoffType": 3}, "/retryPolicy/backoffType"),
        ({"initialDelay": -1}, "/retryPolicy/initialDelay"),
        ({"initialDelay": float("nan")}, "/retryPolicy/initialDelay"),
        ({"initialDelay": 1e12}, "/retryPolicy/initialDelay"),
        ({"initialDelay": "soon"}, "/retryPolicy/initialDelay"),
        ([3], "/retryPolicy"),
    ],
)
def test_a_policy_that_makes_no_sense(policy, pointer):
    with pytest.raises(FaultError) as raised:
        check_retry_policy(policy)
    assert (raised.value.fault.code, raised.value.fault.field) == ("INVALID_FIELD_VALUE", pointer)
    assert raised.value.fault.details["pointer"] == pointer


@pytest.mark.parametrize(
    "policy",
    [
        {},
        {"maxAttempts": 5},
        {"maxAttempts": 3.0, "backoffType": "linear", "initialDelay": 0},
        {"x": 1},
    ],
)
def test_a_policy_that_makes_sense(policy):
    check_retry_policy(policy)


@pytest.mark.parametrize(
    ("policy", "code", "recovery", "says"),
    [
        ({"maxAttempts": 5}, "INVALID_INPUT", "correctable", "input errors"),
        ({"maxAttempts": 5}, "KNOWLEDGE_NOT_FOUND", "terminal", "not recoverable"),
        ({"maxAttempts": 5}, "MCP_NOT_CONNECTED", "correctable", "until its cause is removed"),
        ({"maxAttempts": 5}, "TIMEOUT", "transient", None),
        ({"maxAttempts": 1}, "INVALID_INPUT", "correctable", None),
        (None, "INVALID_INPUT", "correctable", None),
    ],
)
def test_what_overrides_a_policy(policy, code, recovery, says):
    found = overridden(policy, Fault(code=code, vocabulary="task", recovery=recovery))
    assert (found is None) if says is None else (says in found)


async def test_a_request_with_such_a_policy_is_refused(manual):
    """With a response, and nothing is stored."""
    response = await manual.run("work", retry_policy={"maxAttempts": 0})
    assert (response.status, response.error.field) == ("failed", "/retryPolicy/maxAttempts")
    assert [row async for row in manual.list()] == []
