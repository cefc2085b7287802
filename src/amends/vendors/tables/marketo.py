"""Adobe Marketo Engage."""

from __future__ import annotations

from amends.vendors.kinds import (
    EXPIRED,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    QUOTA,
    RATE,
    TIMEOUT,
    TOO_LARGE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="marketo",
    title="Adobe Marketo Engage",
    docs="https://experienceleague.adobe.com/en/docs/marketo-developer/marketo/rest/error-codes",
    words=words(
        (RATE, "606 615"),
        # 1029: the quota of a day for exports, or too many jobs in the queue.
        (QUOTA, "607 1029"),
        (EXPIRED, "601 602"),
        (FORBIDDEN, "603"),
        (TIMEOUT, "604"),
        (UNAVAILABLE, "608 713"),
        (NOT_FOUND, "610 702 1004 1013"),
        (INVALID, "609 612 701 1001 1002 1003 1006"),
        (INTERNAL, "611"),
        (TOO_LARGE, "413 414"),
    ),
    numbers=True,
)
