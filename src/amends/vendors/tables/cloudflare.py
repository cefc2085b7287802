"""Cloudflare."""

from __future__ import annotations

from msgspec.structs import replace

from amends.vendors.kinds import (
    BAD_KEY,
    INTERNAL,
    NOT_FOUND,
    OVERLOADED,
    PERMANENT,
    QUOTA,
    RATE,
    TIMEOUT,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="cloudflare",
    title="Cloudflare",
    docs="https://developers.cloudflare.com/support/troubleshooting/http-status-codes/",
    words=words(
        # Pages and documents of the edge.
        (RATE, "1015"),
        (QUOTA, "1027"),
        (PERMANENT, "1000 1002 1003 1004 1005 1006 1007 1008 1009 1010 1011 1012 1013 1014 1020 1023 1034"),
        (UNAVAILABLE, "1016 1018 1033 1200"),
        (INTERNAL, "1101 1102"),
        # The API and Workers AI.
        (replace(RATE, wait=300.0), "971 10429"),
        (OVERLOADED, "3040"),
        (QUOTA, "3036 4006"),
        (TIMEOUT, "3007"),
        (NOT_FOUND, "7003 5007 1001"),
        (BAD_KEY, "10000 9109 6003 9106"),
        (INTERNAL, "10013"),
    ),
    headers=("cf-auditlog-id", "api-version-cloudflare"),
    numbers=True,
)
