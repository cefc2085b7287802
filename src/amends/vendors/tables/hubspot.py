"""HubSpot."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, CONFLICT, DISABLED, EXPIRED, NOT_FOUND, QUOTA, RATE, STEP_UP
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="hubspot",
    title="HubSpot",
    docs="https://developers.hubspot.com/docs/api-reference/error-handling",
    words=words(
        (QUOTA, "DAILY"),
        (RATE, "TEN_SECONDLY_ROLLING SECONDLY ROLLING RATE_LIMITS RATE_LIMIT TEN_SECONDLY"),
        (EXPIRED, "EXPIRED_AUTHENTICATION"),
        (BAD_KEY, "INVALID_AUTHENTICATION"),
        (STEP_UP, "MISSING_SCOPES"),
        (DISABLED, "BANNED"),
        (NOT_FOUND, "OBJECT_NOT_FOUND"),
        (CONFLICT, "OBJECT_ALREADY_EXISTS"),
    ),
    headers=("x-hubspot-correlation-id", "x-hubspot-ratelimit-"),
)
