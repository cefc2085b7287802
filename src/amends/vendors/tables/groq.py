"""Groq."""

from __future__ import annotations

from amends.vendors.kinds import DISABLED, INVALID, NOT_FOUND, OVERLOADED, QUOTA, RATE, TOO_LARGE
from amends.vendors.model import Vendor, words
from amends.vendors.routes import CHAT

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="groq",
    title="Groq",
    docs="https://console.groq.com/docs/errors",
    words=words(
        ({413: TOO_LARGE, 0: RATE}, "rate_limit_exceeded"),
        (NOT_FOUND, "model_decommissioned model_not_active"),
        (INVALID, "json_validate_failed tool_use_failed"),
        (QUOTA, "blocked_api_access spend_limit_reached"),
        (DISABLED, "organization_restricted"),
        (OVERLOADED, "over_capacity capacity_exceeded flex_tier_capacity_exceeded"),
    ),
    statuses={498: OVERLOADED},
    headers=("x-groq-region",),
    computes=CHAT,
)
