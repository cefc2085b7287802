"""Vercel."""

from __future__ import annotations

from amends.vendors.kinds import DISABLED, QUOTA, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="vercel",
    title="Vercel",
    docs="https://vercel.com/docs/rest-api/reference/errors",
    words=words(
        (RATE, "rate_limited"),
        (QUOTA, "payment_required api_limit_exceeded_upgrade"),
        (DISABLED, "account_blocked team_suspended"),
    ),
    headers=("x-vercel-id", "x-vercel-error"),
)
