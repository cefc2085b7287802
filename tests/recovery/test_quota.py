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


def test_what_a_quota_begins_with():
    """A hundred repeats are saved, none is taken."""
    quota = Quota()
    assert (quota.saved, quota.taken, quota.earned) == (100.0, 0, 0)
    for _ in range(100):
        assert quota.take(5.0) == 0.0
    assert quota.take(5.0) == 5.1
    assert (quota.taken, quota.saved) == (100, 0.0)


def test_what_successes_and_time_earn():
    """1.5 repeats per success and ten per second, up to what was saved at the beginning; successes count once."""
    quota = Quota(saved=20.0)
    for _ in range(20):
        quota.take(0.0)
    quota.earned += 4
    assert quota.take(0.0) == 0.0
    assert (quota.saved, quota.earned) == (5.0, 0)
    assert quota.take(0.5) == 0.0
    assert quota.saved == 9.0
    quota.earned += 1000
    assert quota.take(0.5) == 0.0
    assert quota.saved == 19.0


def test_when_the_next_repeat_is_available():
    """The time is exact, and rounding does not make it too early."""
    quota = Quota(per_second=0.1, saved=1.25)
    assert quota.take(10.0) == 0.0
    assert quota.take(10.0) == 17.5
    assert quota.take(17.5) == 0.0
    assert quota.saved == 0.0
    quota = Quota(saved=0.999)
    assert quota.take(0.0) == 0.0
    assert quota.saved == 0.0
    assert Quota(saved=0.75).take(0.0) == 0.025


def test_the_successes_of_a_second_are_saved():
    """A batch earns its repeats at once; what was earned long ago is not saved beyond the cap."""
    for rate, repeats in ((400.0, 600), (10.0, 100), (0.0, 100)):
        quota = Quota()
        quota.earned = 1000
        taken = 0
        while quota.take(100.0, rate) == 0.0:
            taken += 1
        assert taken == repeats
