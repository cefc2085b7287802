"""Limits in headers: which of them is exhausted, and for how long."""

import pytest

from amends import extract
from amends.carriers.limits import is_used_up


@pytest.mark.parametrize(
    ("headers", "used_up"),
    [
        ({"x-ratelimit-remaining-day": "0"}, True),
        ({"x-ratelimit-remaining-day": "0", "x-ratelimit-remaining-minute": "0"}, False),
        ({"x-ratelimit-remaining-day": "5", "x-ratelimit-remaining-minute": "0"}, False),
        ({"ratelimit": '"daily";r=0;t=3600, "burst";r=10;t=1'}, True),
        ({"ratelimit": '"daily";r=7;t=3600, "burst";r=0;t=1'}, False),
        ({"x-ratelimit-remaining": "0"}, False),
        ({}, False),
    ],
)
def test_a_limit_per_day_is_a_quota(headers, used_up):
    """Only if no shorter limit is exhausted too."""
    assert is_used_up(headers) is used_up
    fault = extract({"status": 429, "headers": headers, "body": ""})
    assert fault.code == ("QUOTA_EXCEEDED" if used_up else "RATE_LIMITED")


def test_a_header_with_usages_names_the_wait():
    usage = '{"1":[{"type":"ads_management","call_count":100,"estimated_time_to_regain_access":19}]}'
    fault = extract({"status": 400, "headers": {"x-business-use-case-usage": usage}, "body": {}})
    assert fault.retry_after == 1140
