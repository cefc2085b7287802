"""The use of a received wait."""

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
