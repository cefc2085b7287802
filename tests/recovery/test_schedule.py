"""Tests of when calls are sent: the hold with its probe, and the pace."""

from math import e, inf

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
    assert started(strained=True)[0].per_second == pytest.approx(START * 10, rel=0.05)
    assert started()[0].per_second == pytest.approx(REFUSED_PACE * 10, rel=0.05)
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
    """A limit that was raised is noticed. What succeeded before the trouble does not count."""
    pace, now = started()
    pace._traffic.began, pace._traffic.good_since = now, 100
    for _ in range(100):
        now += 0.1
        pace.cut_refused(now, now - 0.01)
    assert pace.per_second == pytest.approx(REFUSED_PACE * pace._traffic.good_rate(now), rel=0.1)
    pace._traffic.good_since = 20
    for second in range(1, 5):
        pace.cut_refused(now + second, now + second)
    assert pace.per_second == pytest.approx(REFUSED_PACE * 20 / 14, rel=0.1)


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
    [(PLAIN, 10.0, 0.5, 5.0), (PLAIN, 0.1, 5.0, 30.0), (SILENT, 10.0, 4.0, 5.0), (SILENT, 0.1, 7.5, 15.0)],
)
def test_processes_that_send_few_calls_probe_less_often(kind, rate, first, longest):
    """Many of them may share the service. Each failed probe makes the gap longer, up to a cap."""
    hold, now = known(rate)
    gaps = []
    for failed in range(12):
        hold.begin(now if kind == SILENT else now + 10.0 * failed, 0.5, kind, 0.0, failed_probe=failed > 0)
        gaps.append(hold.resume_at - now if kind == SILENT else hold.resume_at - now - 10.0 * failed)
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


# The hold, with exact times ------------------------------------------------------------------------------------


def service(rate=10.0, *, answered=True, trip=0.0):
    """Return a service at which `rate` operations arrive per second at the time 100, with this usual round trip."""
    traffic = Traffic()
    traffic.seconds(0.0)
    for _ in range(round(100 * rate)):
        traffic.arrived()
    if answered:
        traffic.last_answered = 0.0
    if trip:
        traffic.note_first_trip(trip)
    return traffic


def test_a_new_hold_holds_nothing():
    """The first probe may be sent at any time, also at the time zero."""
    hold = Hold(service())
    assert (hold.resume_at, hold.until, hold.probe_sent) == (0.0, 0.0, -1.0)
    assert not hold.doubted
    assert not hold.is_probe(0.0)
    assert hold.take_probe(0.0, fresh=True) == 0.0
    assert hold.is_probe(0.0)


def test_a_probe_is_presumed_good_after_four_times_the_longest_failure():
    """At least after a second, if wary after a tenth; a new trouble forgets the failures of the one before."""
    hold = Hold(service())
    hold.take_probe(10.0, fresh=True)
    assert (hold.presumed_good_at(wary=False), hold.presumed_good_at(wary=True)) == (11.0, 10.1)
    hold.note_failure(0.5, first=True)
    hold.note_failure(0.3, first=False)
    assert (hold.presumed_good_at(wary=False), hold.presumed_good_at(wary=True)) == (12.0, 12.0)
    hold.note_failure(0.6, first=False)
    assert hold.presumed_good_at(wary=False) == 12.4
    hold.note_failure(0.1, first=True)
    assert (hold.presumed_good_at(wary=False), hold.presumed_good_at(wary=True)) == (11.0, 10.4)


def test_a_repeat_waits_for_the_time_that_its_hint_named():
    """A first call may be the probe before that."""
    hold = Hold(service())
    hold.note_hint(100.0, 50.0, confirmed=False, held=False)
    hold.resume_at = 110.0
    assert hold.take_probe(109.0, fresh=True) == 110.0
    assert hold.take_probe(110.0, fresh=False) == 150.0
    assert hold.probe_sent == -1.0
    assert hold.take_probe(110.0, fresh=True) == 0.0
    assert hold.probe_sent == 110.0


def test_the_latest_named_time_holds():
    """A probe that gets a shorter hint shortens it. A call that was sent before the hold makes it longer, by 30 s at most."""
    hold = Hold(service())
    hold.note_hint(10.0, 20.0, confirmed=False, held=False)
    hold.note_hint(10.0, 5.0, confirmed=False, held=False)
    assert (hold.until, hold.resume_at) == (30.0, 0.0)
    hold.note_hint(10.0, 5.0, confirmed=True, held=False)
    assert (hold.until, hold.resume_at) == (15.0, 0.0)
    for hint, resumed in ((8.0, 18.0), (100.0, 40.0), (1.0, 40.0)):
        hold.note_hint(10.0, hint, confirmed=False, held=True)
        assert hold.resume_at == resumed


@pytest.mark.parametrize(
    ("kind", "rate", "gaps"),
    [
        (SILENT, 100.0, [1.0, 1.5, 2.25, 3.375, 5.0, 5.0]),
        (SILENT, 10.0, [4.0, 5.0]),
        (SILENT, 8.0, [5.0, 5.0]),
        (SILENT, 0.4, [5.0, 10.0, 10.0]),
        (SILENT, 0.32, [6.25, 12.5, 12.5]),
        (SILENT, 0.1, [7.5, 15.0, 15.0]),
    ],
)
def test_the_gaps_between_probes(kind, rate, gaps):
    """The fewer calls arrive, the longer they are. A random quarter is added or subtracted."""
    for draw, factor in ((0.5, 1.0), (0.0, 0.75), (1.0, 1.25)):
        hold, found = Hold(service(rate)), []
        for number in range(len(gaps)):
            hold.take_probe(1000.0, fresh=True)
            hold.begin(100.0, draw, kind, 0.0, failed_probe=number > 0)
            assert hold.probe_sent == -1.0
            found.append(hold.resume_at - 100.0)
        assert found == pytest.approx([factor * gap for gap in gaps])
        hold.begin(100.0, draw, kind, 0.0)
        assert hold.resume_at - 100.0 == pytest.approx(factor * gaps[0])


@pytest.mark.parametrize(
    ("rate", "waiting", "gaps"),
    [
        (10.0, 0, [0.5, 0.575, 0.661, 0.76]),
        (0.5, 0, [1.0, 1.2, 1.44, 1.728]),
        (0.1, 0, [5.0, 10.0, 11.5]),
        (0.04, 0, [5.0, 10.0, 20.0, 30.0, 30.0]),
        (0.0, 0, [5.0, 10.0, 20.0, 30.0, 30.0]),
        (0.0, 100, [5.0, 5.75, 6.612, 7.604]),
    ],
)
def test_the_gaps_between_probes_after_plain_failures(rate, waiting, gaps):
    """They grow with the time since the hold began: slower the more operations there are that can make a probe."""
    hold, now, found = Hold(service(rate)), 100.0, []
    for number in range(len(gaps)):
        hold.begin(now, 0.5, PLAIN, 0.0, failed_probe=number > 0, waiting=waiting)
        found.append(hold.resume_at - now)
        now = hold.resume_at
    assert found == pytest.approx(gaps, abs=0.001)


def test_a_time_that_was_named_again_and_again():
    """A probe failed at the time that was named: the next gaps grow as after other failures, but are never shorter than named."""
    hold, now, gaps = Hold(service(0.04)), 100.0, []
    for number in range(6):
        hold.begin(now, 0.5, HINT, 1.0, failed_probe=number > 0)
        gaps.append(hold.resume_at - now)
        now = hold.resume_at
    assert gaps == pytest.approx([1.0, 1.0, 2.0, 4.0, 8.0, 16.0])


def test_the_first_hold_may_begin_with_a_failed_probe():
    """Another process found out that the service is down."""
    for kind, hint, gap in ((PLAIN, 0.0, 0.5), (HINT, 3600.0, 2.0)):
        hold = Hold(service())
        hold.begin(100.0, 0.5, kind, hint, failed_probe=True)
        assert hold.resume_at == 100.0 + gap


def test_a_hint_of_half_a_minute_is_kept_whole():
    """A longer one is doubted if the service answered before, until a probe confirms it."""
    for hint, gap, answered in ((30.0, 30.0, True), (30.1, 2.0, True), (31.0, 30.0, False), (1.5, 1.5, True)):
        hold = Hold(service(answered=answered))
        hold.begin(100.0, 0.5, HINT, hint)
        assert hold.resume_at == 100.0 + gap
        assert hold.doubted is answered
        hold.begin(100.0, 0.5, HINT, hint, failed_probe=True)
        assert not hold.doubted


def test_failures_without_a_hint_during_a_hinted_hold():
    """A plain failure of the probe forgets the named time, not how often probes got hints; a new hold forgets both."""
    hold = Hold(service())
    hold.begin(100.0, 0.5, HINT, 3600.0)
    hold.until = 3700.0
    hold.begin(100.0, 0.5, PLAIN, 0.0, failed_probe=True)
    assert hold.until == 0.0
    hold.begin(100.0, 0.5, HINT, 3600.0, failed_probe=True)
    assert hold.resume_at == 114.0
    hold.begin(100.0, 0.5, PLAIN, 0.0)
    hold.begin(100.0, 0.5, HINT, 3600.0, failed_probe=True)
    assert hold.resume_at == 102.0


def test_a_probe_that_is_taken_back():
    """It is asked for again at the given time."""
    hold = Hold(service())
    hold.take_probe(5.0, fresh=True)
    hold.postpone(9.0)
    assert (hold.probe_sent, hold.resume_at) == (-1.0, 9.0)


def test_the_end_of_a_hold_forgets_the_hints():
    """The next hinted hold begins with the first gap."""
    hold = Hold(service())
    hold.begin(100.0, 0.5, HINT, 3600.0)
    hold.begin(100.0, 0.5, HINT, 3600.0, failed_probe=True)
    hold.until = 3700.0
    hold.end()
    assert (hold.probe_sent, hold.until) == (-1.0, 0.0)
    hold.begin(100.0, 0.5, HINT, 3600.0, failed_probe=True)
    assert hold.resume_at == 102.0


def test_answers_that_came_while_trouble_began_are_not_usual():
    """The window of round trips that a hold ends is discarded."""
    traffic = Traffic()
    for number in range(10):
        traffic.succeeded_open(number / 10, number / 10 - 1.0)
    traffic.roll(1.0)
    for number in range(10):
        traffic.succeeded_open(1.0 + number / 10, 0.9 + number / 10)
    Hold(traffic).begin(2.0, 0.5, PLAIN, 0.0)
    traffic.roll(3.0)
    assert traffic.usual == pytest.approx(1.0)


# The pace, with exact rates ------------------------------------------------------------------------------------


def paced(per_second, rate=10.0, *, trip=0.2):
    """Return a pace at the time 100, while `rate` operations arrive per second and answers take `trip`."""
    pace = Pace(service(rate, trip=trip))
    pace.start(100.0, strained=False)
    pace.per_second = per_second
    return pace


def test_a_new_pace():
    """The first call is due at once, and no limit is known."""
    pace = Pace(service())
    assert (pace.last_sent, pace.limited_until) == (-inf, -inf)
    assert pace.take_turn(0.0) == 0.0


def test_a_pace_that_was_kept_is_used_once():
    """It can be dropped. Slow or missing answers halve it."""
    for strained, expected in ((False, 40.0), (True, 20.0)):
        pace = paced(40.0)
        pace.keep(strained=strained)
        pace.start(100.0, strained=False)
        assert pace.per_second == expected
        pace.start(100.0, strained=False)
        assert pace.per_second == pytest.approx(12.5)
    pace.per_second = 40.0
    pace.keep(strained=False)
    pace.drop()
    pace.start(100.0, strained=False)
    assert pace.per_second == pytest.approx(12.5)


def test_the_start_of_a_pace():
    """The next call is due one interval later. Without arrivals it is a call in 20 s."""
    pace = paced(0.01)
    pace.keep(strained=False)
    pace.start(100.0, strained=False)
    assert pace.per_second == pytest.approx(4.5)
    assert pace.take_turn(100.0) == pytest.approx(100.0 + 1 / 4.5)
    pace = paced(0.01, rate=0.0)
    assert pace._traffic.rate(100.0) == 0.0
    pace.start(100.0, strained=False)
    assert pace.per_second == pytest.approx(1.25 * 0.05)
    pace.start_at_successes(100.0)
    assert pace.per_second == 0.05
    pace = paced(1.0)
    pace._traffic._good = 400.0
    pace.start_at_successes(100.0)
    assert pace.per_second == pytest.approx(REFUSED_PACE * pace._traffic.good_rate(100.0))
    pace.start_at_successes(100.0, together=False)
    assert pace.per_second == inf
    assert pace.take_turn(100.0) == 0.0


def test_sending_that_is_late_catches_up_a_tenth_of_a_second():
    """Turns that are due in time are not moved."""
    pace = paced(1.0)
    for now, due in ((101.0, 102.0), (102.05, 103.0), (110.0, 110.9)):
        assert pace.take_turn(now) == 0.0
        assert pace.next_send == pytest.approx(due)


def test_which_answers_are_slow():
    """Those above 1.25 times the usual trip and 0.05 s, if no usual one takes longer."""
    for peak, slow in ((0.2, 0.3), (0.4, 0.45)):
        pace = Pace(service(trip=0.2))
        pace._traffic.peak = peak
        for trip, calm in ((slow, True), (slow + 0.001, False)):
            assert pace.follow(trip, 0.0) is calm


def test_the_first_answer_is_usual():
    """Where no round trip is known, a paced answer is the first to show one."""
    pace = Pace(service())
    assert pace.follow(100.0, 98.0) is True
    assert pace._traffic.usual == 2.0


@pytest.mark.parametrize(
    ("trip", "seconds", "factor"),
    [
        (0.01, 0.02, 2 ** (0.02 / 1.0)),
        (0.2, 0.1, 2 ** (0.1 / 3.0)),
        (1.2, 1.0, 2 ** (1.0 / 18.0)),
        (2.0, 1.0, 2 ** (1.0 / 20.0)),
        (0.2, 1.0, 1.05),
        (0.2, 1000.0, 1.05),
    ],
)
def test_calm_answers_raise_a_pace_above_the_arrivals(trip, seconds, factor):
    """It doubles in 15 usual trips, in one second at least and 20 at most; one answer adds 5 % at most."""
    for before in (5000.0, 20.0):
        pace = paced(before, trip=trip)
        now = 100.0 + seconds
        assert pace.follow(now, now - trip)
        assert pace.per_second == pytest.approx(factor * before)
    pace = paced(2.0)
    pace.follow(100.0, 99.8)
    pace._traffic.arrived()
    pace.per_second = max(pace._traffic.rate(100.1), 0.05)
    before = pace.per_second
    pace.follow(100.1, 99.9)
    assert pace.per_second > before


@pytest.mark.parametrize(("seconds", "factor"), [(0.8, e**0.1), (1.6, e**0.2), (8.0, 1.25), (500.0, 1.25)])
def test_calm_answers_raise_a_pace_below_the_arrivals(seconds, factor):
    """E-fold in eight seconds, one answer by a quarter at most, and to the arrivals at most."""
    pace = paced(0.5)
    now = 100.0 + seconds
    assert pace.follow(now, now - 0.2)
    assert pace.per_second == pytest.approx(0.5 * factor)
    pace.per_second = 0.99 * pace._traffic.rate(now + 5)
    pace.follow(now + 5, now + 4.8)
    assert pace.per_second == pytest.approx(pace._traffic.rate(now + 5))


@pytest.mark.parametrize(
    ("trip", "factor"),
    [(0.31, 0.93), (0.99, 0.93), (1.0, 0.85), (2.39, 0.85), (2.4, 0.7), (9.0, 0.7)],
)
def test_slow_answers_lower_the_pace_by_a_factor(trip, factor):
    """The longer they took, the more."""
    pace = Pace(service(0.0, trip=0.2))
    pace.per_second = 100.0
    assert not pace.follow(trip, 0.0)
    assert pace.per_second == pytest.approx(100.0 * factor)


def test_slow_answers_do_not_lower_the_pace_below_what_arrives_and_succeeds():
    """Not below 45 % of the arrivals, 90 % of the successes, and a call in 20 s; a lower pace is not raised by them."""
    for rate, good, least in ((10.0, 0, 4.5), (10.0, 800, 7.2), (0.0, 0, 0.05)):
        pace = paced(5000.0, rate)
        pace._traffic._good = float(good)
        for _ in range(200):
            pace._cut_at = 0.0
            pace.follow(100.0, 90.0)
        assert pace.per_second == pytest.approx(least)
        pace.per_second = 0.01
        pace._cut_at = 0.0
        pace.follow(100.0, 90.0)
        assert pace.per_second == 0.01


def test_a_cut_is_waited_for():
    """A second one follows only for calls that were sent a round trip after the first; the rise starts again."""
    pace = paced(100.0)
    pace.follow(101.0, 100.0)
    assert pace.per_second == pytest.approx(85.0)
    pace.follow(102.9, 101.9)
    assert pace.per_second == pytest.approx(85.0)
    pace.follow(103.0, 102.0)
    assert pace.per_second == pytest.approx(85.0 * 0.85)
    before = pace.per_second
    pace.follow(103.1, 102.9)
    assert pace.per_second == pytest.approx(before * 2 ** (0.1 / 3.0))


def test_refusals_lower_the_pace_by_a_factor():
    """To 1.25 times what succeeds at least; a pace that begins at the time zero too."""
    pace = Pace(service(0.0))
    pace.per_second = 100.0
    pace.cut_refused(0.0, 0.0)
    assert pace.per_second == pytest.approx(50.0)
    pace._traffic._good, pace._traffic.began, pace._traffic.good_since = 3200.0, 0.0, 3200
    pace.cut_refused(100.0, 99.0)
    assert pace.per_second == pytest.approx(40.0)


def test_when_a_named_limit_is_obeyed():
    """If no more calls are left than arrived with this one, and they would be used before its end."""
    traffic = Traffic()
    for _ in range(10):
        traffic.arrived()
    pace = Pace(traffic)
    assert pace.limit(0.0, 11, 100.0, start=True) is True
    assert (pace.per_second, pace.last_sent, pace.limited_until) == (0.11, 0.0, 100.0)
    assert pace.limit(0.0, 12, 100.0, start=True) is False
    assert pace.limited_until == -inf
    assert pace.limit(0.0, 11, 1.0, start=True) is False
    assert pace.limit(0.0, 11, 1.001, start=True) is True


def test_a_named_limit_lasts_until_its_time():
    """A pace below it stays; calm answers do not raise one above it before that time."""
    pace = paced(0.3)
    assert pace.limit(100.0, 10, 20.0, start=False)
    assert pace.per_second == 0.3
    for now, limited in ((119.0, True), (120.0, False)):
        pace.per_second = 0.49
        pace.follow(now, now - 0.2)
        assert (pace.per_second == 0.5) is limited
    pace = paced(100.0)
    pace.limit(100.0, 10, 20.0, start=False)
    assert (pace.per_second, pace.last_sent) == (0.5, 100.0)
    pace.limit(150.0, 10, 20.0, start=True)
    assert pace.last_sent == 150.0
    assert pace.next_send == 152.0


def test_a_call_takes_as_many_turns_as_it_is_larger_than_others():
    """At most eight; a call of unknown size takes one."""
    for size, turns in ((0, 1.0), (100, 1.0), (400, 4.0), (50, 0.5), (10_000, 8.0), (1, 1 / 8)):
        pace, now = started()
        pace.per_second, pace._size = 10.0, 100.0
        pace.last_sent = now
        assert pace.take_turn(now, 0, size) == pytest.approx(now + turns / 10.0)
    assert pace.take_turn(now + 1.0, 0, 260) == 0.0
    assert pace._size == 110.0
    pace._size = 0.0
    assert pace.take_turn(now + 2.0, 0, 260) == 0.0
    assert pace._size == 260.0


@pytest.mark.parametrize(("lasted", "kept"), [(2.0, 40.0), (0.2, 10.0)])
def test_the_pace_before_refusals_returns_if_they_lasted(lasted, kept):
    """A limit was renewed if nothing succeeded for so long that eight calls would have; after a busy bucket refused some, it was not."""
    pace, now = started(before=40.0)
    pace._traffic.began, pace._traffic.good_since = now - 10.0, 100
    for number in range(1, 6):
        pace.cut_refused(now + number, now + number, run=number)
    assert pace.per_second < 15.0
    pace.follow(now + 6.0, now + 5.95, run=5, lasted=lasted, limited=True)
    assert pace.per_second == pytest.approx(kept, rel=0.3)


def test_another_probe_after_silence():
    """If a call hangs for long, the next probe does not wait for the end of the last one. Other failures come quickly."""
    for kind, another in ((SILENT, 5.0), (PLAIN, inf)):
        hold = Hold(service(10.0))
        hold.begin(100.0, 0.5, kind, 0.0)
        assert hold.take_probe(105.0, fresh=True) == 0.0
        assert hold.another_at == 105.0 + another
