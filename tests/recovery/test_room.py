"""The limit of calls in flight: how it is found, used and given up."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.recovery.controller import OPEN, RAMP, SHUT, Controller
from amends.recovery.evidence import HINT, PLAIN, REFUSED, SILENT, STALE
from amends.recovery.room import WIDER, Room
from amends.recovery.schedule import RISE


def test_a_new_room_is_unlimited():
    """It does not grow, and there is none to find without a refusal."""
    room = Room()
    room.answered(1000)
    assert (room.calls, room.limited, room.served_beside, room.possible(0.0)) == (inf, False, False, True)


def test_only_a_full_room_grows():
    """By a call for each good answer at first; after a refusal by a small step that grows."""
    room = Room()
    room.start(4.0)
    room.answered(2)
    assert room.calls == 4.0
    room.answered(4)
    room.answered(5)
    assert room.calls == 6.0
    assert room.refused(10.0, 9.0, 6, served=True)
    assert room.calls == 5.0
    room.answered(5)
    room.answered(5)
    assert room.calls == pytest.approx(5.0 + WIDER + WIDER * RISE)


def test_a_refusal_far_below_the_room_halves_the_calls_in_flight():
    """Once in two round trips, and to one call at least."""
    room = Room()
    room.start(40.0)
    assert room.refused(10.0, 9.0, 20, served=True)
    assert room.calls == 10.0
    assert room.refused(10.5, 9.5, 8, served=True)
    assert room.calls == 10.0
    assert room.refused(11.5, 11.1, 8, served=True)
    assert room.calls == 4.0


def test_what_shows_that_calls_in_flight_are_not_limited():
    """A refusal without others in flight, or with half of those that were served; then nothing is found for a minute."""
    for inflight, proved in ((1, 1), (10, 20)):
        room = Room()
        room.start(30.0)
        room.answered(proved)
        assert not room.refused(100.0, 99.0, inflight, served=True)
        assert not room.limited
        assert not room.possible(100.0 + STALE)
        assert not room.refused(100.0 + STALE, 99.0, 50, served=True)
        assert room.possible(100.1 + STALE)


def test_before_the_first_answer_the_room_is_what_others_have():
    """Calls that were sent before may be in flight: a refusal alone shows nothing yet."""
    room = Room()
    assert room.refused(10.0, 9.0, 20, served=False)
    assert room.refused(10.0, 9.0, 12, served=False)
    assert room.calls == 11.0
    assert not room.refused(10.0, 9.0, 1, served=False)
    assert room.possible(10.0)


def test_refusals_beside_calls_in_flight_are_remembered():
    """The least number of others in flight is the room to begin with; none shows that all calls are refused."""
    room = Room()
    for others in (30, 20, 10):
        room.note_refusal(others, first=False)
    assert (room.beside, room.refusals, room.served_beside) == (10, 3, True)
    room.note_refusal(40, first=True)
    assert (room.beside, room.refusals) == (40, 1)
    room.note_refusal(0, first=False)
    assert not room.served_beside


def at_limit(limit, refusal, kind, *, workers=60, trip=1.0, calls=300):
    """Run workers against a service that serves `limit` calls at once. Return the share of the calls that were refused."""
    controller, now, running, waiting, refused, sent = Controller(), 0.0, [], workers, 0, 0
    while sent < calls or running:
        while waiting and sent < calls and controller.admit(now) == 0.0:
            controller.sent += 1
            sent, waiting = sent + 1, waiting - 1
            served = sum(good for _, _, good in running) < limit
            running.append((now + (trip if served else refusal), now, served))
            running.sort()
        if running and (sent >= calls or not waiting or running[0][0] <= now):
            now, began, good = running.pop(0)
            if good:
                controller.succeeded(now, began, waiting=waiting > 0)
            else:
                refused += 1
                controller.failed(now, began, 0.5, kind, limited=kind == REFUSED)
            waiting += 1
        else:
            due = controller.admit(now)
            if due > now:
                now = min(due, running[0][0] if running else due)
    return refused / calls, controller


@pytest.mark.parametrize("kind", [PLAIN, REFUSED])
@pytest.mark.parametrize("limit", [3, 10, 30])
def test_a_limit_of_calls_in_flight_is_found(limit, kind):
    """Apart from the first two batches hardly a call is refused, whether with 429 or with a quick 503."""
    share, controller = at_limit(limit, 0.05, kind)
    first = (60 - limit) / 300
    assert share <= first + 0.25
    assert controller.room.limited
    assert controller.room.calls <= limit + 2


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["admit", "good", PLAIN, REFUSED, HINT, SILENT]), st.floats(0.0, 30.0), st.booleans()
    ),
    max_size=120,
)


@given(EVENTS)
def test_whatever_happens_the_room_and_the_pace_stay_usable(events):
    """At least one call has room, the pace is positive, and every refused turn names a later time or the next report."""
    controller, now, sent = Controller(), 0.0, []
    for kind, seconds, repeat in events:
        now += seconds
        if kind == "admit":
            due = controller.admit(now, tries=int(repeat))
            assert due == 0.0 or due > now
            if due == 0.0:
                controller.sent += 1
                sent.append(now)
            elif due == inf:
                assert controller.state == RAMP
                assert controller.inflight + 1 > controller.room.calls >= 1.0
        elif sent:
            began = sent.pop(0)
            if kind == "good":
                controller.succeeded(now, began, waiting=repeat, repeat=repeat)
            else:
                controller.failed(now, began, 0.5, kind, 3.0 if kind == HINT else 0.0, repeat=repeat)
        assert controller.room.calls >= 1.0
        assert controller.pace.per_second > 0.0
        assert controller.inflight == len(sent)
        assert controller.traffic.demand(now) >= controller.traffic.rate(now) * (1 - 1e-9)


@given(st.integers(2, 200), st.floats(0.01, 5.0))
def test_a_batch_that_fails_together_is_sent_together_again(calls, trip):
    """After a short outage all of a cold batch are sent within two seconds of the first success."""
    controller = Controller()
    controller.sent += calls
    for _ in range(calls):
        controller.failed(trip, 0.0, 0.5, PLAIN)
    now = max(trip, controller.hold.resume_at)
    assert controller.admit(now) == 0.0
    controller.sent += 1
    controller.succeeded(now + trip, now, waiting=True, repeat=True)
    if controller.state == OPEN:
        return
    assert controller.state != SHUT
    assert controller.pace.per_second >= 0.7 * calls


def test_more_calls_than_ever_were_answered_are_sent_apart():
    """A refused call that was sent with another one would not show whether calls in flight are limited, or those in a second."""
    room = Room()
    room.start(4.0)
    assert room.apart(1, 10.0, 2.0) == 0.0
    assert room.apart(2, 10.0, 2.0) == 10.5
    room.answered(2)
    assert room.apart(2, 10.0, 2.0) == 0.0
    assert room.apart(3, 10.0, 2.0) == 10.5
    room.end()
    assert room.apart(3, 10.0, 2.0) == 0.0


def test_a_room_that_others_had_grows_in_small_steps():
    """In a small one the steps are larger: there are fewer answers."""
    for calls, served, grown in ((8.0, True, 8.0 + WIDER), (8.0, False, 9.0), (1.0, True, 1.0 + 2 * WIDER)):
        room = Room()
        room.start(calls, served=served)
        room.answered(int(calls))
        assert room.calls == grown


def test_another_failure_like_those_of_a_limit_narrows_the_room():
    """A 503 that comes in less than the usual time is a refusal where calls in flight are limited already."""
    controller, now = Controller(), 100.0
    for _ in range(400):
        now += 0.05
        controller.sent += 1
        controller.succeeded(now, now - 0.1)
    for limited, kept in ((False, inf), (True, 4.0)):
        controller.state, controller.since = RAMP, now
        controller.evidence.forget_run()
        controller.room.calls = 5.0 if limited else inf
        controller.sent = controller.traffic.calls + 5
        controller.failed(now + 0.08, now, 0.5, PLAIN)
        assert (controller.room.calls <= kept) if limited else controller.room.calls == kept
