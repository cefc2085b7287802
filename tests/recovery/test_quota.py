"""Tests of the quota of repeats."""

from hypothesis import given
from hypothesis import strategies as st

from amends.recovery.quota import Quota


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 20)), max_size=80), st.floats(0, 100))
def test_repeats_never_exceed_what_was_earned(steps, saved):
    """At most 1.5 per success, 10 per second and the initial savings."""
    quota, now, successes = Quota(saved=saved), 50.0, 0
    for passed, more in steps:
        now += passed
        successes += more
        quota.earned += more
        while (at := quota.take(now)) == 0.0:
            pass
        assert now < at < now + 0.11
        assert 0 <= quota.saved < 1
        assert quota.taken <= (saved + 1.5 * successes + 10 * (now - 50.0)) + 0.001 * (quota.taken + 1)


def test_a_clock_that_goes_back_earns_nothing():
    """The quota neither grows nor becomes negative."""
    quota = Quota(saved=1.0)
    assert quota.take(100.0) == 0.0
    assert quota.take(50.0) > 50.0
