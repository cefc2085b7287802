"""Amazon Selling Partner API."""

from __future__ import annotations

from amends.vendors.kinds import EXPIRED, INVALID, RATE, UNAVAILABLE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="amazon-sp",
    title="Amazon Selling Partner API",
    docs="https://developer-docs.amazon.com/sp-api/docs/response-format",
    words=words(
        ({429: RATE}, "QuotaExceeded"),
        (EXPIRED, "Unauthorized"),
        (INVALID, "InvalidInput"),
        (UNAVAILABLE, "InternalFailureTemporarilyUnavailable"),
    ),
)
