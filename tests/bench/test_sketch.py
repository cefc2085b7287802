"""The shared state machine step by step; time and random numbers are arguments."""

import itertools

from bench.recovery.contenders.sketch import DOWN, DRAINING, FLOWING, HELD, NEVER, Upstream


def healthy(answers=20, trip=0.05):
    """Return an upstream that has had successful responses until second 1."""
    upstream = Upstream()
    for _ in range(answers):
        assert upstream.admit(0.0) == 0
        upstream.success(1.0, 1.0 - trip, waiting=0, draw=0.5)
    return upstream


def fail(upstream, now, *, silent=False, after=0.05, draw=0.5):
    assert upstream.admit(now) == 0
    upstream.failure(now + after, now, silent=silent, draw=draw)


def test_single_failures_change_nothing():
    """Four failures in a row may be chance; a success resets the count."""
    upstream = healthy()
    for start in (2, 3):
        for step in range(4):
            fail(upstream, start + step / 10)
        assert upstream.state == FLOWING
        upstream.success(start + 0.5, start + 0.45, waiting=0, draw=0.5)
    assert upstream.state == FLOWING


def test_five_failures_in_a_row_allow_one_probe():
    """No call until the probe's time, then one call, then none until its result."""
    upstream = healthy()
    for step in range(5):
        fail(upstream, 2 + step / 10)
    assert upstream.state == DOWN
    resume = upstream.admit(2.5)
    assert 2.5 < resume < 3.5
    assert upstream.admit(resume) == 0
    assert upstream.admit(resume) == NEVER
    upstream.failure(resume + 0.05, resume, silent=False, draw=0.5)
    assert upstream.admit(resume + 0.1) > resume + 0.5


def test_one_timeout_on_a_healthy_service_is_enough():
    """On a healthy service a timeout means that it is down."""
    upstream = healthy()
    fail(upstream, 2, silent=True, after=2)
    assert upstream.state == DOWN


def test_a_timeout_before_a_later_success_is_ignored():
    """Then a message was lost, and the service is up."""
    upstream = healthy()
    upstream.admit(2.0)
    upstream.admit(2.5)
    upstream.success(2.55, 2.5, waiting=0, draw=0.5)
    upstream.failure(4.0, 2.0, silent=True, draw=0.5)
    assert upstream.state == FLOWING


def test_a_service_known_to_fail_often_is_not_taken_for_dead():
    """If six of ten calls always fail, six failures in a row mean nothing."""
    upstream = healthy()
    for step in range(100):
        if upstream.state != FLOWING:
            break
        if step % 5 in {0, 2}:
            upstream.success(2 + step, 1.95 + step, waiting=0, draw=0.5)
        else:
            upstream.failure(2 + step, 1.95 + step, silent=False, draw=0.5)
    for step in range(6):
        fail(upstream, 200 + step)
    assert upstream.state == FLOWING


def test_probes_come_less_and_less_often_up_to_a_bound():
    """The gap grows with each failed probe, up to the cap."""
    upstream = healthy()
    fail(upstream, 2, silent=True, after=2)
    gaps, now = [], 4.0
    for _ in range(6):
        resume = upstream.admit(now)
        gaps.append(resume - now)
        assert upstream.admit(resume) == 0
        now = resume + 2
        upstream.failure(now, resume, silent=True, draw=0.5)
    assert gaps == sorted(gaps)
    assert gaps[-1] == upstream.tuning.silence_cap


def test_a_hint_is_obeyed_by_all_and_never_shortened():
    """Neither a shorter hint nor the success of a call in flight shortens it."""
    upstream = healthy()
    upstream.hint(2.0, 1.95, 12.0)
    upstream.hint(2.1, 1.96, 7.0)
    upstream.success(2.2, 1.97, waiting=3, draw=0.5)
    assert upstream.state == HELD
    assert upstream.blocked_until() == 12.0
    assert upstream.admit(11.99) == 12.0
    assert upstream.admit(12.0) == 0
    assert upstream.admit(12.0) == NEVER


def test_a_plain_failure_after_a_hint_is_an_outage():
    """The hint has expired, so it no longer blocks callers."""
    upstream = healthy()
    upstream.hint(2.0, 1.95, 3.0)
    assert upstream.admit(3.0) == 0
    upstream.failure(3.05, 3.0, silent=False, draw=0.5)
    assert upstream.state == DOWN
    assert upstream.blocked_until() == 0


def drained(trip):
    """Return an upstream after an outage whose probe took `trip`, with twenty callers waiting, and the time."""
    upstream = healthy()
    for step in range(5):
        fail(upstream, 2 + step / 10)
    resume = upstream.admit(2.5)
    upstream.admit(resume)
    upstream.success(resume + trip, resume, waiting=20, draw=0.5)
    return upstream, resume + trip


def test_waiting_calls_are_released_gradually():
    """The window grows by at most one per round of fast responses; an empty queue ends the draining."""
    upstream, now = drained(0.05)
    assert upstream.state == DRAINING
    rounds = []
    for _ in range(6):
        sent = 0
        while upstream.admit(now) == 0:
            sent += 1
        rounds.append(sent)
        for _ in range(sent):
            upstream.success(now + 0.05, now, waiting=10, draw=0.5)
        now += 0.05
    assert rounds[0] <= 2
    assert all(0 <= after - before <= 1 for before, after in itertools.pairwise(rounds))
    assert rounds[-1] >= 5
    assert upstream.admit(now) == 0
    upstream.success(now + 0.05, now, waiting=0, draw=0.5)
    assert upstream.state == FLOWING


def test_a_slow_probe_delays_the_next_call():
    """The probe took 1 s instead of 0.05 s: pause about 4 s, then allow one call."""
    upstream, now = drained(1.0)
    again = upstream.admit(now)
    assert 2 < again - now < 6
    assert upstream.admit(again) == 0
    assert upstream.admit(again) == NEVER


def test_long_calls_do_not_count_as_slow_if_they_are_usual():
    """If half of all calls normally take 1.5 s, 1.5 s causes no pause."""
    upstream = Upstream()
    for step in range(60):
        upstream.admit(step)
        upstream.success(step + (1.5 if step % 2 else 0.05), step, waiting=0, draw=0.5)
    upstream.hint(100.0, 99.9, 101.0)
    upstream.admit(101.0)
    upstream.success(102.5, 101.0, waiting=5, draw=0.5)
    assert upstream.admit(102.5) == 0


def test_stragglers_do_not_hold_the_window():
    """Calls from before the outage that return late do not occupy the window."""
    upstream = healthy()
    for _ in range(30):
        upstream.admit(1.5)
    for step in range(5):
        fail(upstream, 2 + step / 10)
    resume = upstream.admit(2.5)
    upstream.admit(resume)
    upstream.success(resume + 0.05, resume, waiting=5, draw=0.5)
    assert upstream.admit(resume + 0.05) == 0
    for _ in range(30):
        upstream.success(resume + 0.06, 1.5, waiting=5, draw=0.5)
    assert upstream.inflight == 1


def test_a_cancelled_probe_allows_another():
    """A cancelled probe must not block all callers forever."""
    upstream = healthy()
    fail(upstream, 2, silent=True, after=2)
    resume = upstream.admit(4.0)
    assert upstream.admit(resume) == 0
    upstream.cancel(resume)
    assert upstream.admit(resume) == 0


def test_the_budget_delays_repeats_beyond_its_floor():
    """Fifty retries at once, then ten per second; each call adds a fifth of a retry."""
    upstream = Upstream()
    assert [upstream.repeat_at(0.0) for _ in range(50)] == [0.0] * 50
    assert 0 < upstream.repeat_at(0.0) <= 0.1
    assert sum(upstream.repeat_at(1.0) == 0 for _ in range(20)) == 10
    for _ in range(50):
        upstream.admit(1.0)
    assert sum(upstream.repeat_at(1.0) == 0 for _ in range(20)) == 10
