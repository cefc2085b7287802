"""A `retryPolicy` that makes no sense is refused with the field; where the contract overrides it, the response says so."""

import pytest

from amends.core.fault import Fault
from amends.errors.base import FaultError
from amends.recovery.policies import from_retry_policy
from amends.tasks import Agent, Request
from amends.tasks.recovery import overridden
from amends.tasks.retry_policy import check_retry_policy


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
        {"maxAttempts": 5.0},
    ],
)
def test_a_policy_that_makes_sense(policy):
    """T8: also an empty one, which is the default policy."""
    check_retry_policy(policy)
    request = {"id": "t", "type": "x", "retryPolicy": policy}
    assert Request.read(request).document() == request


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("maxattempts", "maxAttempts"),
        ("max_attempts", "maxAttempts"),
        ("maxAttempt", "maxAttempts"),
        ("backoff", "backoffType"),
        ("initialDelayMs", "initialDelay"),
        ("x", None),
        ("a/b~c", None),
        (3, None),
        ("m" * 10_000, None),
    ],
)
async def test_an_unknown_name_is_refused_with_the_nearest(name, near):
    """T8: a misspelt member would be ignored in silence. Requests, plans, and agents without an orchestrator refuse it."""
    with pytest.raises(FaultError) as raised:
        check_retry_policy({name: 3})
    fault = raised.value.fault
    assert fault.code == "INVALID_FIELD_VALUE"
    assert fault.field.startswith("/retryPolicy/")
    assert (
        f"did you mean {near}?" if near else "there are maxAttempts, backoffType, initialDelay"
    ) in fault.message
    assert (near or "maxAttempts") in fault.suggestions[0]
    assert len(fault.message) < 300
    document = {"id": "t", "type": "work", "retryPolicy": {name: 3}}
    with pytest.raises(FaultError, match="retryPolicy"):
        Request.read(document)
    response = await Agent("worker").handle(document)
    assert response.error.field == fault.field


def test_a_whole_number_written_as_a_float_counts():
    """T8: JavaScript and protobuf write 5 as 5.0."""
    assert from_retry_policy({"maxAttempts": 5.0}).attempts == 5
    assert from_retry_policy({"maxAttempts": 5.0}) == from_retry_policy({"maxAttempts": 5})
    default = from_retry_policy({})
    assert from_retry_policy({"maxAttempts": 5.5}) == default
    assert from_retry_policy({"maxAttempts": float("inf")}) == default


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
