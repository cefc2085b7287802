"""Tests of the pace of calls."""

import pytest

from amends.recovery.pacing import (
    BEHIND,
    CUT,
    DEEP_CUT,
    GOOD,
    LEAST_PACE,
    LONG_CUT,
    REFUSED_PACE,
    SLOWEST,
    START,
    Pacing,
)


def started(*, trip=0.05, before=0.0, strained=False):
    """Return the pace of a service with ten calls per second, and the time."""
    pacing, now = Pacing(), 100.0
    for _ in range(400):
        now += 0.1
        pacing.succeeded_open(now, now - trip)
    pacing._strained = strained
    pacing.start_pace(now, before)
    return pacing, now


def test_the_first_pace():
    """Slightly above the arrivals; after an outage in RAMP the pace before, after an overload at most the arrivals."""
    assert started()[0].pace == pytest.approx(START * 10, rel=0.05)
    assert started(before=40.0)[0].pace == 40.0
    assert started(before=40.0, strained=True)[0].pace == pytest.approx(10, rel=0.05)
    assert started(before=1.0)[0].pace == pytest.approx(SLOWEST * 10, rel=0.05)


def test_turns_are_taken_at_the_pace():
    """Sending that is late may catch up a little, not more."""
    pacing, now = started()
    pacing.pace = 10.0
    assert pacing.take_turn(now) == pytest.approx(now + 0.1)
    assert pacing.take_turn(now + 0.1) == 0.0
    assert sum(pacing.take_turn(now + 5.0) == 0.0 for _ in range(100)) == 1 + round(10 * BEHIND)


@pytest.mark.parametrize(("trip", "factor"), [(0.3, CUT), (1.2, DEEP_CUT), (0.06, None)])
def test_slow_answers_lower_the_pace(trip, factor):
    """The slower, the more; a calm answer raises it."""
    pacing, now = started()
    before = pacing.pace
    assert pacing.follow(now + trip, now) == (factor is None)
    if factor is None:
        assert pacing.pace > before
    else:
        assert pacing.pace == pytest.approx(max(factor * before, GOOD * pacing.good_rate(now + trip)))


def test_where_calls_are_long_a_cut_is_deeper():
    """The next slow answer comes late."""
    pacing, now = started(trip=1.0)
    before = pacing.pace = 100.0
    pacing.follow(now + 1.5, now)
    assert pacing.pace == pytest.approx(LONG_CUT * before)


def test_a_pace_below_the_arrivals_returns_to_them():
    """Calm answers raise it within half a minute."""
    pacing, now = started(before=1.0)
    for _ in range(300):
        now += 0.1
        pacing.arrived()
        pacing.follow(now, now - 0.05)
    assert pacing.pace >= 9.0


def test_refusals_lower_the_pace_to_slightly_more_than_what_succeeds():
    """A limit that was raised is noticed."""
    pacing, now = started()
    for _ in range(100):
        now += 0.1
        pacing.cut_refused(now, now - 0.01)
    assert pacing.pace == pytest.approx(REFUSED_PACE * pacing.good_rate(now), rel=0.1)


def test_a_limit_that_the_service_names():
    """Calls are paced only if fewer are allowed than arrive: until the end of the window, at least one in 20 s."""
    pacing, now = started()
    assert pacing.limit_pace(now, 10, 20.0)
    assert (pacing.limit, pacing.limited_until) == (0.5, now + 20.0)
    assert pacing.limit_pace(now, 0, 10.0)
    assert pacing.limit == 0.1
    assert pacing.limit_pace(now, 0, 1000.0)
    assert pacing.limit == LEAST_PACE
    assert not pacing.limit_pace(now, 1000, 10.0)
    assert (pacing.limit, pacing.limited_until) == (float("inf"), float("-inf"))
    assert not pacing.limit_pace(now, 1, 0.0)
    assert not pacing.limit_pace(now, 5, -3.0)
