"""Meta Graph API and WhatsApp."""

from __future__ import annotations

from amends.vendors.kinds import CONFLICT, DISABLED, EXPIRED, FORBIDDEN, INVALID, QUOTA, RATE, UNAVAILABLE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="meta",
    title="Meta Graph API and WhatsApp",
    docs="https://developers.facebook.com/docs/graph-api/guides/error-handling",
    words=words(
        (
            RATE,
            "4 17 32 341 613 80000 80001 80002 80003 80004 80005 80006 80008 80009 80014 130429 131056 131048",
        ),
        (UNAVAILABLE, "1 2 131016"),
        (EXPIRED, "190 102 463 467"),
        (FORBIDDEN, "10 200 294 3 131005"),
        (DISABLED, "368 131031"),
        (INVALID, "100 131008 131009"),
        (QUOTA, "131042"),
        (CONFLICT, "506"),
    ),
    headers=("x-fb-trace-id", "x-fb-rev", "x-app-usage", "x-business-use-case-usage", "x-fb-debug"),
    numbers=True,
)
