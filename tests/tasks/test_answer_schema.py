"""Answers are checked against the schema of the question."""

import pytest

from amends.errors.base import FaultError
from amends.tasks import Agent
from amends.tasks.answer_schema import check_answer

SCHEMA = {
    "type": "object",
    "required": ["city"],
    "properties": {
        "city": {"type": "string", "minLength": 2},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
    },
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("answer", "code", "field"),
    [
        ("Rome", "INVALID_FIELD_TYPE", "/answer"),
        ({}, "MISSING_REQUIRED_FIELD", "/answer/city"),
        ({"city": 3}, "INVALID_FIELD_TYPE", "/answer/city"),
        ({"city": "R"}, "INVALID_FIELD_VALUE", "/answer/city"),
        ({"city": "Rome", "days": 0}, "INVALID_FIELD_VALUE", "/answer/days"),
        ({"city": "Rome", "days": True}, "INVALID_FIELD_TYPE", "/answer/days"),
        ({"city": "Rome", "tags": ["c"]}, "INVALID_FIELD_VALUE", "/answer/tags/0"),
        ({"city": "Rome", "tags": ["a", "a", "a"]}, "INVALID_FIELD_VALUE", "/answer/tags"),
        ({"city": "Rome", "more": 1}, "INVALID_FIELD_VALUE", "/answer/more"),
    ],
)
async def test_a_wrong_answer_is_refused(manual, answer, code, field):
    """The task still waits for the right one."""
    agent = Agent("worker")

    @agent.capability
    async def work(payload, ctx):
        return ctx.ask("Where?", schema=SCHEMA)

    manual.register(agent)
    await manual.submit("work", id="t")
    await manual.drain()
    with pytest.raises(FaultError) as raised:
        await manual.answer("t", answer)
    assert (raised.value.fault.code, raised.value.fault.field) == (code, field)
    right = {"city": "Rome", "days": 2, "tags": ["a"]}
    await manual.answer("t", right)
    await manual.drain()
    assert (await manual.get("t").response()).result == right


@pytest.mark.parametrize(
    "schema", [None, {}, 3, {"type": 7}, {"type": "odd"}, {"required": "x", "properties": []}]
)
def test_schemas_that_say_nothing(schema):
    check_answer({"any": 1}, schema)
