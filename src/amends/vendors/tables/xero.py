"""Xero."""

from __future__ import annotations

from amends.vendors.kinds import QUOTA, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="xero",
    title="Xero",
    docs="https://developer.xero.com/documentation/guides/oauth2-limits/limits",
    # The header x-rate-limit-problem.
    words=words((QUOTA, "day"), (RATE, "minute concurrent appminute")),
    headers=("xero-correlation-id", "x-rate-limit-problem"),
)
