"""Tests of what is known about the traffic of a service, of what is chance, and what is an outage."""

import pytest

from amends.recovery.evidence import (
    AGAIN,
    ALONE,
    CHANCE,
    HINT,
    LEARNED,
    MEMORY,
    OUTAGE,
    PLAIN,
    REFUSED,
    SILENT,
    STALE,
    TOO_MANY,
    UNUSUAL_HINT,
    Evidence,
    Traffic,
)


def known(*, failing=0.0, calls=400):
    """Return the evidence of a service that answered ten calls per second, and the time."""
    traffic, now = Traffic(), 100.0
    evidence = Evidence(traffic)
    for number in range(calls):
        now += 0.1
        if number * 7 % 100 < 100 * failing:
            evidence.judge(now, now - 0.01, PLAIN, repeat=False, probe=False)
        else:
            traffic.succeeded_open(now, now - 0.01)
            evidence.learn_chance()
    traffic.succeeded_open(now, now - 0.01)
    evidence.learn_chance()
    return evidence, now


def needed(evidence, now, kind, *, repeat=False):
    """Return how many failures in a row are no chance."""
    for number in range(1, 200):
        if evidence.judge(now + number / 10, now + 0.05, kind, repeat=repeat, probe=True) == OUTAGE:
            return number
    return 200


def test_the_usual_share_of_failures_decides():
    """The more calls fail here, the longer a run has to be."""
    counts = [needed(*known(failing=share), PLAIN) for share in (0.0, 0.3, 0.5)]
    assert counts == sorted(counts)
    assert counts[0] == 6
    assert counts[2] > 2 * counts[0]


def test_the_kind_of_failure_decides():
    """Silence needs fewer failures than plain answers, a hint fewest."""
    assert [needed(*known(), kind) for kind in (PLAIN, REFUSED, SILENT, HINT)] == [6, 6, 3, 2]


def test_old_failures_are_no_evidence():
    """After STALE seconds the run begins again."""
    evidence, now = known()
    for _ in range(5):
        assert evidence.judge(now, now - 0.01, PLAIN, repeat=False, probe=False) == CHANCE
    assert evidence.judge(now + STALE + 1, now + STALE, PLAIN, repeat=False, probe=False) == CHANCE
    assert evidence.run == 1


def test_operations_that_are_refused_again_are_no_evidence():
    """Until a repeat succeeds, the refusals concern single callers."""
    evidence, now = known()
    evidence.count_repeat(refused=True)
    assert not evidence.refused_alone
    for _ in range(round(1 / AGAIN / (1 - ALONE))):
        evidence.count_repeat(refused=True)
    assert evidence.refused_alone
    assert needed(evidence, now, REFUSED, repeat=True) > 30
    assert evidence.run == 0
    for _ in range(3):
        evidence.count_repeat(refused=False)
    assert not evidence.refused_alone


def test_a_long_run_is_learned_as_a_short_one():
    """A service that was down and is back is not taken for unreliable."""
    evidence, now = known()
    for number in range(100):
        evidence.judge(now + number, now + number, PLAIN, repeat=False, probe=False)
    assert evidence.failing < 0.3
    evidence.learn_chance()
    assert evidence.share < (LEARNED + 1) / 32
    assert evidence.run == 0


def test_what_the_failures_show():
    """A hint where hints are rare; too many calls where many are refused, not where others fail."""
    evidence, now = known()
    assert evidence.judge(now + 1, now, HINT, repeat=False, probe=False) == UNUSUAL_HINT
    for kind, expected in ((REFUSED, TOO_MANY), (PLAIN, CHANCE)):
        evidence, now = known(failing=0.4)
        assert evidence.judge(now + 1, now, kind, repeat=False, probe=False) == expected
    assert Evidence(Traffic()).judge(1.0, 0.9, HINT, repeat=False, probe=False) == OUTAGE


def test_no_verdict_before_the_calls_sent_now_could_be_answered():
    """Quick failures arrive before slow successes; silence does not."""
    for kind, expected in ((PLAIN, CHANCE), (SILENT, OUTAGE)):
        evidence, now = known()
        evidence.wait_for_answers(now, 10.0)
        for number in range(9):
            found = evidence.judge(now + number / 10, now + 0.05, kind, repeat=False, probe=False)
        assert found == expected
        assert evidence.judge(now + 12.6, now + 0.05, kind, repeat=False, probe=False) == OUTAGE


def test_rates_follow_the_load():
    """Operations that had to wait count as arrivals; only good answers count as successes."""
    traffic, now = Traffic(), 0.0
    for number in range(600):
        now += 0.1
        traffic.arrived()
        if number % 2:
            traffic.succeeded(now, now - 0.05)
    assert traffic.rate(now) == pytest.approx(10.0, rel=0.1)
    assert 3.5 < traffic.good_rate(now) < 5.0
    assert traffic.rate(now + 10 * MEMORY) < 3.0


def test_the_usual_round_trip_is_the_least_mean_of_some_windows():
    """A minute of longer answers does not change it; then they are usual."""
    known, now = Traffic(), 0.0
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
    known = Traffic()
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
    known, now = Traffic(), 0.0
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


def test_a_failure_is_evidence_for_a_minute():
    """At STALE seconds it counts, later it does not."""
    for seconds, run in ((STALE, 2), (STALE + 0.1, 1)):
        evidence, now = known()
        evidence.judge(now, now - 0.01, PLAIN, repeat=False, probe=False)
        evidence.judge(now + seconds, now + seconds - 0.01, PLAIN, repeat=False, probe=False)
        assert evidence.run == run


def test_only_repeats_count_as_refused_alone():
    """A first call that fails is evidence, although the repeats of others are refused again."""
    evidence, now = known()
    for _ in range(round(1 / AGAIN / (1 - ALONE))):
        evidence.count_repeat(refused=True)
    assert evidence.refused_alone
    assert needed(evidence, now, PLAIN) == 6


def test_with_little_traffic_one_failure_is_no_outage():
    """A call in a minute counts as one in ten seconds."""
    traffic, now = Traffic(), 0.0
    evidence = Evidence(traffic)
    for _ in range(20):
        now += 60.0
        traffic.succeeded_open(now, now - 0.01)
        evidence.learn_chance()
    assert needed(evidence, now, PLAIN) == 3


def test_round_trips_of_a_window_are_learned_once():
    """A closed window leaves no time behind for the next one."""
    traffic, now = Traffic(), 0.0
    for _ in range(3):
        for _ in range(40):
            now += 0.1
            traffic.succeeded_open(now, now - 0.02)
        traffic.roll(now)
    assert traffic.usual == pytest.approx(0.02)
    assert traffic.peak == pytest.approx(0.02)


def test_first_repeats_that_are_refused_again_are_no_sign_of_too_many_calls():
    """Until a repeat is not refused, the refusals may concern one caller."""
    evidence, now = known(failing=0.4)
    assert evidence.too_many
    evidence.count_repeat(refused=True)
    assert not evidence.too_many
    assert evidence.judge(now + 1, now, REFUSED, repeat=False, probe=False) == CHANCE
    evidence.count_repeat(refused=False)
    evidence.count_repeat(refused=False)
    assert evidence.too_many
