"""Tests of when calls are sent: the hold with its probe, and the pace."""

import pytest

from amends.recovery.evidence import HINT, PLAIN, SILENT, Traffic
from amends.recovery.schedule import (
    BEHIND,
    CUT,
    DEEP_CUT,
    GOOD,
    LEAST_PACE,
    LONG_CUT,
    REFUSED_PACE,
    SLOWEST,
    START,
    Hold,
    Pace,
)


def started(*, trip=0.05, before=0.0, strained=False):
    """Return the pace of a service with ten calls per second, and the time."""
    traffic, now = Traffic(), 100.0
    for _ in range(400):
        now += 0.1
        traffic.succeeded_open(now, now - trip)
    pace = Pace(traffic)
    if before:
        pace.per_second = before
        pace.keep(strained=False)
    pace.start(now, strained=strained)
    return pace, now


def test_the_first_pace():
    """Slightly above the arrivals; after an outage in RAMP the pace before, after an overload at most the arrivals."""
    assert started()[0].per_second == pytest.approx(START * 10, rel=0.05)
    assert started(before=40.0)[0].per_second == 40.0
    assert started(before=40.0, strained=True)[0].per_second == pytest.approx(10, rel=0.05)
    assert started(before=1.0)[0].per_second == pytest.approx(SLOWEST * 10, rel=0.05)


def test_turns_are_taken_at_the_pace():
    """Sending that is late may catch up a little, not more."""
    pace, now = started()
    pace.per_second = 10.0
    assert pace.take_turn(now) == pytest.approx(now + 0.1)
    assert pace.take_turn(now + 0.1) == 0.0
    assert sum(pace.take_turn(now + 5.0) == 0.0 for _ in range(100)) == 1 + round(10 * BEHIND)


@pytest.mark.parametrize(("trip", "factor"), [(0.3, CUT), (1.2, DEEP_CUT), (0.06, None)])
def test_slow_answers_lower_the_pace(trip, factor):
    """The slower, the more; a calm answer raises it."""
    pace, now = started()
    before = pace.per_second
    assert pace.follow(now + trip, now) == (factor is None)
    if factor is None:
        assert pace.per_second > before
    else:
        assert pace.per_second == pytest.approx(
            max(factor * before, GOOD * pace._traffic.good_rate(now + trip))
        )


def test_where_calls_are_long_a_cut_is_deeper():
    """The next slow answer comes late."""
    pace, now = started(trip=1.0)
    before = pace.per_second = 100.0
    pace.follow(now + 1.5, now)
    assert pace.per_second == pytest.approx(LONG_CUT * before)


def test_a_pace_below_the_arrivals_returns_to_them():
    """Calm answers raise it within half a minute."""
    pace, now = started(before=1.0)
    for _ in range(300):
        now += 0.1
        pace._traffic.arrived()
        pace.follow(now, now - 0.05)
    assert pace.per_second >= 9.0


def test_refusals_lower_the_pace_to_slightly_more_than_what_succeeds():
    """A limit that was raised is noticed."""
    pace, now = started()
    for _ in range(100):
        now += 0.1
        pace.cut_refused(now, now - 0.01)
    assert pace.per_second == pytest.approx(REFUSED_PACE * pace._traffic.good_rate(now), rel=0.1)


def test_a_limit_that_the_service_names():
    """Calls are paced only if fewer are allowed than arrive: until the end of the window, at least one in 20 s."""
    pace, now = started()
    assert pace.limit(now, 10, 20.0, start=True)
    assert (pace.per_second, pace.limited_until) == (0.5, now + 20.0)
    assert pace.limit(now, 0, 10.0, start=False)
    assert pace.per_second == 0.1
    assert pace.limit(now, 0, 1000.0, start=False)
    assert pace.per_second == LEAST_PACE
    assert not pace.limit(now, 1000, 10.0, start=True)
    assert pace.limited_until == float("-inf")
    assert not pace.limit(now, 1, 0.0, start=True)
    assert not pace.limit(now, 5, -3.0, start=True)


def known(rate):
    """Return a service that answered `rate` calls per second for a minute, and the time."""
    traffic, now = Traffic(), 100.0
    while now < 160.0:
        now += 1.0 / rate
        traffic.succeeded_open(now, now - 0.01)
    return Hold(traffic), now


@pytest.mark.parametrize(
    ("kind", "rate", "first", "longest"),
    [(PLAIN, 10.0, 0.5, 5.0), (PLAIN, 0.1, 5.0, 10.0), (SILENT, 10.0, 5.0, 5.0), (SILENT, 0.1, 7.5, 15.0)],
)
def test_processes_that_send_few_calls_probe_less_often(kind, rate, first, longest):
    """Many of them may share the service. Each failed probe doubles the gap, up to a cap."""
    hold, now = known(rate)
    gaps = []
    for failed in range(12):
        hold.begin(now, 0.5, kind, 0.0, failed_probe=failed > 0)
        gaps.append(hold.resume_at - now)
    assert gaps[0] == pytest.approx(first, rel=0.1)
    assert gaps[-1] == pytest.approx(longest, rel=0.1)
    assert gaps == sorted(gaps)


def test_hints_are_kept_whole_up_to_half_a_minute():
    """Longer ones are probed sooner, if the service has answered before."""
    hold, now = known(10.0)
    hold.begin(now, 0.5, HINT, 20.0)
    assert hold.resume_at == now + 20.0
    gaps = []
    for service in (known(10.0), (Hold(Traffic()), 1.0)):
        hold, now = service
        for number in range(3):
            hold.begin(now, 0.5, HINT, 3600.0, failed_probe=number > 0)
            gaps.append(hold.resume_at - now)
    assert gaps == pytest.approx([2.0, 14.0, 98.0, 30.0, 90.0, 270.0])


def test_the_end_of_a_hold_forgets_it():
    """The next one begins with the first gap."""
    hold, now = known(10.0)
    hold._failed_probes, hold.until, hold.probe_sent = 3, now + 5.0, now
    assert hold.is_probe(now)
    assert not hold.is_probe(now - 1.0)
    hold.end()
    assert (hold._failed_probes, hold.until) == (0, 0.0)
    assert not hold.is_probe(now)
