"""The use of a received wait."""

from math import inf, nan

import pytest

from amends.core.hints import excluded, finite, usable


@pytest.mark.parametrize(
    ("value", "adcp", "elsewhere"),
    [
        (None, None, None),
        (5.2, 6.0, 5.2),
        (1.5, 2.0, 1.5),
        (0, 1.0, 0.0),
        (-5, 1.0, None),
        (86400, 3600.0, 3600.0),
        (nan, None, None),
        (inf, None, None),
    ],
)
def test_the_limits_of_a_hint_depend_on_the_vocabulary(value, adcp, elsewhere):
    """Design section 8: AdCP rounds up and clamps to 1–3600; elsewhere fractions are kept and a negative wait is None."""
    assert usable("adcp", value) == adcp
    assert usable("http", value) == elsewhere


@pytest.mark.parametrize(
    ("value", "number"),
    [(1, 1), (1.5, 1.5), (True, None), ("5", None), (nan, None), (inf, None), (10**400, None), (None, None)],
)
def test_only_finite_numbers_are_numbers(value, number):
    """Numbers that a double cannot represent, such as 10**400, are None."""
    assert finite(value) == number


def test_the_bounds_of_a_hint():
    """An hour is the longest; AdCP's shortest is a second."""
    for vocabulary, value, expected in (
        ("adcp", 3600, 3600.0),
        ("adcp", 3600.5, 3600.0),
        ("adcp", 1, 1.0),
        ("adcp", 1.1, 2.0),
        ("adcp", 0.2, 1.0),
        ("http", 3600, 3600.0),
        ("http", 3600.5, 3600.0),
        ("http", 0.2, 0.2),
        ("http", 0, 0.0),
    ):
        found = usable(vocabulary, value)
        assert (found, type(found)) == (expected, float)


def test_what_a_wait_does_not_prove():
    """Time-outs, internal errors, cancellations and unknown effects may have had their effect; so may an intent."""
    for code in ("TIMEOUT", "INTERNAL_ERROR", "CANCELLED", "HEARTBEAT_LOST", "EFFECT_UNKNOWN"):
        assert excluded(code)
    for status in (200, 408, 499, 500, 502, 504, 507, 520, 522, 524, 530, 599):
        assert excluded("X", status)
    for status in (None, 407, 409, 429, 503, 521, 529):
        assert not excluded("RATE_LIMITED", status)
    assert excluded("RATE_LIMITED", 429, intent=True)
