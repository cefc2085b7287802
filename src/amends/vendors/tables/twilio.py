"""Twilio."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    DISABLED,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    QUOTA,
    RATE,
    TOO_LARGE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="twilio",
    title="Twilio",
    docs="https://www.twilio.com/docs/api/errors",
    words=words(
        (RATE, "20429 14107 54009 30022"),
        (QUOTA, "63038 30450"),
        (BAD_KEY, "20003 20104"),
        (DISABLED, "20005 10001 30002"),
        (NOT_FOUND, "20404 21608"),
        (FORBIDDEN, "20403 21610 21408"),
        (INVALID, "20001 21211 21212 21604 21602 21614 21606"),
        (TOO_LARGE, "21617 21605"),
        (INTERNAL, "20500"),
        (UNAVAILABLE, "20503"),
    ),
    headers=("twilio-request-id", "twilio-concurrent-requests", "twilio-request-duration"),
    numbers=True,
)
