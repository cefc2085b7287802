"""The order of the calls that wait."""

from hypothesis import given
from hypothesis import strategies as st

from amends import Operation, Upstream, recover
from amends.core.fault import Fault
from amends.recovery.async_library import ThreadWaiter, Waiter
from amends.recovery.waiting_line import WaitingLine


def waiter(priority=0):
    new = Waiter()
    new.priority = priority
    return new


def test_the_order():
    """The highest priority first, and within one in the order of arrival."""
    line = WaitingLine()
    assert (bool(line), len(line), list(line)) == (False, 0, [])
    waiters = [waiter(priority) for priority in (0, 5, 0, -3, 5)]
    for each in waiters:
        line.add(each)
    assert [waiters.index(each) for each in line] == [1, 4, 0, 2, 3]
    assert line.head() is waiters[1]
    line.discard(waiters[1])
    line.discard(waiters[1])
    assert (line.head() is waiters[4], waiters[1] in line, waiters[4] in line, len(line)) == (
        True,
        False,
        True,
        4,
    )


@given(st.lists(st.tuples(st.booleans(), st.integers(-2, 2)), max_size=60))
def test_it_keeps_what_was_added_and_not_removed(steps):
    """Whatever the order."""
    line, inside = WaitingLine(), []
    for add, priority in steps:
        if add:
            inside.append(waiter(priority))
            line.add(inside[-1])
        elif inside:
            line.discard(inside.pop(0))
        assert list(line) == sorted(inside, key=lambda each: -each.priority)
        assert bool(line) == bool(inside)
        if inside:
            assert line.head() is next(iter(line))


def test_an_upstream_lets_the_higher_priority_out_first():
    """Where all wait for the same service."""
    upstream = Upstream(concurrency=1)
    first, low, high = ThreadWaiter(), ThreadWaiter(), ThreadWaiter()
    assert upstream.look(first, 0.0) == 0.0
    upstream.look(low, 0.0)
    upstream.look(high, 0.0, priority=5)
    upstream.succeeded(0.1, 0.0)
    assert (low.granted, high.granted) == (False, True)


def test_a_low_priority_is_held_while_a_high_one_is_sent(clock):
    """Through `Operation(priority=…)`."""
    upstream = Upstream("shop")
    for _ in range(20):
        upstream.failed(Fault(code="RATE_LIMITED", retry_after=20), clock.now(), clock.now(), 0.5)
    began = clock.now()
    assert recover(lambda: "high", upstream=upstream, operation=Operation(priority=1)) == "high"
    assert clock.now() == began
    assert recover(lambda: "low", upstream=upstream, operation=Operation()) == "low"
    assert clock.now() >= began + 20
