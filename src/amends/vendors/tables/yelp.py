"""Yelp."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, NOT_FOUND, QUOTA, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="yelp",
    title="Yelp",
    docs="https://docs.developer.yelp.com/docs/fusion-rate-limiting",
    words=words(
        (RATE, "TOO_MANY_REQUESTS_PER_SECOND"),
        (QUOTA, "ACCESS_LIMIT_REACHED"),
        (BAD_KEY, "TOKEN_INVALID TOKEN_MISSING"),
        (NOT_FOUND, "BUSINESS_NOT_FOUND LOCATION_NOT_FOUND"),
    ),
)
