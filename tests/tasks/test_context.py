"""What a capability can ask of its task, and what happens without one."""

import pytest

from amends.errors import task as errors
from amends.stores import UnsupportedError
from amends.tasks.context import Context, Interruption, Question, Suspended


def context(**options):
    return Context(task="t", agent="a", capability="c", step_name="s", **options)


def test_questions_are_answered_in_their_order():
    """The step runs again from its beginning, so each question gets its own answer again."""
    ctx = context(answers=["one", None])
    assert [ctx.ask("first?"), ctx.ask("second?")] == ["one", None]
    with pytest.raises(Question) as asked:
        ctx.ask("third?", {"type": "integer"})
    assert (asked.value.question, asked.value.schema) == ("third?", {"type": "integer"})


def test_an_interruption_is_not_caught_as_an_exception():
    """Otherwise an `except Exception` in a capability would go on without the answer."""
    for kind in (Suspended, Question):
        assert issubclass(kind, Interruption)
        assert not issubclass(kind, Exception)


def test_delegations_of_the_same_kind_are_numbered():
    ctx = context()
    names = [ctx.child_name("b", "x"), ctx.child_name("b", "x"), ctx.child_name("b", "y")]
    assert names == ["s>b/x#1", "s>b/x#2", "s>b/y#1"]


async def test_without_an_orchestrator():
    """An agent that is called directly has no store and no other agents."""
    ctx = context(until=15.0, clock=lambda: 10.0)
    with pytest.raises(UnsupportedError, match="Orchestrator"):
        await ctx.once(lambda tx: None)
    with pytest.raises(errors.AgentNotFoundError):
        await ctx.delegate("x")
    assert (ctx.time_left, context().time_left) == (5.0, None)
