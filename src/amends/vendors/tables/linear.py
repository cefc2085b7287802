"""Linear."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, FORBIDDEN, IN_PROGRESS, INVALID, QUOTA, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="linear",
    title="Linear",
    docs="https://linear.app/developers/rate-limiting",
    words=words(
        (RATE, "RATELIMITED ratelimited"),
        (QUOTA, "USAGE_LIMIT_EXCEEDED"),
        (BAD_KEY, "AUTHENTICATION_ERROR"),
        (FORBIDDEN, "FEATURE_NOT_ACCESSIBLE"),
        (INVALID, "INPUT_ERROR INVALID_INPUT"),
        (IN_PROGRESS, "LOCK_TIMEOUT"),
    ),
    headers=("x-ratelimit-requests-limit", "x-ratelimit-complexity-limit", "x-complexity"),
)
