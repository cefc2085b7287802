"""Limits that a service publishes are used before they are hit, and believed as far as a peer's word goes."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends import Operation, Upstream, recover
from amends.carriers.limits import Limit, published
from amends.recovery.async_library import ThreadWaiter
from amends.recovery.published import IGNORED, LONGEST, Published


def noted(remaining, reset=30.0, *, name="requests", limit=None, now=100.0, sent=99.0, inflight=1, ok=True):
    """Return the limits of a service after one answer."""
    limits = Published()
    limits.note(now, sent, [Limit(name, limit, remaining, reset)], inflight, ok=ok)
    return limits


@pytest.mark.parametrize(
    ("headers", "name", "remaining", "reset"),
    [
        ({"x-ratelimit-remaining-requests": "7", "x-ratelimit-reset-requests": "6m0s"}, "requests", 7, 360),
        ({"x-ratelimit-remaining-tokens": "900", "x-ratelimit-reset-tokens": "120ms"}, "tokens", 900, 0.12),
        ({"x-ratelimit-remaining": "59", "x-ratelimit-reset": "1700000060"}, "", 59, 60),
        ({"x-ratelimit-remaining": "59", "x-ratelimit-reset": "60"}, "", 59, 60),
        ({"ratelimit": '"burst";r=20;t=10', "ratelimit-policy": '"burst";q=100;w=60'}, "burst", 20, 10),
        (
            {
                "anthropic-ratelimit-input-tokens-remaining": "5000",
                "anthropic-ratelimit-input-tokens-reset": "2023-11-14T22:13:50Z",
            },
            "anthropic-input-tokens",
            5000,
            30,
        ),
    ],
)
def test_the_forms_that_are_read(headers, name, remaining, reset):
    """Epoch, seconds, durations, dates; calls and tokens."""
    (limit,) = published(headers, 1_700_000_000)
    assert (limit.name, limit.remaining, limit.reset) == (name, remaining, pytest.approx(reset))


def test_calls_are_held_when_nothing_is_left():
    """Until the limit starts again; those that are in flight and were sent later count."""
    limits = noted(3.0)
    for _ in range(3):
        assert limits.wait(100.0, len(limits.times)) == 0.0
        limits.let_out(100.0)
    assert limits.wait(100.0, 3) == pytest.approx(130.0)
    assert limits.wait(129.9, 3) == pytest.approx(130.0)
    limits.ended(100.0)
    assert limits.wait(130.0, 2) == 0.0


def test_calls_that_were_sent_before_are_in_the_count_already():
    """An answer names what was left when its call arrived, and the least of a window counts."""
    limits = noted(50.0)
    for at in (101.0, 102.0, 103.0):
        limits.let_out(at)
    limits.note(104.0, 103.0, [Limit("requests", None, 1.0, 26.0)], 3, ok=True)
    limits.ended(103.0)
    assert limits.wait(104.0, 2) == 0.0
    limits.note(104.5, 101.0, [Limit("requests", None, 40.0, 28.5)], 2, ok=True)
    limits.let_out(104.6)
    assert limits.wait(105.0, 3) == pytest.approx(130.0)


def test_a_new_window_has_the_whole_limit():
    """If an answer named it; the calls that are sent since then count."""
    limits = noted(0.0, 10.0, limit=2.0)
    assert limits.wait(100.0, 0) == 110.0
    for _ in range(2):
        assert limits.wait(110.0, len(limits.times)) == 0.0
        limits.let_out(110.0)
    assert limits.wait(110.0, 2) > 110.0


def test_one_limit_at_zero_holds_only_its_own_time():
    """Of several the longest counts, each by itself."""
    limits = Published()
    found = [Limit("requests", 10, 0, 5.0), Limit("tokens", 1000, 0, 20.0), Limit("points", None, 5, 50.0)]
    limits.note(100.0, 99.0, found, 0, ok=True)
    assert limits.wait(100.0, 0) == 120.0
    assert set(limits.shown(100.0)) == {"requests", "tokens", "points"}
    assert set(limits.shown(110.0)) == {"tokens", "points"}
    shop = Upstream("shop")
    shop.scope("search").note_limits([Limit("", 10, 0, 30.0)], 100.0, 99.0)
    assert shop.scope("search").snapshot(100.0).limits == {"": 0.0}
    assert shop.scope("orders").look(ThreadWaiter(), 100.0) == 0.0


def test_tokens_are_estimated_from_the_size():
    """From what was used since the window began."""
    limits = noted(0.0, 10.0, name="tokens", limit=1000.0)
    assert limits.wait(110.0, 0, 100) == 0.0
    limits.let_out(110.0, 100)
    limits.note(111.0, 110.0, [Limit("tokens", 1000.0, 600.0, 59.0)], 1, ok=True)
    limits.ended(110.0)
    assert limits.wait(111.0, 0, 150) == 0.0
    assert limits.wait(111.0, 0, 151) > 111.0
    assert limits.wait(111.0, 0) == 0.0


def test_a_limit_in_spite_of_which_calls_succeed_is_ignored():
    """For ten minutes. The call that used the last of it is none in spite of it."""
    limits = noted(0.0, 60.0)
    limits.note(110.0, 99.5, [Limit("requests", None, 0.0, 50.0)], 1, ok=True)
    assert limits.wait(110.0, 0) == pytest.approx(160.0)
    limits.note(120.0, 115.0, [Limit("requests", None, 0.0, 40.0)], 1, ok=False)
    assert limits.wait(120.0, 0) == pytest.approx(160.0)
    limits.note(121.0, 115.0, [Limit("requests", None, 0.0, 39.0)], 1, ok=True)
    assert limits.wait(121.0, 0) == 0.0
    limits.let_out(121.0)
    limits.ended(121.0)
    limits.note(121.0 + IGNORED, 720.0, [Limit("requests", None, 0.0, 39.0)], 1, ok=True)
    assert limits.wait(121.0 + IGNORED, 0) > 0.0


def test_a_limit_that_moves_away_is_tried_after_a_minute():
    """One call is sent then, and the others wait for its answer."""
    limits, now, sent = noted(0.0, 59.0), 100.0, []
    while now < 170.0 and not sent:
        limits.note(now, 99.0, [Limit("requests", None, 0.0, 59.0)], 0, ok=False)
        if limits.wait(now, 0) == 0.0:
            limits.let_out(now)
            sent.append(now)
        now += 1.0
    assert sent
    assert sent[0] <= 100.0 + LONGEST + 1.0
    assert limits.wait(now, 1) > now


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["answer", "send", "end"]),
            st.floats(0.0, 40.0),
            st.floats(-5.0, 1e9) | st.just(0.0),
            st.floats(-10.0, 1e9),
            st.floats(0.0, 1e6),
        ),
        max_size=80,
    )
)
def test_whatever_a_peer_writes_a_call_waits_at_most_a_minute_for_the_first_try(steps):
    """Every wait is bounded, and so is the memory."""
    limits, now = Published(), 0.0
    for kind, passed, remaining, reset, size in steps:
        now += passed
        if kind == "answer":
            limits.note(
                now, now - 1.0, [Limit("tokens", remaining, remaining, reset)], len(limits.times), ok=True
            )
        elif kind == "send":
            due = limits.wait(now, len(limits.times), size)
            assert due == 0.0 or now < due <= now + LONGEST
            if not due:
                limits.let_out(now, size)
        elif limits.times:
            limits.ended(limits.times[-1])
    for number in range(40):
        limits.note(now, now, [Limit(str(number), 1.0, 1.0, 1.0)], 0, ok=True)
    assert len(limits.shown(now)) <= 16
    assert limits.wait(now + LONGEST + 1, 0) < inf


def test_an_upstream_obeys_what_an_answer_published(clock):
    """Before a call is refused. A limit of more than a minute is paced."""
    upstream = Upstream("models")
    upstream.note_limits([Limit("requests", 40.0, 0.0, 30.0)], clock.now(), clock.now())
    began = clock.now()
    assert recover(lambda: "ok", upstream=upstream, operation=Operation(size=100)) == "ok"
    assert clock.now() == pytest.approx(began + 30.0, abs=0.1)
    upstream.note_limits([Limit("requests", 40.0, 0.0, 30.0)], clock.now(), clock.now())
    assert not upstream.ready(clock.now())
    upstream.reset()
    assert upstream.ready(clock.now())
    for _ in range(50):
        upstream.succeeded(clock.now(), clock.now())
    upstream.note_limits([Limit("requests", 40.0, 5.0, 600.0)], clock.now(), clock.now())
    assert upstream.snapshot().pace is not None
