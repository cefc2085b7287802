"""Tests of what is known about the traffic of a service, of what is chance, and what is an outage."""

from math import ceil, exp, inf, log, sqrt

import pytest

from amends.recovery.evidence import (
    AGAIN,
    ALONE,
    CHANCE,
    HINT,
    KNOWN,
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
    """While other calls succeed, the refusals concern single callers. When all are refused, they are evidence as any."""
    evidence, now = known()
    evidence.count_repeat(refused=True)
    assert not evidence.refused_alone
    for _ in range(round(1 / AGAIN / (1 - ALONE))):
        evidence.count_repeat(refused=True)
    assert evidence.refused_alone
    for _ in range(30):
        assert evidence.judge(now, now - 0.5, REFUSED, repeat=True, probe=False) != OUTAGE
        assert evidence.run == 0
        evidence.unbroken = 0
    assert KNOWN < needed(evidence, now, REFUSED, repeat=True) < 3 * KNOWN
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
    """Until a repeat is not refused, or first calls are refused as often, the refusals may concern one caller."""
    evidence, now = known(failing=0.4)
    assert evidence.too_many
    assert evidence.together
    evidence.count_repeat(refused=True)
    assert not evidence.together
    evidence.count_repeat(refused=False)
    evidence.count_repeat(refused=False)
    assert evidence.together
    for _ in range(8):
        evidence.count_repeat(refused=True)
    assert not evidence.together
    for _ in range(12):
        now += 1
        evidence.judge(now, now - 0.5, REFUSED, repeat=False, probe=False)
    assert evidence.together
    for _ in range(12):
        evidence.count_first()
    evidence.unbroken = 0  # the controller notes that they succeeded
    assert not evidence.together


# The traffic, with exact numbers -------------------------------------------------------------------------------


def test_the_rates_of_the_first_second():
    """What arrived within a second counts as in a second."""
    traffic = Traffic()
    assert traffic.seconds(50.0) == 1.0
    for _ in range(6):
        traffic.arrived()
    traffic.succeeded(50.0, 50.0)
    assert (traffic.rate(50.5), traffic.rate(51.0), traffic.rate(52.0)) == (6.0, 6.0, 3.0)
    assert (traffic.good_rate(50.5), traffic.good_rate(54.0)) == (1.0, 0.25)
    assert traffic.arrivals == 6


def test_old_arrivals_fade_within_half_a_minute():
    """After 30 s their weight, and that of the time they took, is 1/e."""
    traffic = Traffic()
    traffic.seconds(0.0)
    for _ in range(60):
        traffic.arrived()
    for _ in range(30):
        traffic.succeeded_open(0.0, -0.1)
    traffic.roll(30.0)
    assert traffic.arrivals == 90
    assert (traffic.rate(30.0), traffic.good_rate(30.0)) == (3.0, 1.0)
    assert traffic.seconds(31.0) == 31.0
    traffic.roll(60.0)
    kept = exp(-1.0)
    assert traffic.arrivals == pytest.approx(90 * kept)
    assert traffic.seconds(60.0) == pytest.approx(30 + 30 * kept)
    assert traffic.good_rate(60.0) == pytest.approx(30 * kept / (30 + 30 * kept))


@pytest.mark.parametrize("report", [Traffic.succeeded, Traffic.succeeded_open])
def test_a_window_is_closed_after_ten_seconds(report):
    """By the first good answer after that, in OPEN and elsewhere."""
    for last, faded in ((10.0, False), (10.1, True)):
        traffic = Traffic()
        report(traffic, 0.0, -0.1)
        for _ in range(10):
            traffic.arrived()
        traffic.roll(0.0)
        traffic.roll(0.0)
        report(traffic, last, last - 0.1)
        assert (traffic.arrivals < 10.0) is faded


def test_the_latest_send_time_of_an_answer():
    """Answers may arrive in another order than the calls were sent."""
    for report in (Traffic.succeeded, Traffic.succeeded_open):
        traffic = Traffic()
        assert not traffic.answered
        report(traffic, 1.0, 0.0)
        assert traffic.answered
        report(traffic, 9.0, 8.0)
        report(traffic, 9.5, 3.0)
        assert (traffic.last_answered, traffic.calls) == (8.0, 3)


def test_the_first_answer_ever_is_usual():
    """Until a window of four answers is known."""
    traffic = Traffic()
    traffic.succeeded_open(100.0, 99.0)
    assert (traffic.usual, traffic.peak) == (1.0, 1.0)
    for _ in range(3):
        traffic.succeeded_open(101.0, 100.8)
    traffic.note_first_trip(0.1)
    assert (traffic.usual, traffic.peak) == (0.1, 0.1)
    traffic.roll(102.0)
    assert traffic.usual == pytest.approx((1.0 + 3 * 0.2) / 4)
    assert traffic.peak == 1.0
    traffic.note_first_trip(0.1)
    assert traffic.peak == 1.0


def windows(traffic, *trips, count=4, start=0.0):
    """Report windows of `count` answers each, with the round trips given."""
    now = start
    for trip in trips:
        for _ in range(count):
            traffic.succeeded_open(now, now - trip)
        now += 1.0
        traffic.roll(now)
    return now


def test_a_window_of_round_trips_has_four_answers():
    """One with fewer goes on until it has them."""
    traffic = Traffic()
    now = windows(traffic, 0.5)
    windows(traffic, 0.1, count=3, start=now)
    assert traffic.usual == 0.5
    windows(traffic, 0.1, count=1, start=now + 5.0)
    assert traffic.usual == pytest.approx(0.1)


def test_the_usual_trip_and_the_usual_longest_trip_are_those_of_the_best_of_six_windows():
    """The seventh window forgets the first."""
    traffic = Traffic()
    now = windows(traffic, 0.1, 0.5, 0.5, 0.5, 0.5, 0.5)
    assert (traffic.usual, traffic.peak) == (pytest.approx(0.1), pytest.approx(0.1))
    windows(traffic, 0.4, start=now)
    assert (traffic.usual, traffic.peak) == (pytest.approx(0.4), pytest.approx(0.4))


def test_the_longest_trip_of_a_window():
    """One slow answer raises it; the mean is that of all."""
    traffic = Traffic()
    for trip in (0.1, 0.5, 0.1, 0.1):
        traffic.succeeded_open(10.0, 10.0 - trip)
    traffic.roll(11.0)
    assert (traffic.usual, traffic.peak) == (pytest.approx(0.2), pytest.approx(0.5))


def test_a_window_without_answers_is_not_discarded():
    """There is nothing to discard, so its arrivals stay as they are."""
    traffic = Traffic()
    traffic.seconds(0.0)
    traffic.arrived()
    traffic.discard_window(60.0)
    traffic.discard_window(120.0)
    assert traffic.arrivals == 1
    traffic.succeeded_open(5.0, 4.0)
    traffic.discard_window(30.0)
    assert traffic.arrivals == 2
    assert traffic.seconds(30.0) == 30.0


# The evidence, with exact numbers ------------------------------------------------------------------------------


def evidence_of(rate, *, calls=100, answered=True):
    """Return the evidence of a service with this rate of arrivals at the time 100."""
    traffic = Traffic()
    traffic.seconds(0.0)
    for _ in range(round(100 * rate)):
        traffic.arrived()
    traffic.calls = calls
    if answered:
        traffic.last_answered = 0.0
    return Evidence(traffic)


@pytest.mark.parametrize(
    ("rate", "kind", "count"),
    [
        (0.0, PLAIN, 3),  # 0.2³ · 1000 · 0.1 < 1
        (0.1, PLAIN, 3),
        (0.12, PLAIN, 3),
        (0.13, PLAIN, 4),
        (10.0, PLAIN, 6),
        (10.0, REFUSED, 6),
        (0.0, SILENT, 2),
        (0.62, SILENT, 2),
        (0.63, SILENT, 3),
        (10.0, SILENT, 3),
        (0.1, HINT, 2),
        (10.0, HINT, 3),
    ],
)
def test_how_many_failures_are_an_outage(rate, kind, count):
    """As many as chance would produce less than once in 1000 seconds at this rate; silence and hints count more."""
    evidence = evidence_of(rate)
    found = [evidence.judge(100.0, 100.0, kind, repeat=False, probe=False) == OUTAGE for _ in range(count)]
    assert found == [False] * (count - 1) + [True]


def test_how_many_failures_are_an_outage_before_the_first_answer():
    """The rate counts as one call per second, and silence as any failure."""
    for kind in (PLAIN, REFUSED, SILENT):
        evidence = evidence_of(0.0, answered=False)
        found = [evidence.judge(100.0, 100.0, kind, repeat=False, probe=False) for _ in range(5)]
        assert found == [CHANCE] * 4 + [OUTAGE]


def test_where_many_calls_fail_a_run_has_to_be_longer():
    """The share of failures counts with its likely error, and as 95 % at most."""
    for share in (0.1, 0.3, 0.5, 0.9, 1.0):
        evidence = evidence_of(10.0)
        evidence.share = share
        each = min(0.95, max(0.2, share + sqrt(share / 32)))
        least = ceil(log(1 / 10_000) / log(each))
        found = [evidence.judge(100.0, 100.0, PLAIN, repeat=False, probe=False) for _ in range(least)]
        assert found == [CHANCE] * (least - 1) + [OUTAGE]


def test_the_first_repeats_that_are_refused_again():
    """Three of three are not enough to know that the refusals concern single callers, four are."""
    evidence = evidence_of(10.0)
    found = []
    for _ in range(4):
        evidence.count_repeat(refused=True)
        found.append((evidence._again, evidence.refused_alone))
    assert [alone for _, alone in found] == [False, False, False, True]
    assert [share for share, _ in found] == pytest.approx([1 / 2, 2 / 3, 3 / 4, 4 / 5])


def test_the_weight_of_a_repeat():
    """The first seven count alike; then the newest has an eighth."""
    evidence = evidence_of(10.0)
    for number in range(7):
        evidence.count_repeat(refused=number % 2 == 0)
    assert evidence._again == pytest.approx(4 / 8)
    evidence.count_repeat(refused=True)
    evidence.count_repeat(refused=True)
    assert evidence._again == pytest.approx(1 - (1 / 2) * (7 / 8) ** 2)


def test_when_too_many_calls_are_made():
    """More than 15 % of at least 32 calls fail, and repeats are not refused again."""
    for share, calls, expected in ((0.15, 32, False), (0.151, 32, True), (0.5, 31, False), (0.5, 33, True)):
        evidence = evidence_of(10.0, calls=calls)
        evidence.share = share
        assert evidence.too_many is expected
        assert (evidence.judge(100.0, 100.0, REFUSED, repeat=False, probe=False) == TOO_MANY) is expected
    for refused, expected in (
        ([False], True),
        ([True], False),
        ([True, False], True),
        ([False, True, True], False),
        ([False, True, True, True], True),
        ([True, True, True, True], False),
    ):
        evidence = evidence_of(10.0)
        evidence.share = 0.5
        for each in refused:
            evidence.count_repeat(refused=each)
        assert evidence.too_many
        assert evidence.together is expected


def test_only_refused_repeats_outside_of_a_probe_are_counted():
    """A probe that is refused shows nothing about single callers."""
    for kind, repeat, probe, counted in (
        (REFUSED, True, False, 1),
        (HINT, True, False, 1),
        (PLAIN, True, False, 0),
        (REFUSED, False, False, 0),
        (REFUSED, True, True, 0),
    ):
        evidence = evidence_of(10.0)
        evidence.judge(100.0, 100.0, kind, repeat=repeat, probe=probe)
        assert evidence._repeats == counted


def test_silence_is_strain():
    """It stays, whatever fails after it; other failures are none."""
    evidence = evidence_of(10.0)
    assert evidence.strained is False
    evidence.judge(100.0, 100.0, PLAIN, repeat=False, probe=False)
    assert evidence.strained is False
    evidence.judge(100.0, 100.0, SILENT, repeat=False, probe=False)
    evidence.judge(100.0, 100.0, PLAIN, repeat=False, probe=False)
    assert evidence.strained is True


def test_verdicts_wait_for_one_and_a_quarter_round_trips():
    """At that time a run that is no chance is an outage; of a probe, and of silence, before."""
    for now, kind, probe, expected in (
        (102.4, PLAIN, False, CHANCE),
        (102.5, PLAIN, False, OUTAGE),
        (102.4, PLAIN, True, OUTAGE),
        (102.4, SILENT, False, OUTAGE),
    ):
        evidence = evidence_of(10.0)
        evidence.wait_for_answers(100.0, 2.0)
        for _ in range(9):
            evidence.judge(100.0, 100.0, PLAIN, repeat=False, probe=False)
        assert evidence.judge(now, 100.0, kind, repeat=False, probe=probe) == expected


def test_the_hints_of_a_service_that_often_refuses_are_usual():
    """A hint is unusual if it is less likely than 3 %."""
    for share, expected in ((0.0, UNUSUAL_HINT), (0.005, UNUSUAL_HINT), (0.02, CHANCE), (0.5, TOO_MANY)):
        evidence = evidence_of(10.0)
        evidence.share = share
        assert evidence.judge(100.0, 100.0, HINT, repeat=False, probe=False) == expected


def test_the_run_of_failures():
    """It has a length and the send time of its first call; a success ends it."""
    evidence = evidence_of(10.0)
    assert (evidence.run, evidence.run_since) == (0, inf)
    for number in range(3):
        evidence.judge(100.0 + number, 99.0 + number, PLAIN, repeat=False, probe=False)
    assert (evidence.run, evidence.run_since) == (3, 99.0)
    assert evidence.failing == pytest.approx(1 - (31 / 32) ** 3)
    evidence.learn_chance()
    assert (evidence.run, evidence.failing) == (0, pytest.approx(evidence.share))
    evidence.judge(110.0, 109.0, PLAIN, repeat=False, probe=False)
    assert evidence.run_since == 109.0


def test_what_a_success_after_failures_teaches():
    """Each outcome has the weight 1/32, at first that of all calls; eight failures of a run count."""
    for calls, run, weight in ((400, 1, 1 / 32), (400, 8, 1 / 32), (400, 30, 1 / 32), (9, 2, 1 / 10)):
        evidence = evidence_of(10.0, calls=calls)
        for _ in range(run):
            evidence.judge(100.0, 100.0, PLAIN, repeat=False, probe=False)
        evidence.learn_chance()
        assert evidence.share == pytest.approx((1 - (1 - weight) ** min(run, 8)) * (1 - weight))
    evidence.run = 0
    evidence.share = 0.001
    evidence.learn_chance()
    assert evidence.share == 0.0
    evidence.share = 0.5
    evidence.learn_chance()
    assert evidence.share == pytest.approx(0.45)


def test_a_late_time_out_of_a_call_that_others_overtook():
    """It is no evidence if a call that was sent at the same time or later was answered; it counts for the run."""
    evidence = evidence_of(10.0)
    evidence._traffic.last_answered = 90.0
    for _ in range(9):
        assert evidence.judge(100.0, 90.0, SILENT, repeat=False, probe=False) == CHANCE
    assert evidence.run == 9
    assert [evidence.judge(100.0, 90.1, SILENT, repeat=False, probe=False) for _ in range(3)][2] == OUTAGE


def test_refusals_of_several_operations_with_nothing_in_flight():
    """They concern all callers. The calls of one operation have rising numbers; with others in flight, these may succeed."""
    for numbers, beside, together in (
        ((1, 2, 3, 4, 5), 0, False),
        ((1, 1, 2, 2, 3), 0, True),
        ((1, 1, 2, 2, 3), 1, False),
    ):
        evidence = known()[0]
        evidence._traffic.last_answered = 100.0
        evidence._traffic.usual = evidence._traffic.peak = 60.0
        for _ in range(8):
            evidence.count_repeat(refused=True)
        for number, tries in enumerate(numbers):
            evidence.judge(100.0 + number, 100.0, REFUSED, repeat=tries, probe=False, beside=beside)
        assert evidence.together == together


@pytest.mark.parametrize(
    ("before", "seconds", "since", "passed", "less"),
    [
        (3, 2.0, 0, 30.0, True),
        (3, 2.0, 40, 30.0, False),
        (1, 2.0, 0, 30.0, False),
        (15, 30.0, 10, 30.0, False),
        (300, 30.0, 20, 30.0, True),
        (15, 30.0, 0, 1.0, False),
    ],
)
def test_when_less_arrives_than_before(before, seconds, since, passed, less):
    """Workers that wait make no new calls; a few arrivals more or less are chance."""
    traffic = Traffic()
    traffic.arrivals_before, traffic.seconds_before, traffic.arrived_since = before, seconds, since
    traffic.began = 100.0
    assert traffic.arrives_less(100.0 + passed) == less


def test_what_succeeds_in_trouble():
    """Successes before it do not count, and neither does a first second that is short."""
    traffic = Traffic()
    traffic._good, traffic._span, traffic._rolled_at = 300, 30.0, 100.0
    traffic.began, traffic.good_since = 100.0, 2
    assert traffic.good_rate_in_trouble(100.5) == 2.0
    assert traffic.good_rate_in_trouble(104.0) == 0.5
    traffic.good_since = 4000
    assert traffic.good_rate_in_trouble(104.0) == traffic.good_rate(104.0)
