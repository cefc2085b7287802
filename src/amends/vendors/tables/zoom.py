"""Zoom."""

from __future__ import annotations

from amends.vendors.kinds import EXPIRED, FORBIDDEN, INVALID, NOT_FOUND, QUOTA, RATE, STEP_UP
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="zoom",
    title="Zoom",
    docs="https://developers.zoom.us/docs/api/using-zoom-apis/",
    words=words(
        (QUOTA, "DAILY-LIMIT Daily-limit"),
        (RATE, "QPS Per-second-limit"),
        (EXPIRED, "124 4700"),
        (STEP_UP, "4711"),
        (NOT_FOUND, "1001 3001"),
        (FORBIDDEN, "200 1010"),
        (INVALID, "300"),
    ),
    headers=("x-zm-trackingid", "x-zm-zoneid", "x-ratelimit-type"),
    numbers=True,
)
