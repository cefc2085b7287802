"""Tests of `Hop`: the number of agents a request has come through."""

import pytest

from amends import FaultError
from amends.chain import HOPS, MAX_HOPS, Hop
from amends.core.enums import Executed, Recovery

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_hop_is_written_and_read():
    """Each agent adds one; the trace and other members are passed on."""
    first = Hop.of({"traceparent": TRACE})
    meta = first.onward({"tenant": "a"})
    assert meta == {"tenant": "a", HOPS: 1, "traceparent": TRACE}
    assert Hop.of(meta).onward()[HOPS] == 2
    assert Hop().onward({"traceparent": "mine"})["traceparent"] == "mine"


@pytest.mark.parametrize(
    "meta", [None, [], "x", {}, {HOPS: True}, {HOPS: "3"}, {HOPS: -1}, {HOPS: 1.5}, {HOPS: float("nan")}]
)
def test_an_invalid_count_is_zero(meta):
    """The metadata comes from outside."""
    assert Hop.of(meta).count == 0


def test_whole_floats_are_counts_and_odd_traces_are_none():
    """A2A's metadata has only floats."""
    assert Hop.of({HOPS: 3.0}).count == 3
    for odd in ("x", TRACE + "\n", "0" * 999, 7, None):
        assert Hop.of({"traceparent": odd}).traceparent is None


@pytest.mark.parametrize("count", [MAX_HOPS, 10**30])
def test_a_chain_that_is_too_long_is_refused(count):
    """The error is terminal, and nothing was sent."""
    with pytest.raises(FaultError) as caught:
        Hop.of({HOPS: count}).onward()
    fault = caught.value.fault
    assert (fault.vocabulary, fault.recovery, fault.executed) == ("adcp", Recovery.TERMINAL, Executed.NO)
    assert Hop.of({HOPS: 1}, limit=2).onward()[HOPS] == 2
