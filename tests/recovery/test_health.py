"""Tests of the pure state machine of a service's health, and of the budget of repeats."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends import Fault
from amends.core.enums import Recovery
from amends.recovery.budget import Budget
from amends.recovery.health import DOWN, DRAINING, FLOWING, HELD, Health, Tuning
from amends.recovery.signals import Signal, signal_of

TUNING = Tuning()


def healthy(round_trip=0.05, calls=20):
    """Return a service that has answered some calls."""
    health = Health(TUNING)
    for number in range(calls):
        assert health.admit(number) == 0.0
        health.succeeded(number + round_trip, number, 0.5, waiting=False)
    return health


def down(at=100.0, **kind):
    """Return a service in the state DOWN."""
    health = healthy()
    for _ in range(5):
        health.failed(at, at - 0.05, 0.5, **(kind or {"silent": False}))
    assert health.state == DOWN
    return health


def test_five_plain_failures_in_a_row_are_an_outage():
    """After four failures the state is still FLOWING."""
    health = healthy()
    for _ in range(4):
        health.failed(100.0, 99.9, 0.5, silent=False)
    assert health.state == FLOWING
    health.failed(100.0, 99.9, 0.5, silent=False)
    assert health.state == DOWN


def test_a_constant_share_of_failures_is_no_outage():
    """A service that always fails two of three calls does not become DOWN."""
    health = healthy()
    for number in range(300):
        if number % 3:
            health.failed(number, number - 0.05, 0.5, silent=False)
        else:
            health.succeeded(number, number - 0.05, 0.5, waiting=False)
    assert health.state == FLOWING


def test_one_time_out_is_an_outage_unless_a_later_call_was_answered():
    """If a later call was answered, a message was lost and the service works."""
    lost = healthy()
    lost.succeeded(101.0, 100.9, 0.5, waiting=False)
    lost.failed(102.0, 100.0, 0.5, silent=True)
    assert lost.state == FLOWING
    dead = healthy()
    dead.failed(102.0, 100.0, 0.5, silent=True)
    assert dead.state == DOWN


def test_an_outage_is_probed_with_one_call_at_a_time():
    """The wait grows with each failed probe, up to the cap."""
    health = down()
    gaps, now = [], 100.0
    for _ in range(9):
        gaps.append(health.resume_at - now)
        assert health.admit(now) == health.resume_at
        now = health.resume_at
        assert health.admit(now) == 0.0
        assert health.admit(now) == inf
        health.failed(now + 0.05, now, 0.5, silent=False)
        now += 0.05
    assert gaps[:3] == pytest.approx([0.5, 0.75, 1.125])
    assert gaps[-1] == pytest.approx(5.0)


def test_time_outs_are_probed_more_rarely():
    """The first probe after a time-out waits longer, because it costs the server work."""
    health = down(silent=True)
    assert health.resume_at - 100.0 == pytest.approx(3.0)


def test_a_good_probe_opens_the_window_step_by_step():
    """The window grows with calm answers. The state is FLOWING when no call waits."""
    health = down()
    now = health.resume_at
    health.admit(now)
    health.succeeded(now + 0.05, now, 0.5, waiting=True)
    assert health.state == DRAINING
    now += 0.05
    sent = 0
    while health.admit(now) == 0.0:
        sent += 1
    assert sent == int(health.window) > 1
    assert health.admit(now) == inf
    health.succeeded(now + 0.05, now, 0.5, waiting=False)
    assert health.state == FLOWING


def test_rising_round_trips_slow_draining_down():
    """A slow answer halves the window and stops sending for four times its excess."""
    health = down()
    now = health.resume_at
    health.admit(now)
    health.succeeded(now + 0.05, now, 0.5, waiting=True)
    health.window = 8.0
    now += 0.05
    health.admit(now)
    health.succeeded(now + 1.05, now, 0.5, waiting=True)
    assert health.window == 4.0
    assert health.admit(now + 1.05) == pytest.approx(now + 1.05 + 4.0, abs=0.1)


def test_late_answers_of_an_earlier_state_are_not_counted_in_the_window():
    """Forced calls count in DRAINING; calls of an earlier state do not."""
    health = down()
    now = health.resume_at
    health.force()
    health.admit(now)
    health.succeeded(now + 0.05, now, 0.5, waiting=True)
    health.force()
    assert health.inflight == 1
    health.abandoned(now - 50)
    assert health.inflight == 1
    health.abandoned(now + 0.1)
    assert health.inflight == 0


def test_a_hint_holds_all_calls_until_its_time():
    """Neither a late success nor a shorter hint ends it earlier."""
    health = healthy()
    health.hold(100.0, 99.9, 110.0)
    assert (health.state, health.held_until()) == (HELD, 110.0)
    health.hold(100.1, 99.9, 105.0)
    health.succeeded(100.2, 99.9, 0.5, waiting=True)
    assert (health.state, health.admit(109.9)) == (HELD, 110.0)
    health.hold(100.3, 99.9, 112.0)
    assert health.admit(111.9) == 112.0
    assert health.admit(112.0) == 0.0
    health.succeeded(112.05, 112.0, 0.5, waiting=True)
    assert health.state == DRAINING
    assert health.held_until() == 0.0


def test_a_hint_as_answer_to_the_probe_holds_again():
    """The next probe can be sent after the new hint."""
    health = healthy()
    health.hold(100.0, 99.9, 110.0)
    assert health.admit(110.0) == 0.0
    health.hold(110.1, 110.0, 120.0)
    assert health.admit(120.0) == 0.0


def test_a_failed_probe_after_a_hint_is_an_outage():
    """The state becomes DOWN."""
    health = healthy()
    health.hold(100.0, 99.9, 110.0)
    health.admit(110.0)
    health.failed(110.1, 110.0, 0.5, silent=False)
    assert health.state == DOWN


def test_only_the_probe_counts_while_the_service_is_down():
    """A late failure of an earlier call does not change `resume_at`."""
    health = down()
    before = health.resume_at
    health.failed(100.2, 99.0, 0.5, silent=False)
    assert health.resume_at == before


def test_the_first_answer_sets_the_usual_round_trip():
    """This holds also if a probe got that answer."""
    health = Health(TUNING)
    health.failed(1.0, 0.0, 0.5, silent=True)
    now = health.resume_at
    health.admit(now)
    health.succeeded(now + 0.5, now, 0.5, waiting=True)
    assert health.round_trip == 0.5


reports = st.lists(
    st.tuples(
        st.floats(0, 20),
        st.sampled_from(["ok", "plain", "silent", "hint", "abandon"]),
        st.floats(0, 30),
        st.floats(0, 1),
    ),
    max_size=60,
)


@given(reports)
def test_a_call_can_always_be_sent_again(script):
    """After any reports, a call is admitted once the named time has passed and due reports have arrived."""
    health, now, out = Health(TUNING), 0.0, []
    for passed, kind, number, draw in script:
        now += passed
        if health.admit(now) == 0.0:
            out.append(now)
        if not out:
            continue
        sent = out.pop(0)
        if kind == "ok":
            health.succeeded(now, sent, draw, waiting=True)
        elif kind == "hint":
            health.hold(now, sent, now + number)
        elif kind == "abandon":
            health.abandoned(sent)
        else:
            health.failed(now, sent, draw, silent=kind == "silent")
    for sent in out:
        health.abandoned(sent)
    assert health.inflight >= 0
    again = health.admit(now)
    assert again != inf
    assert again == 0.0 or health.admit(again) == 0.0


@given(
    st.lists(st.tuples(st.floats(0, 3), st.integers(0, 20)), max_size=80),
    st.floats(0, 20),
)
def test_the_budget_is_never_overdrawn(steps, saved):
    """Repeats never exceed the initial savings plus what calls and time have added."""
    tuning = Tuning(repeats_saved=saved)
    budget, now, calls = Budget(tuning), 50.0, 0
    for passed, more in steps:
        now += passed
        calls += more
        while (at := budget.take(now, calls)) == 0.0:
            pass
        assert at > now
        assert 0 <= budget.saved < 1
        earned = saved + 0.2 * calls + 10 * (now - 50.0)
        assert budget.taken <= earned + 0.001 * (budget.taken + 1)


@pytest.mark.parametrize(
    ("fault", "signal"),
    [
        (Fault(code="RATE_LIMITED", retry_after=3), Signal.HINT),
        (Fault(code="RATE_LIMITED"), Signal.PLAIN),
        (Fault(code="SERVICE_UNAVAILABLE"), Signal.PLAIN),
        (Fault(code="TIMEOUT"), Signal.SILENT),
        (Fault(code="NOT_FOUND"), Signal.WELL),
        (Fault(code="PERMISSION_DENIED"), Signal.WELL),
        (Fault(code="CONFLICT", vocabulary="adcp", retry_after=3), Signal.WELL),
        (Fault(code="INTERNAL_ERROR"), Signal.NOTHING),
        (Fault(code="INTERNAL_ERROR", status=500), Signal.PLAIN),
        (Fault(code="INTERNAL_ERROR", recovery=Recovery.TRANSIENT), Signal.PLAIN),
    ],
)
def test_the_signal_of_each_failure(fault, signal):
    """A wait on one thing is no HINT for all calls, and an unclassified exception is NOTHING."""
    assert signal_of(fault) is signal
