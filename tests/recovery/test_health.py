"""How a service is seen to be doing: the pure state machine and the budget, moment by moment."""

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
    """A service that answered some calls well."""
    health = Health(TUNING)
    for number in range(calls):
        assert health.admit(number) == 0.0
        health.succeeded(number + round_trip, number, 0.5, waiting=False)
    return health


def down(at=100.0, **kind):
    """A service that has just been found to be down."""
    health = healthy()
    for _ in range(5):
        health.failed(at, at - 0.05, 0.5, **(kind or {"silent": False}))
    assert health.state == DOWN
    return health


def test_five_plain_failures_in_a_row_are_an_outage():
    """Four are bad luck."""
    health = healthy()
    for _ in range(4):
        health.failed(100.0, 99.9, 0.5, silent=False)
    assert health.state == FLOWING
    health.failed(100.0, 99.9, 0.5, silent=False)
    assert health.state == DOWN


def test_where_most_calls_fail_a_run_of_failures_says_nothing():
    """Two of three calls fail always: no outage is seen where there is none."""
    health = healthy()
    for number in range(300):
        if number % 3:
            health.failed(number, number - 0.05, 0.5, silent=False)
        else:
            health.succeeded(number, number - 0.05, 0.5, waiting=False)
    assert health.state == FLOWING


def test_one_silence_is_an_outage_unless_a_later_call_was_answered():
    """Then a message was lost, and the service is well."""
    lost = healthy()
    lost.succeeded(101.0, 100.9, 0.5, waiting=False)
    lost.failed(102.0, 100.0, 0.5, silent=True)
    assert lost.state == FLOWING
    dead = healthy()
    dead.failed(102.0, 100.0, 0.5, silent=True)
    assert dead.state == DOWN


def test_an_outage_is_probed_with_one_call_at_a_time():
    """Each failed probe waits longer, up to the cap."""
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


def test_silence_is_probed_more_rarely():
    """A time-out costs the server work."""
    health = down(silent=True)
    assert health.resume_at - 100.0 == pytest.approx(3.0)


def test_a_good_probe_lets_the_others_out_a_few_at_a_time():
    """The window opens with calm answers, and all flows again when nobody waits."""
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


def test_rising_round_trips_slow_the_draining_down():
    """Before time-outs come: half the window, and a rest as long as four times the excess."""
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


def test_forced_calls_and_stragglers_keep_the_books_straight():
    """Calls of an earlier state are not counted in the window."""
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


def test_a_hint_holds_everything_until_its_time():
    """Nothing shortens it: not a success that was on its way, not a shorter hint."""
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


def test_a_hint_in_answer_to_the_probe_holds_again():
    """And the next probe can go out after it."""
    health = healthy()
    health.hold(100.0, 99.9, 110.0)
    assert health.admit(110.0) == 0.0
    health.hold(110.1, 110.0, 120.0)
    assert health.admit(120.0) == 0.0


def test_a_failed_probe_after_a_hint_is_an_outage():
    """From then on it is probed like one."""
    health = healthy()
    health.hold(100.0, 99.9, 110.0)
    health.admit(110.0)
    health.failed(110.1, 110.0, 0.5, silent=False)
    assert health.state == DOWN


def test_failures_of_others_change_nothing_while_it_is_down():
    """Only the probe speaks."""
    health = down()
    before = health.resume_at
    health.failed(100.2, 99.0, 0.5, silent=False)
    assert health.resume_at == before


def test_a_first_answer_is_what_is_usual():
    """Also when it comes from a probe."""
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
def test_it_never_gets_stuck(script):
    """Whatever is reported, a call can go out again after the time it names and the reports that are due."""
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
    """Repeats taken never exceed what was saved at first plus what calls and time have earned, however greedy."""
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
def test_what_a_failure_says_about_the_service(fault, signal):
    """A wait on one thing is no wait for everybody; a bug of our own is no outage of theirs."""
    assert signal_of(fault) is signal
