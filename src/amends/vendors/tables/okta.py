"""Okta."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    FORBIDDEN,
    IN_PROGRESS,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    QUOTA,
    RATE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="okta",
    title="Okta",
    docs="https://developer.okta.com/docs/reference/error-codes/",
    words=words(
        (RATE, "E0000047"),
        (IN_PROGRESS, "E0000254"),
        (BAD_KEY, "E0000011 E0000004 E0000005"),
        (FORBIDDEN, "E0000006"),
        (NOT_FOUND, "E0000007 E0000008 E0000022"),
        (INVALID, "E0000001 E0000003 E0000021"),
        (INTERNAL, "E0000009"),
        (UNAVAILABLE, "E0000010"),
        (QUOTA, "E0000098"),
    ),
    headers=("x-okta-request-id",),
)
