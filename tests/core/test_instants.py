"""Waits as services write them."""

import doctest

import pytest

from amends.core import instants
from amends.core.instants import (
    IMPOSSIBLE,
    bounded,
    date,
    duration,
    is_instant,
    number,
    seconds_since_epoch,
)


def test_its_examples():
    """The examples in the docstrings hold."""
    assert doctest.testmod(instants).failed == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", 7.0),
        ("-1.5e2", -150.0),
        ("1" * 32, float("1" * 32)),
        ("1" * 33, None),
        ("", None),
        (None, None),
        ("1_0", None),
        ("nan", None),
        ("1e999", None),
        ("-", None),
    ],
)
def test_numbers(text, expected):
    """Plain finite numbers of up to 32 characters are read."""
    assert number(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1s", 1.0),
        ("2m", 120.0),
        ("1h", 3600.0),
        ("1d", 86400.0),
        ("250ms", 0.25),
        ("5us", 5e-6),
        ("5µs", 5e-6),
        ("5ns", 5e-9),
        ("1h2m3.5s", 3723.5),
        ("1m250ms", 60.25),
        ("P1D", 86400.0),
        ("PT2H", 7200.0),
        ("P1DT1H1M1.5S", 90061.5),
        ("P", None),
        ("PT", None),
        ("s", None),
        ("5", None),
        ("0" * 31 + "s", 0.0),
        ("0" * 32 + "s", None),
        ("1 s", None),
    ],
)
def test_durations(text, expected):
    """Durations with units, and ISO 8601 durations without months and years."""
    found = duration(text)
    assert found == (None if expected is None else pytest.approx(expected))


def test_instants():
    """A number above 10**9 is an instant, in seconds, milliseconds or microseconds."""
    assert not is_instant(10**9)
    assert is_instant(10**9 + 1)
    assert seconds_since_epoch(1_700_000_000) == 1_700_000_000
    assert seconds_since_epoch(10**11) == 10**11
    assert seconds_since_epoch(1_700_000_000_000) == 1_700_000_000
    assert seconds_since_epoch(10**14) == 10**11
    assert seconds_since_epoch(1_700_000_000_000_000) == 1_700_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-01", 1704067200.0),
        ("2024-01-01 00:00:00 UTC", 1704067200.0),
        ("2024-01-01 00:00:00 GMT", 1704067200.0),
        ("2024-01-01T01:00:00+01:00", 1704067200.0),
        ("Mon, 01 Jan 2024 00:00:00 -0000", 1704067200.0),
        ("2024-13-01", None),
        ("soon", None),
        ("", None),
        ("2024-01-01" + " " * 55, None),
    ],
)
def test_dates(text, expected):
    """A date without a zone is UTC."""
    assert date(text) == expected


@pytest.mark.parametrize(
    ("wait", "expected"),
    [(None, None), (-0.1, None), (0, 0), (5.0, 5.0), (IMPOSSIBLE, IMPOSSIBLE), (IMPOSSIBLE + 1, None)],
)
def test_bounds(wait, expected):
    """A wait that is negative or longer than a century counts as absent."""
    assert bounded(wait) == expected
    assert IMPOSSIBLE == 100 * 366 * 24 * 3600


def test_the_unit_of_an_epoch_is_told_by_its_size():
    """Milliseconds of this century are above 10**12; a number below is seconds, of a time that cannot be meant."""
    assert seconds_since_epoch(253_402_300_799) == 253_402_300_799
    assert seconds_since_epoch(10**12) == 10**12
    assert seconds_since_epoch(1_704_067_200_500) == 1_704_067_200.5
    assert seconds_since_epoch(10**14) == 10**11
    assert seconds_since_epoch(1_704_067_200_500_000) == 1_704_067_200.5
    assert seconds_since_epoch(10**17) == 10**11
    assert seconds_since_epoch(1_704_067_200_500_000_000) == 1_704_067_200.5
