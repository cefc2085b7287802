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
    seconds_of,
    seconds_since_epoch,
    until,
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
    [
        (None, None),
        (-0.1, None),
        (0, 0),
        (5.0, 5.0),
        (IMPOSSIBLE, IMPOSSIBLE),
        (IMPOSSIBLE + 1, IMPOSSIBLE),
        (float("inf"), IMPOSSIBLE),
        (float("nan"), None),
    ],
)
def test_bounds(wait, expected):
    """A negative wait counts as absent, one of more than a century as a century."""
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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", None),
        ("s", None),
        ("5s", 5.0),
        ("5ms", 0.005),
        ("7us", 7e-6),
        ("7µs", 7e-6),
        ("7ns", 7e-9),
        ("2m", 120.0),
        ("2h", 7200.0),
        ("1.5d", 129600.0),
        ("1d2h3m4s5ms", 86400 + 7200 + 180 + 4.005),
        ("1" * 31 + "s", float("1" * 31)),
        ("1" * 32 + "s", None),
        ("1x", None),
        ("P1D", 86400.0),
        ("PT2H", 7200.0),
        ("P1DT1H1M1.5S", 86400 + 3600 + 60 + 1.5),
        ("P", None),
        ("PT", None),
        ("00:00:05", 5.0),
        ("01:02:03.5", 3723.5),
        ("2.01:00:00", 2 * 86400 + 3600.0),
        ("00:60:00", None),
    ],
)
def test_the_units_of_durations(text, seconds):
    """Units from nanoseconds to days, ISO 8601 and .NET's clock; at most 32 characters."""
    assert duration(text) == (None if seconds is None else pytest.approx(seconds))


def test_which_numbers_are_instants():
    """Above 10⁹ seconds, 10¹² milliseconds, 10¹⁴ microseconds, 10¹⁷ nanoseconds."""
    assert [is_instant(each) for each in (10**9, 10**9 + 1)] == [False, True]
    for value, seconds in (
        (1_700_000_000, 1_700_000_000),
        (10**12, 10**12),
        (1_700_000_000_000, 1_700_000_000),
        (10**14, 10**11),
        (1_700_000_000_000_000, 1_700_000_000),
        (10**17, 10**11),
        (1_700_000_000_000_000_000, 1_700_000_000),
    ):
        assert seconds_since_epoch(value) == seconds


def test_the_longest_wait_is_a_century():
    """A longer one is cut to it, and a negative one counts as absent."""
    century = 100 * 366 * 86400.0
    assert [bounded(each) for each in (None, 0, century, century + 1, -0.1)] == [
        None,
        0,
        century,
        century,
        None,
    ]


@pytest.mark.parametrize(
    ("text", "headers", "seconds"),
    [
        ("7", {}, 7.0),
        ("0", {}, 0.0),
        ("-7", {}, None),
        ("7s", {}, 7.0),
        ("9" * 31, {}, IMPOSSIBLE),
        ("9" * 32, {}, IMPOSSIBLE),
        ("9" * 33, {}, IMPOSSIBLE),
        ("٩" * 33, {}, None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", {}, IMPOSSIBLE),
        ("1700000060", {}, 60.0),
        ("1699999999", {}, None),
        ("1699999999", {"date": "Tue, 14 Nov 2023 22:14:00 GMT"}, 0.0),
        ("1700000060000", {}, 60.0),
        ("2023-11-14T22:14:20Z", {}, 60.0),
        ("2023-11-14 22:14:20 UTC", {}, 60.0),
        ("2023-11-14T22:14:20", {}, 60.0),
        ("Tue, 14 Nov 2023 22:14:20 GMT", {}, 60.0),
        ("1700000060", {"date": "Tue, 14 Nov 2023 22:14:00 GMT"}, 20.0),
        ("1700000060", {"date": "no date"}, 60.0),
        ("soon", {}, None),
        ("", {}, None),
    ],
)
def test_what_a_text_asks_to_wait(text, headers, seconds):
    """A number, a duration or a point in time, by the sender's clock if it is known; never negative."""
    assert seconds_of(text, headers, lambda: 1_700_000_000.0) == seconds


def test_a_point_in_time_needs_a_clock():
    """Without one, and without the sender's date, the wait is not known."""
    assert until(100.0, {}, None) is None
    assert until(100.0, {}, lambda: 40.0) == 60.0
    assert seconds_of("1700000060", {}, None) is None


def test_dates_of_other_lengths():
    """At most 64 characters."""
    assert date("") is None
    assert date("2024-01-01T00:00:00." + "0" * 45) is None
    assert date("2024-13-01") is None
    assert date("2024-01-01") == 1704067200.0
    assert date("Mon, 01 Jan 2024 00:00:00" + " " * 36 + "GMT") == 1704067200.0
    assert date("Mon, 01 Jan 2024 00:00:00" + " " * 37 + "GMT") is None
