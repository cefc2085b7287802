"""How waits grow, and in which direction jitter changes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amends.core.backoff import Backoff, BackoffKind


@pytest.mark.parametrize(
    ("kind", "waits"),
    [("exponential", [1, 2, 4, 8]), ("linear", [1, 2, 3, 4]), ("constant", [1, 1, 1, 1])],
)
def test_each_kind_grows_its_own_way(kind, waits):
    """T7: 1, 2, 4 s for exponential; 1, 2, 3 s for linear."""
    assert [Backoff(kind=kind).wait(retry) for retry in (1, 2, 3, 4)] == waits


def test_no_wait_is_longer_than_the_cap():
    """The cap also applies after very many retries, where the growth would overflow."""
    assert Backoff().wait(7) == 60
    assert Backoff().wait(10_000) == 60


@given(
    wait=st.floats(0, 3600),
    spread=st.floats(0, 1),
    draw=st.floats(0, 1, exclude_max=True),
    kind=st.sampled_from(list(BackoffKind)),
)
def test_jitter_shortens_own_waits_and_lengthens_hints(wait, spread, draw, kind):
    """Jitter stays within the spread: below a wait of our own, above one that was asked for."""
    backoff = Backoff(kind=kind, spread=spread)
    assert wait * (1 - spread) - 1e-9 <= backoff.jitter(wait, draw) <= wait
    assert wait <= backoff.above(wait, draw) <= wait + min(spread * wait, max(0.25, wait / 10)) + 1e-9


def test_without_a_draw_there_is_no_jitter():
    """Without a random number a wait does not change."""
    assert Backoff().jitter(4, None) == 4
    assert Backoff().above(4, None) == 4


def test_a_short_hint_is_spread_over_a_quarter_second():
    """A tenth of a one-second hint would not spread clients far enough."""
    assert Backoff().above(1.0, 1.0) == 1.25


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "fibonacci"},
        {"first": -1},
        {"cap": -1},
        {"spread": 1.5},
        {"first": float("inf")},
        {"cap": float("nan")},
    ],
)
def test_impossible_values_raise(wrong):
    """The constructor checks its values, because no later code does."""
    with pytest.raises(ValueError):
        Backoff(**wrong)
