"""Moonshot AI (Kimi)."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, NOT_FOUND, OVERLOADED, QUOTA, RATE
from amends.vendors.model import Vendor, words
from amends.vendors.routes import GENERATION

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="moonshot",
    title="Moonshot AI (Kimi)",
    docs="https://platform.moonshot.ai/docs/api/errors",
    words=words(
        (QUOTA, "exceeded_current_quota_error"),
        (OVERLOADED, "engine_overloaded_error"),
        (RATE, "rate_limit_reached_error"),
        (BAD_KEY, "invalid_authentication_error incorrect_api_key_error"),
        (NOT_FOUND, "resource_not_found_error"),
    ),
    headers=("msh-request-id", "msh-uid"),
    computes=GENERATION,
)
