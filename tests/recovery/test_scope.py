"""The operation that code runs in, and its deadline."""

from contextvars import copy_context

from amends import Operation
from amends.recovery.scope import SCOPE, Scope, current_operation, time_left


def test_outside_of_an_operation():
    """There is no operation and no deadline."""
    assert (current_operation(), time_left()) == (None, None)


def test_inside_of_an_operation(clock):
    """The time left is never negative; an operation without a deadline has none."""

    def look(until):
        SCOPE.set(Scope(Operation(name="a"), until))
        return current_operation().name, time_left()

    now = clock.now()
    for until, left in [(now + 3, 3.0), (now - 3, 0.0), (None, None)]:
        assert copy_context().run(look, until) == ("a", left)
    assert Scope(Operation()).upstreams == ()
