"""QuickBooks."""

from __future__ import annotations

from amends.vendors.kinds import CONFLICT, EXPIRED, FORBIDDEN, INTERNAL, INVALID, NOT_FOUND, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="quickbooks",
    title="QuickBooks",
    docs="https://developer.intuit.com/app/developer/qbo/docs/develop/troubleshooting/error-codes",
    words=words(
        (RATE, "003001 3001"),
        (EXPIRED, "003200 3200"),
        (FORBIDDEN, "003100 3100"),
        (NOT_FOUND, "610"),
        (CONFLICT, "5010 6140 6240"),
        (INVALID, "2010 2020 2050 6000"),
        (INTERNAL, "10000"),
    ),
    headers=("intuit_tid", "qbo-version"),
    numbers=True,
)
