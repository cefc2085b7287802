"""Tests of the state machine that decides which calls may be sent."""

from math import inf, isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.recovery import controller as controller_module
from amends.recovery import evidence, room, schedule
from amends.recovery.controller import HELD, OPEN, RAMP, SHUT, WARY, Controller
from amends.recovery.evidence import HINT, PLAIN, REFUSED, SILENT


def healthy(*, trip=0.05, rate=10.0, seconds=40.0):
    """Return the controller of a service that has answered for a while, and the time."""
    controller, now = Controller(), 100.0
    while now < 100.0 + seconds:
        controller.succeeded(now + trip, now)
        now += 1.0 / rate
    return controller, now + trip


def shut(kind=PLAIN, **options):
    """Return a controller in SHUT, and the time."""
    controller, now = healthy(**options)
    while controller.state != SHUT:
        controller.failed(now, now - 0.01, 0.5, kind)
    return controller, now


def probed(controller):
    """Send the probe and report its success. Return the time."""
    now = controller.hold.resume_at
    assert controller.admit(now) == 0.0
    controller.succeeded(now + 0.05, now, waiting=True)
    return now + 0.05


def test_a_run_of_failures_that_is_no_chance_is_an_outage():
    """At 10 calls per second six plain failures in a row, three time-outs, or two hints."""
    for kind, least in ((PLAIN, 6), (REFUSED, 6), (SILENT, 3), (HINT, 2)):
        controller, now = healthy()
        for number in range(1, least + 1):
            controller.failed(now, now - 0.01, 0.5, kind, 5.0 if kind == HINT else 0.0)
            assert (controller.state == SHUT) == (number == least)


def test_independent_failures_are_no_outage():
    """Where half of the calls fail, runs of failures are learned as chance."""
    controller, now = healthy()
    for number in range(4000):
        now += 0.1
        if number * 7 % 16 < 8:
            controller.failed(now, now - 0.01, 0.5, PLAIN)
        else:
            controller.succeeded(now, now - 0.01, waiting=False)
        assert controller.state == OPEN
    assert controller.evidence.share == pytest.approx(0.5, abs=0.1)


def test_a_time_out_does_not_count_if_a_later_call_was_answered():
    """A message was lost, and the service works."""
    controller, now = healthy()
    for _ in range(20):
        controller.failed(now, now - 2.0, 0.5, SILENT)
    assert controller.state == OPEN


def test_four_failures_before_the_first_success_are_no_outage():
    """Where half of the calls fail, a start with three failures in a row is common."""
    controller = Controller()
    for _ in range(4):
        controller.failed(1.0, 0.9, 0.5, PLAIN)
    assert controller.state == OPEN


def test_old_failures_are_no_evidence():
    """A failure a minute is no outage."""
    controller, now = healthy()
    for _ in range(50):
        now += 61.0
        controller.failed(now, now - 0.01, 0.5, PLAIN)
    assert controller.state == OPEN


def test_an_outage_is_probed_with_one_call_at_a_time():
    """The more time has passed, the longer is the next gap: by 15 % of that where many operations can make a probe."""
    controller, now = shut()
    gaps = []
    for _ in range(6):
        gaps.append(controller.hold.resume_at - now)
        assert controller.admit(now) == controller.hold.resume_at
        now = controller.hold.resume_at
        assert controller.admit(now) == 0.0
        assert controller.admit(now) > now
        controller.failed(now + 0.05, now, 0.5, PLAIN)
        now += 0.05
    assert gaps == pytest.approx([0.5, 0.58, 0.68, 0.79, 0.91, 1.06], abs=0.01)
    assert shut(SILENT)[0].hold.resume_at - now != gaps[0]


def test_after_an_outage_calls_are_paced_at_the_rate_that_arrived():
    """A calm answer raises the pace; when no call waits, the state is OPEN again."""
    controller, _ = shut()
    now = probed(controller)
    assert controller.state == RAMP
    assert controller.pace.per_second == pytest.approx(10.0, rel=0.2)
    before = controller.pace.per_second
    controller.succeeded(now + 0.1, now, waiting=True)
    assert before < controller.pace.per_second <= 1.06 * before
    controller.succeeded(now + 0.2, now + 0.15, waiting=False)
    assert controller.state == OPEN


def test_slow_answers_lower_the_pace_once_in_two_round_trips():
    """Never below SLOWEST of the arrivals."""
    controller, _ = shut()
    now = probed(controller)
    before = controller.pace.per_second
    for _ in range(5):
        controller.succeeded(now + 0.3, now, waiting=True)
    assert controller.pace.per_second == pytest.approx(schedule.CUT * before)
    for number in range(1, 50):
        controller.succeeded(now + number + 0.3, now + number, waiting=True)
        assert (
            controller.pace.per_second
            >= schedule.SLOWEST * controller.traffic.rate(now + number + 0.3) - 1e-9
        )


def test_one_hint_is_answered_by_one_call_at_a_time():
    """If that call succeeds, the hint concerned one caller only, and all calls are sent again."""
    controller, now = healthy()
    assert not controller.failed(now, now - 0.05, 0.5, HINT, 3600.0)
    assert controller.state == WARY
    assert controller.held_until() == 0.0
    assert controller.admit(now + 0.01, tries=1) > now + 1000
    assert controller.admit(now + 0.01) == 0.0
    assert controller.admit(now + 0.02) > now + 0.02
    controller.succeeded(now + 0.06, now + 0.01, waiting=True)
    assert controller.state == OPEN


def test_a_hint_before_any_success_holds_at_once():
    """One call is enough, because nothing speaks against it."""
    controller = Controller()
    assert controller.failed(1.0, 0.9, 0.5, HINT, 3600.0)
    assert controller.held_until() == 3601.0


def test_a_long_hint_costs_at_most_eight_calls_an_hour():
    """A probe is sent after 30, 90, 270 … seconds."""
    controller, now, calls = Controller(), 0.0, 0
    controller.failed(0.0, 0.0, 0.5, HINT, 3600.0)
    while now < 3600.0:
        now += 1.0
        if controller.admit(now) == 0.0:
            calls += 1
            controller.failed(now + 0.05, now, 0.5, HINT, 3600.0)
    assert 3 <= calls <= 8


def test_a_long_hint_of_a_service_that_answered_is_probed_soon():
    """It may concern one caller only. If it is true, there are at most eight calls in an hour."""
    controller, now = healthy()
    began, calls = now, 1
    controller.failed(now, now - 0.05, 0.5, HINT, 3600.0)
    while now < began + 3600.0:
        now += 0.25
        if controller.admit(now) == 0.0:
            calls += 1
            controller.failed(now + 0.05, now, 0.5, HINT, 3600.0)
    assert 5 <= calls <= 8
    controller, now = healthy()
    while not controller.held_until():
        controller.failed(now, now - 0.01, 0.5, HINT, 3600.0)
    assert controller.hold.doubted
    assert controller.hold.resume_at == pytest.approx(now + schedule.DOUBTED)


def test_an_outage_in_ramp_keeps_the_pace_unless_answers_were_slow_or_missing():
    """A service that flaps without being overloaded gets what waited; an overloaded one gets less."""
    for kind in (PLAIN, SILENT):
        controller, _ = shut()
        now = probed(controller)
        for _ in range(20):
            now += 0.1
            controller.succeeded(now, now - 0.05, waiting=True)
        pace = controller.pace.per_second
        now += 0.1
        while controller.state != SHUT:
            controller.failed(now, now - 0.01, 0.5, kind)
        for _ in range(60):  # an open load; workers that wait would make no new calls
            controller.traffic.arrived()
        now = probed(controller)
        expected = pace if kind == PLAIN else min(schedule.SHUT_CUT * pace, controller.traffic.rate(now))
        assert controller.pace.per_second == pytest.approx(expected, rel=0.1)


def test_a_refused_tenant_does_not_slow_down_the_others():
    """One of ten operations is refused, with a short hint, and its repeat too."""
    controller, now = healthy()
    for number in range(2000):
        now += 0.05
        if controller.admit(now):
            continue
        if number % 10 == 0:
            controller.failed(now, now - 0.01, 0.5, HINT, 2.0)
        elif number % 10 == 5:
            controller.failed(now, now - 0.01, 0.5, HINT, 2.0, repeat=True)
        else:
            controller.succeeded(now, now - 0.01, waiting=False)
    assert controller.evidence.refused_alone
    assert controller.state == OPEN


def test_a_probe_that_outlives_failures_is_presumed_good():
    """Where calls take 30 s, the others do not wait for the end of one."""
    controller, now = healthy(trip=30.0, rate=2.0)
    controller.failed(now, now - 0.05, 0.5, HINT, 5.0)
    assert controller.admit(now) == 0.0
    assert controller.admit(now + 0.1) == pytest.approx(now + 4 * 0.05)
    assert controller.admit(now + 0.3) == 0.0
    assert controller.state == OPEN


@pytest.mark.parametrize("kind", [PLAIN, REFUSED, HINT])
def test_a_call_sent_after_the_first_failure_and_answered_makes_the_failures_chance(kind):
    """Quick failures arrive before slow successes that were sent at the same time."""
    controller, now = healthy(trip=1.0)
    before = now
    while controller.state != SHUT:
        now += 0.01
        controller.failed(now, now - 0.01, 0.5, kind, 5.0 if kind == HINT else 0.0)
    controller.succeeded(now + 0.5, before - 0.5, waiting=True)
    assert controller.state == SHUT  # it was sent before them
    controller.succeeded(now + 1.0, before + 0.005, waiting=True)
    assert controller.state == OPEN
    for _ in range(20):  # no verdict before the calls sent now could have been answered
        controller.failed(now + 1.1, now + 1.05, 0.5, PLAIN)
        assert controller.state == OPEN


def test_an_answer_during_a_silence_does_not_end_it():
    """Where a queue builds up, a few calls are still answered in time."""
    controller, now = healthy()
    sent = now
    while controller.state != SHUT:
        now += 0.1
        controller.failed(now + 2.0, now, 0.5, SILENT)
    controller.succeeded(now + 2.1, sent + 0.15, waiting=True)
    assert controller.state == SHUT


def test_a_probe_of_a_hint_is_the_first_call_of_its_operation():
    """An operation that got the hint would get it again, where it concerns one tenant only."""
    controller, now = healthy()
    while not controller.held_until():
        controller.failed(now, now - 0.01, 0.5, HINT, 5.0)
    assert controller.probes_fresh
    assert not shut()[0].probes_fresh


def test_a_pace_below_the_arrivals_rises_by_a_quarter_at_most():
    """A client that sends a call in ten seconds must not overload the service again after one calm answer."""
    controller, _ = shut()
    now = probed(controller)
    for number in range(20):
        controller.succeeded(now + number + 0.9, now + number, waiting=True)
    pace = controller.pace.per_second
    assert pace < 8.0
    controller.succeeded(now + 60.0, now + 59.95, waiting=True)
    assert controller.pace.per_second <= schedule.CATCH * pace


def test_refusals_that_are_usual_here_lower_the_pace():
    """Half of the calls are refused: the pace settles above what succeeds."""
    controller, now = healthy()
    for number in range(400):
        now += 0.1
        if number % 2:
            controller.failed(now, now - 0.01, 0.5, REFUSED)
        else:
            controller.succeeded(now, now - 0.01, waiting=True)
    assert controller.state == RAMP
    assert controller.pace.per_second < 10.0


def test_what_another_process_found_out():
    """It shuts the state, and opens it again."""
    controller, now = healthy()
    controller.learn(now, now + 5.0, 0.0, True)
    assert controller.admit(now) == now + 5.0
    controller.learn(now + 1.0, now + 1.0, 0.0, False)
    assert controller.state == RAMP


kinds = st.sampled_from(["ok", PLAIN, REFUSED, HINT, SILENT, "abandon"])
scripts = st.lists(
    st.tuples(st.floats(0, 20), kinds, st.floats(0, 4000), st.floats(0, 1), st.booleans(), st.booleans()),
    max_size=80,
)


def play(script, scale=1.0, check=lambda *_: None):
    """Run a script of admissions and reports. Return the controller, the time and the calls that are still out."""
    controller, now, out = Controller(), 1000.0 * scale, []
    for passed, kind, hint, draw, oldest, waiting in script:
        now += passed * scale
        before = controller.state, controller.evidence.share, controller.hold.probe_sent
        at = controller.admit(now)
        if at == 0.0:
            out.append(now)
        check(controller, now, at, before)
        if not out:
            continue
        sent = out.pop(0 if oldest else -1)
        report(controller, now, sent, kind, hint * scale, draw, waiting)
    return controller, now, out


def report(controller, now, sent, kind, hint, draw, waiting):
    """Report the end of one call."""
    state, since, share = controller.state, controller.since, controller.evidence.share
    if kind == "ok":
        controller.succeeded(now, sent, waiting=waiting)
        if state in HELD and sent < since:
            assert controller.state == state
    elif kind == "abandon":
        controller.abandoned(sent)
    else:
        controller.failed(now, sent, draw, kind, hint if kind == HINT else 0.0)
    if state in HELD and kind != "ok":
        assert controller.evidence.share == share


@given(scripts)
def test_admit_never_returns_a_past_or_infinite_time(script):
    """It returns 0, or a finite time in the future; and at most one probe is out."""

    def check(controller, now, at, before):
        assert at == 0.0 or now < at < inf
        assert isfinite(controller.pace.per_second)
        if before[0] in HELD and before[2] >= 0.0 and controller.state in HELD:
            assert at > 0.0

    play(script, check=check)


@given(scripts)
def test_the_pace_is_never_below_its_bound(script):
    """A slow service gets at least a share of what arrives, and a client at least a call in twenty seconds."""

    def check(controller, now, at, before):
        if controller.state == RAMP:
            assert controller.pace.per_second >= schedule.LEAST_PACE - 1e-9

    play(script, check=check)


@given(scripts)
def test_a_healthy_service_is_open_again_in_bounded_time(script):
    """After any reports: once all calls succeed and none waits, at most one probe's gap passes."""
    controller, now, out = play(script)
    for sent in out:
        controller.abandoned(sent)
    for _ in range(3):
        at = controller.admit(now)
        if at:
            now = at
            at = controller.admit(now)
        assert at == 0.0
        controller.succeeded(now + 0.05, now, waiting=False)
        now += 0.06
    assert controller.state == OPEN
    assert now < 1000.0 + 80 * 20 + 30 * 3**8


@given(scripts, st.lists(st.tuples(kinds, st.floats(0, 100)), min_size=2, max_size=5), st.randoms())
def test_the_order_of_simultaneous_successes_and_of_failures_changes_no_state(script, reports, shuffler):
    """Reports of one kind that arrive at the same moment, of calls sent at the same moment."""
    kind = reports[0][0]
    results = []
    for order in (reports, shuffler.sample(reports, len(reports))):
        controller, now, _ = play(script)
        for _, hint in order:
            report(controller, now + 1.0, now, kind, hint, 0.5, True)
        results.append(
            (controller.state, controller.evidence.run, controller.evidence.share, controller.hold.until)
        )
    assert results[0] == results[1]


_SECONDS = {
    evidence: ("MEMORY", "IDLE", "WINDOW", "LEAST_SPAN", "CALM", "STALE"),
    room: ("STALE",),
    controller_module: ("DOUBTED", "KEPT"),
    schedule: (
        *("SLOW_ABOVE", "RETURN", "BEHIND", "FAST_DOUBLING", "SLOW_DOUBLING", "LONG"),
        *("FIRST_SILENT", "CAP_SILENT", "FIRST_PLAIN", "CAP_PLAIN", "LEAST_CAP", "PRESUMED_AFTER"),
        *("PRESUMED_WARY", "KEPT", "DOUBTED"),
    ),
}
_RATES = (
    (schedule, "LEAST_PACE"),
    (evidence, "LEAST_RATE"),
    (evidence, "COLD_RATE"),
)


@given(scripts)
def test_scaling_all_times_scales_all_decisions(script):
    """With the named constants scaled too, nothing depends on the unit of time."""
    one, _, _ = play(script)
    with pytest.MonkeyPatch.context() as patch:
        for module, names in _SECONDS.items():
            for name in names:
                patch.setattr(module, name, getattr(module, name) * 2.0)
        for module, name in _RATES:
            patch.setattr(module, name, getattr(module, name) / 2.0)
        two, _, _ = play(script, scale=2.0)
    assert (one.state, one.evidence.run, one.hold._failed_probes) == (
        two.state,
        two.evidence.run,
        two.hold._failed_probes,
    )
    assert one.evidence.share == two.evidence.share
    if one.state == RAMP:
        assert one.pace.per_second == pytest.approx(two.pace.per_second * 2.0)


def test_weeks_between_two_answers_change_the_pace_by_one_step():
    """The time that has passed is bounded before it is an exponent."""
    controller, _ = shut()
    now = probed(controller) + 1e7
    controller.succeeded(now + 0.05, now, waiting=True)
    assert controller.pace.per_second <= schedule.RISE * schedule.START * 10.5


def test_repeats_that_succeed_show_that_refusals_concern_all():
    """Only repeats that are refused again show that single callers are refused."""
    for succeed in (True, False):
        controller, now = healthy()
        for _ in range(10):
            now += 1.0
            controller.failed(now, now - 0.01, 0.5, REFUSED)
            if succeed:
                controller.succeeded(now + 0.5, now + 0.45, waiting=False, repeat=True)
            else:
                controller.failed(now + 0.5, now + 0.45, 0.5, REFUSED, repeat=True)
                controller.succeeded(now + 0.6, now + 0.55, waiting=False)
        assert controller.evidence.refused_alone is not succeed


def test_a_failure_by_chance_holds_nothing_back():
    """Neither does one of a call that was sent before the hold, unless it names a time."""
    controller, now = healthy()
    assert controller.failed(now, now - 0.01, 0.5, PLAIN) is False
    controller, now = shut()
    assert controller.failed(now, now - 1.0, 0.5, PLAIN) is False
    assert controller.failed(now, now - 1.0, 0.5, HINT, 5.0) is True
    controller, now = healthy()
    assert controller.failed(now, now - 0.01, 0.5, HINT, 5.0) is False
    assert controller.state == WARY


def test_a_call_may_be_forced_when_the_named_time_is_reached():
    """Not before."""
    controller, now = shut()
    controller.hold.until = now + 5.0
    assert not controller.may_force(now + 4.9)
    assert controller.may_force(now + 5.0)


def test_silence_in_a_run_shows_strain_until_it_ends():
    """A plain failure that follows in the same run does not hide it; a new run forgets it."""
    controller, now = healthy()
    controller.failed(now, now - 0.01, 0.5, SILENT)
    assert controller.evidence.strained
    controller.failed(now + 0.1, now + 0.09, 0.5, PLAIN)
    assert controller.evidence.strained
    controller.succeeded(now + 0.3, now + 0.2)
    controller.failed(now + 0.4, now + 0.39, 0.5, PLAIN)
    assert not controller.evidence.strained


def test_a_slow_answer_in_ramp_shows_strain():
    """A calm one alone does not."""
    for trip, strained in ((0.05, False), (1.0, True)):
        controller, _ = shut()
        now = probed(controller)
        assert controller.state == RAMP
        assert not controller.evidence.strained
        controller.admit(now)
        controller.succeeded(now + trip, now, waiting=True)
        assert controller.evidence.strained is strained


def test_an_overload_is_not_learned_as_chance():
    """Failures before a probe that succeeds are: another outage of that kind is noticed later."""
    for kind, learned in ((PLAIN, True), (SILENT, False)):
        controller, _ = shut(kind)
        assert controller.evidence.share == 0.0
        probed(controller)
        assert (controller.evidence.share > 0.0) is learned


def test_the_state_before_any_call():
    """OPEN: calls are sent at once, and nothing is held."""
    controller = Controller()
    assert (controller.state, controller.since, controller.held_until()) == (OPEN, 0.0, 0.0)
    assert controller.admit(0.0) == 0.0
    assert controller.may_force(0.0)
    assert not controller.probes_fresh


def test_a_probe_at_the_time_zero():
    """Times may begin with zero: the probe that was sent then is out."""
    controller = Controller()
    for _ in range(5):
        controller.failed(0.0, 0.0, 0.5, PLAIN)
    assert controller.state == SHUT
    controller.hold.resume_at = 0.0
    assert controller.admit(0.0) == 0.0
    assert controller.admit(0.0) == 1.0
    controller.failed(0.0, 0.0, 0.5, PLAIN)
    assert controller.hold.resume_at > 0.0


def test_failures_of_calls_that_were_sent_before_a_hold():
    """In SHUT they change nothing except that a hint makes it longer; in WARY only hints count."""
    controller, now = shut()
    resumes, run = controller.hold.resume_at, controller.evidence.run
    assert controller.failed(now + 0.1, now - 5.0, 0.5, PLAIN) is False
    assert (controller.hold.resume_at, controller.evidence.run) == (resumes, run)
    assert controller.failed(now + 0.1, now - 5.0, 0.5, HINT, 20.0) is True
    assert controller.hold.resume_at == now + 20.1
    controller, now = healthy()
    controller.failed(now, now - 0.05, 0.5, HINT, 3600.0)
    assert controller.state == WARY
    for _ in range(20):
        assert controller.failed(now, now - 0.05, 0.5, PLAIN) is False
    assert controller.state == WARY
    controller.failed(now, now - 0.05, 0.5, HINT, 3600.0)
    assert controller.state == SHUT


def test_every_ended_call_is_counted():
    """Successes, failures and those without an outcome."""
    controller, now = healthy()
    calls = controller.traffic.calls
    controller.failed(now, now, 0.5, PLAIN)
    controller.abandoned(now)
    controller.succeeded(now, now)
    assert controller.traffic.calls == calls + 3


def test_a_probe_without_an_outcome_is_sent_again():
    """At once; another call without an outcome is no probe."""
    controller, _ = shut()
    now = controller.hold.resume_at
    assert controller.admit(now) == 0.0
    controller.abandoned(now - 1.0)
    assert controller.admit(now) > now
    controller.abandoned(now)
    assert controller.admit(now) == 0.0


def test_what_another_process_wrote():
    """It resumes within half a minute, keeps the later named time, and does not reopen what is not shut."""
    controller, now = healthy()
    controller.learn(now, now, 0.0, shut=False)
    assert controller.state == OPEN
    controller.learn(now, now + 10.0, now + 50.0, shut=True)
    assert (controller.state, controller.since) == (SHUT, now)
    assert (controller.hold.resume_at, controller.hold.until) == (now + 10.0, now + 50.0)
    controller.learn(now + 1.0, now + 500.0, now + 40.0, shut=True)
    assert controller.since == now
    assert (controller.hold.resume_at, controller.hold.until) == (now + 31.0, now + 50.0)
    controller.learn(now + 2.0, now, 0.0, shut=False)
    assert controller.state == RAMP
    assert controller.admit(now + 2.0) == 0.0


def test_the_named_limit_of_a_service_that_is_held():
    """It does not count: the hold is stronger."""
    controller, now = shut()
    controller.allow(now, 1, 100.0)
    assert controller.state == SHUT
    controller, now = healthy()
    controller.allow(now, 1, 100.0)
    assert (controller.state, controller.since) == (RAMP, now)
    since = controller.since
    controller.allow(now + 5.0, 1, 200.0)
    assert (controller.state, controller.since) == (RAMP, since)
    controller, now = healthy()
    controller.allow(now, 10**6, 1.0)
    assert controller.state == OPEN


def test_a_paced_service_is_open_again_when_its_named_limit_ends():
    """Not before, although the answers are calm."""
    controller, now = healthy()
    controller.allow(now, 10, 100.0)
    controller.succeeded(now + 99.0, now + 98.95)
    assert controller.state == RAMP
    controller.succeeded(now + 100.0, now + 99.95)
    assert controller.state == OPEN


def test_when_a_call_may_be_forced():
    """In RAMP if the pace is at least the arrivals; in a hold when the named time is over."""
    controller, now = healthy()
    controller.allow(now, 10, 100.0)
    assert not controller.may_force(now)
    controller.pace.per_second = controller.traffic.rate(now)
    assert controller.may_force(now)
    controller, now = shut()
    assert controller.may_force(now)
    controller.hold.until = now + 1.0
    assert not controller.may_force(now)
    assert controller.may_force(now + 1.0)
    assert controller.held_until() == now + 1.0
    assert controller.probes_fresh


def test_a_long_hint_among_many_refusals_does_not_pace():
    """A refusal that names more than half a minute is no sign of too many calls now."""
    for hint, expected in ((30.0, RAMP), (30.1, OPEN)):
        controller, now = healthy()
        controller.evidence.share = 0.5
        assert controller.failed(now, now - 0.01, 0.5, HINT, hint) is False
        assert controller.state == expected


def test_a_hint_that_is_presumed_to_concern_one_caller_is_chance():
    """The probe in WARY is out for longer than failures take: the hint is learned as chance, and all calls are sent."""
    controller, now = healthy()
    controller.failed(now, now - 0.05, 0.5, HINT, 3600.0)
    assert controller.admit(now) == 0.0
    assert controller.admit(now + 0.1) == pytest.approx(now + 0.2)
    assert controller.admit(now + 0.21) == 0.0
    assert (controller.state, controller.evidence.run) == (OPEN, 0)
    assert controller.evidence.share > 0.0


def test_a_named_time_within_the_first_second():
    """Times may begin with zero."""
    controller, _ = shut()
    controller.hold.until = 0.5
    assert controller.probes_fresh


def test_failures_without_a_named_time():
    """The default is none."""
    controller = Controller()
    controller.failed(1.0, 0.9, 0.5, HINT)
    assert controller.held_until() == 1.0


def test_a_refused_priority_does_not_hold_back_a_higher_one():
    """Until a call of that fails as well; a good answer to a higher one shows nothing about the others."""
    controller, now = healthy()
    while controller.state != SHUT:
        controller.failed(now, now - 0.01, 0.5, HINT, 5.0)
    assert controller.admit(now) > now
    assert controller.admit(now, priority=1) == 0.0
    controller.succeeded(now + 0.1, now, priority=1)
    assert controller.state == SHUT
    controller.failed(now + 0.2, now, 0.5, HINT, 5.0, priority=1)
    assert controller.admit(now + 0.3, priority=1) > now
    assert controller.admit(now + 0.3, priority=2) == 0.0
    while controller.state != OPEN:
        now = max(now + 0.1, controller.hold.resume_at)
        if controller.admit(now) == 0.0:
            controller.succeeded(now + 0.05, now)
    for _ in range(100):
        controller.failed(now, now - 0.01, 0.5, PLAIN)
    assert controller.admit(now, priority=1) == 0.0


def test_what_others_found_out_and_limits_hold_back_every_priority():
    """It is not known whose calls failed elsewhere."""
    controller, now = healthy()
    controller.learn(now, now + 10.0, 0.0, True)
    assert controller.admit(now, priority=100) > now
    controller, now = healthy()
    controller.allow(now, 1, 60.0)
    assert controller.admit(now, priority=100) > now


def test_a_second_probe_while_the_first_one_hangs():
    """The first answer of either ends the hold."""
    controller, now = healthy(trip=0.05)
    while controller.state != SHUT:
        controller.failed(now, now - 30.0, 0.5, SILENT)
        now += 0.1
    probe = controller.hold.resume_at
    assert controller.admit(probe) == 0.0
    another = controller.admit(probe + 1.0)
    assert 5.0 <= another - probe < 30.0
    assert controller.admit(another) == 0.0
    assert controller.admit(another + 1.0) > another + 1.0
    controller.succeeded(another + 2.0, another)
    assert controller.state in {OPEN, RAMP}


def test_a_batch_of_which_a_part_is_served_is_sent_on_at_once():
    """Calls that were sent with the refused ones, and are answered, show that others are served beside those."""
    controller = Controller()
    controller.sent = 30
    for _ in range(20):
        controller.failed(0.05, 0.0, 0.5, REFUSED, limited=True)
    assert controller.state == SHUT
    controller.succeeded(1.0, 0.0)
    assert (controller.state, controller.room.calls) == (RAMP, 10.0)


def test_one_call_too_many_is_no_sign_of_an_outage():
    """At a limit of calls in flight the one that has no room is refused with a short hint: the others go on."""
    controller, now = healthy()
    controller.state, controller.since = RAMP, now
    controller.room.start(5.0, served=True)
    controller.sent = controller.traffic.calls + 5
    assert not controller.failed(now + 0.05, now, 0.5, HINT, 1.0)
    assert (controller.state, controller.room.calls) == (RAMP, 4.0)
