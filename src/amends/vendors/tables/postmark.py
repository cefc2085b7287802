"""Postmark."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, FORBIDDEN, INVALID, NOT_FOUND, QUOTA, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="postmark",
    title="Postmark",
    docs="https://postmarkapp.com/developer/api/overview#error-codes",
    words=words(
        (BAD_KEY, "10"),
        (QUOTA, "405"),
        (FORBIDDEN, "406 400 401 412 413"),
        (INVALID, "300 402 403 411"),
        (NOT_FOUND, "701 1101"),
        (RATE, "429"),
    ),
    headers=("x-pm-",),
    numbers=True,
)
