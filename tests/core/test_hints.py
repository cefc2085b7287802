"""Bounds of received waits."""

from math import inf, nan

import pytest

from amends.core.hints import finite, usable


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
def test_hints_are_bounded_by_vocabulary(value, adcp, elsewhere):
    """
    Design section 8: AdCP's are rounded up and clamped to 1–3600; others may be fractions, and negative ones are
    ignored.
    """
    assert usable("adcp", value) == adcp
    assert usable("http", value) == elsewhere


@pytest.mark.parametrize(
    ("value", "number"),
    [(1, 1), (1.5, 1.5), (True, None), ("5", None), (nan, None), (inf, None), (10**400, None), (None, None)],
)
def test_only_finite_numbers_are_numbers(value, number):
    """10**400 is Infinity to other JSON readers."""
    assert finite(value) == number
