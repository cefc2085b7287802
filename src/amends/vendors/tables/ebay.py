"""eBay."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, FORBIDDEN, INTERNAL, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="ebay",
    title="eBay",
    docs="https://developer.ebay.com/api-docs/static/handling-error-messages.html",
    words=words((RATE, "2001"), (BAD_KEY, "1001 1002"), (FORBIDDEN, "1100"), (INTERNAL, "2003")),
    headers=("x-ebay-c-request-id", "x-ebay-request-id"),
    numbers=True,
)
