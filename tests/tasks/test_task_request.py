"""The first record of a task, from what was submitted."""

import pytest

from amends.errors import FaultError
from amends.tasks import Agent, Step, sequence
from amends.tasks.registry import Registry
from amends.tasks.submit import build_submission


@pytest.fixture
def registry():
    made, agent = Registry("w", local_clock=lambda: 100.0), Agent("shop")

    @agent.capability(keyed=True)
    async def buy(payload):
        return payload

    made.register([agent])
    return made


def build(registry, task, payload=None, **given):
    options = {"id": None, "agent": None, "retry_policy": None, "deadline": None, "key": None}
    return registry.assign(build_submission(task, payload, now=registry.clock(), **(options | given)))


def test_a_capability(registry):
    """The agent that has it, its promises, and a deadline by the store's clock."""
    record = build(registry, "buy", {"x": (1, 2)}, deadline=5)
    assert (record.agent, record.steps[0].payload, record.promises) == (
        "shop",
        {"x": [1, 2]},
        {"buy": "keyed"},
    )
    assert (record.until, record.single, len(record.id)) == (105.0, True, 36)
    assert build(registry, "fly").agent is None


def test_a_document(registry):
    """Arguments go before what the document says."""
    document = {
        "id": "t",
        "type": "buy",
        "payload": 1,
        "retryPolicy": {"maxAttempts": 2},
        "idempotencyKey": "k",
        "deadline": "1970-01-01T00:10:00Z",
    }
    record = build(registry, document)
    assert (record.id, record.key, record.retry_policy, record.until) == ("t", "k", {"maxAttempts": 2}, 600.0)
    other = build(registry, document, id="u", key="l", retry_policy={"maxAttempts": 3}, deadline=1)
    assert (other.id, other.key, other.retry_policy, other.until) == ("u", "l", {"maxAttempts": 3}, 101.0)


def test_a_plan(registry):
    record = build(registry, sequence(Step(name="a", type="buy"), Step(name="b", type="fly")))
    assert (record.single, [step.agent for step in record.steps]) == (False, ["shop", None])
    with pytest.raises(TypeError, match="sequence"):
        build(registry, ["buy"])


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"id": "\ud800"}, "/id"),
        ({"key": ""}, "/idempotencyKey"),
        ({"agent": 7}, "/agent"),
        ({"deadline": "tomorrow"}, "/deadline"),
        ({"retry_policy": {"maxAttempts": 0}}, "/retryPolicy/maxAttempts"),
        ({"payload": float("nan")}, "/payload"),
    ],
)
def test_what_is_refused(registry, given, field):
    """With the field that is wrong."""
    with pytest.raises(FaultError) as refused:
        build(registry, "buy", **given)
    assert refused.value.fault.field == field


def test_a_request_that_is_too_large(registry):
    """Each payload fits, all of them together do not."""
    steps = sequence(*(Step(name=f"s{n}", type="buy", payload="x" * 300_000) for n in range(4)))
    with pytest.raises(FaultError, match="at most 900000"):
        build(registry, steps)
