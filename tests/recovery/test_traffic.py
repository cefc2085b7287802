"""Tests of what is known about the traffic of a service."""

import pytest

from amends.recovery.evidence import Evidence
from amends.recovery.traffic import MEMORY, Traffic


def test_rates_follow_the_load():
    """Operations that had to wait count as arrivals; only good answers count as successes."""
    traffic, now = Traffic(), 0.0
    for number in range(600):
        now += 0.1
        traffic.arrived()
        if number % 2:
            traffic.count_good(now)
    assert traffic.rate(now) == pytest.approx(10.0, rel=0.1)
    assert 3.5 < traffic.good_rate(now) < 5.0
    assert traffic.rate(now + 10 * MEMORY) < 3.0


def test_the_usual_round_trip_is_the_least_mean_of_some_windows():
    """A minute of longer answers does not change it; then they are usual."""
    known, now = Evidence(), 0.0
    seen = []
    for second in range(200):
        trip = 0.1 if second < 60 else 0.4
        now = float(second)
        for _ in range(5):
            known.succeeded_open(now, now - trip)
        seen.append(known.usual)
    assert seen[59] == pytest.approx(0.1)
    assert seen[100] == pytest.approx(0.1)
    assert seen[199] == pytest.approx(0.4)


def test_answers_that_came_while_trouble_began_are_not_usual():
    """`discard_window` drops them."""
    known = Evidence()
    for number in range(20):
        known.succeeded_open(number / 10, number / 10 - 0.1)
    known.roll(2.0)
    for number in range(20):
        known.succeeded_open(3.0 + number / 10, number / 10)
    known.discard_window(6.0)
    assert known.usual == pytest.approx(0.1)


def test_the_first_round_trip_is_usual_until_more_is_known():
    """The shortest one."""
    traffic = Traffic()
    for trip in (0.5, 0.3, 0.9):
        traffic.note_first_trip(trip)
    assert traffic.usual == traffic.peak == 0.3


def test_a_window_that_is_not_learned_from():
    """Its round trips are discarded; its arrivals count."""
    known, now = Evidence(), 0.0
    for _ in range(100):
        now += 0.1
        known.succeeded_open(now, now - 0.1)
    usual = known.usual
    for _ in range(100):
        now += 0.1
        known.succeeded_open(now, now - 0.01)
        known.roll(now, learn=False)
    assert known.usual == usual
    assert known._trips == 0


def test_before_the_first_answer_nothing_is_known():
    """No round trip, no arrivals, no good answers."""
    traffic = Traffic()
    assert (traffic.usual, traffic.peak, traffic.arrivals) == (0.0, 0.0, 0.0)
    assert (traffic.rate(100.0), traffic.good_rate(100.0)) == (0.0, 0.0)
    traffic.arrived()
    assert traffic.rate(100.0 + 10 * MEMORY) == pytest.approx(0.1 / MEMORY)
