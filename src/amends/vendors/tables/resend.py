"""Resend."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, CONFLICT, IN_PROGRESS, INVALID, QUOTA, RATE
from amends.vendors.model import Key, Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="resend",
    title="Resend",
    docs="https://resend.com/docs/api-reference/errors",
    words=words(
        (RATE, "rate_limit_exceeded"),
        (QUOTA, "daily_quota_exceeded monthly_quota_exceeded"),
        (BAD_KEY, "missing_api_key restricted_api_key invalid_api_key"),
        (IN_PROGRESS, "concurrent_idempotent_requests"),
        (CONFLICT, "invalid_idempotent_request"),
        (INVALID, "missing_required_field invalid_from_address invalid_attachment invalid_idempotency_key"),
    ),
    keys=Key(header="Idempotency-Key", hours=24),
)
