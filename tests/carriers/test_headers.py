"""Waits and verdicts in response headers: every form, its bounds, and precedence."""

from types import MappingProxyType

import pytest

from amends.carriers.headers import lower_names, verdict, wait
from amends.core.instants import IMPOSSIBLE

NOON = 1_445_428_800.0
"""Wed, 21 Oct 2015 12:00:00 GMT."""
DATE = "Wed, 21 Oct 2015 12:00:00 GMT"


def seconds(now=None, **headers):
    """Return the wait of headers whose names are given with underscores."""
    clock = None if now is None else lambda: now
    return wait({name.replace("_", "-"): value for name, value in headers.items()}, clock)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Retry-After": "5"}, {"retry-after": "5"}),
        ({"RETRY-AFTER": " 5 "}, {"retry-after": "5"}),
        ({"Retry-After": 5}, {"retry-after": "5"}),
        ({"Retry-After": 5.5}, {"retry-after": "5.5"}),
        ({"Retry-After": ["5", "6"]}, {"retry-after": "5"}),
        ({"Retry-After": ("5",)}, {"retry-after": "5"}),
        ({b"Retry-After": b"5"}, {"retry-after": "5"}),
        ({"a": "1", "A": "2"}, {"a": "1"}),
        ({"a": True, "b": None, "c": {}, "d": [], 5: "e", "f": [None], "g": 10**5000}, {}),
        (None, {}),
        ([("Retry-After", "5"), ("retry-after", "6")], {"retry-after": "5"}),
        ([(b"retry-after", b"5"), ("a",), 5, "ab"], {"retry-after": "5"}),
        (MappingProxyType({"Retry-After": "5"}), {"retry-after": "5"}),
        ("Retry-After: 5", {}),
    ],
)
def test_names_in_lower_case_and_values_as_text(headers, expected):
    """Header names are case-insensitive; other values are left out."""
    assert lower_names(headers) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("5", 5.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("Infinity", None),
        ("1e999", None),
        ("1_0", None),
        ("", None),
        ("soon", None),
        ("5 seconds", None),
        ("--5", None),
        ("١", None),
        ("1" * 33, IMPOSSIBLE),
    ],
)
def test_seconds(value, expected):
    """P3: Retry-After in seconds; float() accepts more than that."""
    assert seconds(retry_after=value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Wed, 21 Oct 2015 12:00:30 GMT", 30.0),
        ("Wed, 21 Oct 2015 14:00:30 +0200", 30.0),
        ("Wed, 21 Oct 2015 12:00:30", 30.0),
        ("Wed, 21 Oct 2015 12:00:30 -0000", 30.0),
        ("Wednesday, 21-Oct-15 12:00:30 GMT", 30.0),
        ("Wed, 21 Oct 2015 11:00:00 GMT", None),
        ("Wed, 99 Oct 2015 12:00:00 GMT", None),
        ("Wed, 21 Oct 99999 12:00:00 GMT", None),
        ("x" * 65, None),
    ],
)
def test_dates(value, expected):
    """P3: an HTTP date gives the seconds until then; without a zone it is UTC. Without `Date`, a past one says nothing."""
    assert seconds(NOON, retry_after=value) == expected


def test_the_senders_clock_before_ours():
    """The response's Date header takes precedence, because our clock may be wrong."""
    late = "Wed, 21 Oct 2015 12:00:30 GMT"
    assert seconds(NOON, retry_after="Wed, 21 Oct 2015 11:00:00 GMT", date=DATE) == 0.0
    assert seconds(0.0, retry_after=late, date=DATE) == 30.0
    assert seconds(None, retry_after=late, date=DATE) == 30.0
    assert seconds(NOON, retry_after=late, date="yesterday") == 30.0


def test_without_a_clock_a_date_is_ignored():
    """The clock is an argument."""
    assert seconds(None, retry_after="Wed, 21 Oct 2015 12:00:30 GMT") is None


def test_the_clock_is_called_only_when_needed():
    """A wait in seconds needs no clock."""

    def never():
        raise AssertionError

    assert wait({"retry-after": "5"}, never) == 5.0
    assert wait({}, never) is None
    assert wait({"retry-after": "Wed, 21 Oct 2015 12:00:30 GMT", "date": DATE}, never) == 30.0


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry_after_ms": "1500", "retry_after": "9"}, 1.5),
        ({"retry_after_ms": "1500", "grpc_retry_pushback_ms": "700"}, 1.5),
        ({"grpc_retry_pushback_ms": "700", "retry_after": "9"}, 0.7),
        ({"retry_after_ms": "0"}, 0.0),
        ({"retry_after_ms": "-1", "retry_after": "9"}, 9.0),
        ({"retry_after_ms": "soon", "retry_after": "9"}, 9.0),
        ({"grpc_retry_pushback_ms": "-1", "retry_after": "9"}, 9.0),
        (
            {
                "retry_after": "9",
                "ratelimit": '"a";r=0;t=30',
                "x_ratelimit_remaining": "0",
                "x_ratelimit_reset": "3",
            },
            9.0,
        ),
        ({"retry_after": "-9", "ratelimit": '"a";r=0;t=30'}, 30.0),
        ({"ratelimit": '"a";r=0;t=30', "x_ratelimit_remaining": "0", "x_ratelimit_reset": "3"}, 30.0),
        ({"x_ratelimit_remaining": "0", "x_ratelimit_reset": "3"}, 3.0),
    ],
)
def test_precedence(headers, expected):
    """Design 8: retry-after-ms, Retry-After, then RateLimit / x-ratelimit-reset."""
    assert seconds(NOON, **headers) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('"default";r=0;t=30', 30.0),
        ('"burst";r=0;t=5, "daily";r=0;t=60', 60.0),
        ('"burst";r=0;t=5, "daily";r=9;t=60', 5.0),
        ('"default";r=3;t=30', None),
        ('"default";t=30', None),
        ('"default";r=0', None),
        ('"default";r=0;t=-1', None),
        ('"default"; r=0 ; t=30 ', 30.0),
        ("limit=100, remaining=0, reset=30", 30.0),
        ("limit=100, remaining=3, reset=30", None),
        (";;;,,,===", None),
        ("", None),
    ],
)
def test_the_structured_rate_limit_field(value, expected):
    """Design 8: only if nothing remains; of several limits the longest counts."""
    assert seconds(ratelimit=value) == expected


@pytest.mark.parametrize("prefix", ["x_ratelimit_", "ratelimit_", "x_rate_limit_"])
@pytest.mark.parametrize(
    ("remaining", "reset", "expected"),
    [
        ("0", "30", 30.0),
        ("0", "0", 0.0),
        ("1", "30", None),
        (None, "30", None),
        ("0", None, None),
        ("0", "-5", None),
        ("0", "soon", None),
        ("0", "1445428830", 30.0),
        ("0", "1445420000", None),
    ],
)
def test_the_usual_rate_limit_headers(prefix, remaining, reset, expected):
    """Design 8: if the remaining count is 0; a reset is in seconds, or a point in time, as both are in use."""
    headers = {f"{prefix}remaining": remaining, f"{prefix}reset": reset}
    given = {name: value for name, value in headers.items() if value is not None}
    assert seconds(NOON, **given) == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"x-should-retry": "true"}, True),
        ({"x-should-retry": "FALSE"}, False),
        ({"x-should-retry": "maybe"}, None),
        ({"stripe-should-retry": "false"}, False),
        ({"x-should-retry": "1", "stripe-should-retry": "true"}, True),
        ({"x-should-retry": "false", "stripe-should-retry": "true"}, False),
        ({"grpc-retry-pushback-ms": "500"}, True),
        ({"grpc-retry-pushback-ms": "0"}, True),
        ({"grpc-retry-pushback-ms": "-1"}, False),
        ({"grpc-retry-pushback-ms": "soon"}, False),
        ({"grpc-retry-pushback-ms": ""}, False),
        ({"x-should-retry": "true", "stripe-should-retry": "false"}, False),
        ({"x-should-retry": "true", "grpc-retry-pushback-ms": "-1"}, False),
        ({"x-should-retry": "true", "grpc-retry-pushback-ms": "1"}, True),
        ({}, None),
    ],
)
def test_verdicts(headers, expected):
    """Design 8: three headers, and any "no" wins; gRPC's is "no" if negative or unreadable."""
    assert verdict(headers) is expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "6m0s"}, 360.0),
        ({"retry-after": "34.07s"}, 34.07),
        ({"retry-after": "PT30S"}, 30.0),
        ({"retry-after": "2015-10-21T12:00:30Z"}, 30.0),
        ({"retry-after": "1445428830"}, 30.0),
        ({"retry-after": "1445428830000"}, 30.0),
        ({"retry-after": "9999999999"}, IMPOSSIBLE),
        ({"x-ms-retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1445428830.5"}, 30.5),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1445428830000"}, 30.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "2015-10-21T12:01Z"}, 60.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9999999999"}, IMPOSSIBLE),
        (
            {
                "x-ratelimit-remaining": "0",
                "x-ratelimit-reset-after": "0.5",
                "x-ratelimit-reset": "1445428899",
            },
            0.5,
        ),
        (
            {
                "x-ratelimit-remaining-requests": "59",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            360.0,
        ),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2015-10-21T12:00:20Z",
                "anthropic-ratelimit-tokens-remaining": "5",
                "anthropic-ratelimit-tokens-reset": "2015-10-21T12:00:59Z",
            },
            20.0,
        ),
        ({"x-app-limit-24hour-remaining": "0", "x-app-limit-24hour-reset": "1445428890"}, 90.0),
        ({"zendesk-ratelimit-tickets-index": "total=100; remaining=0; resets=41"}, 41.0),
        ({"x-hubspot-ratelimit-remaining": "0", "x-hubspot-ratelimit-interval-milliseconds": "10000"}, 10.0),
        ({"ratelimit-limit": "100;w=21600", "ratelimit-remaining": "0;w=21600"}, None),
        (
            {
                "anthropic-ratelimit-unified-status": "rejected",
                "anthropic-ratelimit-unified-reset": "1445428830",
            },
            30.0,
        ),
    ],
)
def test_waits_as_services_write_them(headers, expected):
    """The exhausted limit counts, impossible values are dropped, milliseconds are not taken for seconds."""
    assert wait(headers, lambda: NOON) == expected
