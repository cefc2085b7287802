"""Tests of `allowance`: the calls that an answer still allows."""

import pytest

from amends.carriers.limits import allowance

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"ratelimit": '"default";r=50;t=30'}, (50, 30.0)),
        ({"ratelimit": "limit=100, remaining=7, reset=20"}, (7, 20.0)),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "5"}, (0, 5.0)),
        ({"x-ratelimit-remaining": "9", "x-ratelimit-reset": f"{NOW + 90:.0f}"}, (9, 90.0)),
        ({"ratelimit": '"a";r=1;t=1', "x-ratelimit-remaining": "3", "x-ratelimit-reset": "60"}, (3, 60.0)),
        (
            {
                "ratelimit-remaining": "100",
                "ratelimit-reset": "60",
                "x-ratelimit-remaining": " 3",
                "x-ratelimit-reset": " 1",
            },
            (100, 60.0),
        ),
        ({}, None),
        ({"x-ratelimit-remaining": "9"}, None),
        ({"x-ratelimit-remaining": "9", "x-ratelimit-reset": "6m0s"}, (9, 360.0)),
        ({"x-ratelimit-remaining": "9", "x-ratelimit-reset": "soon"}, None),
        ({"x-ratelimit-remaining": "9", "x-ratelimit-reset": "90000"}, None),
        (
            {
                "x-ratelimit-remaining": "9",
                "x-ratelimit-reset": f"{NOW:.0f}",
                "date": "Tue, 14 Nov 2023 22:13:10 GMT",
            },
            (9, 10.0),
        ),
        ({"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "5"}, None),
        ({"x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "1m5s"}, (9, 65.0)),
        (
            {
                "anthropic-ratelimit-requests-remaining": "2",
                "anthropic-ratelimit-requests-reset": "2023-11-14T22:13:50Z",
            },
            (2, 30.0),
        ),
        ({"x-ratelimit-remaining": "-1", "x-ratelimit-reset": "5"}, None),
        ({"x-ratelimit-remaining": "9", "x-ratelimit-reset": f"{NOW - 5:.0f}"}, None),
        ({"x-ratelimit-remaining": "9", "x-ratelimit-reset": "1700000000000"}, None),
        ({"x-ratelimit-remaining": "nan", "x-ratelimit-reset": "1e9"}, None),
        ({"ratelimit": ";" * 5000}, None),
        ({"ratelimit": "r=;t=,\ud800;;="}, None),
        ({"ratelimit": 3, "x-ratelimit-remaining": 4, "x-ratelimit-reset": None}, None),
    ],
)
def test_allowance(headers, expected):
    """A value that cannot be read, is over, or lasts longer than a day counts as none."""
    assert allowance(headers, NOW) == expected
