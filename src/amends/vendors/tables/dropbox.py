"""Dropbox."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, DISABLED, EXPIRED, IN_PROGRESS, NOT_FOUND, QUOTA, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="dropbox",
    title="Dropbox",
    docs="https://www.dropbox.com/developers/documentation/http/documentation#error-handling",
    words=words(
        (RATE, "too_many_requests"),
        (IN_PROGRESS, "too_many_write_operations"),
        (EXPIRED, "expired_access_token"),
        (BAD_KEY, "invalid_access_token"),
        (QUOTA, "insufficient_space insufficient_quota_for_team"),
        (NOT_FOUND, "not_found"),
        (DISABLED, "user_suspended"),
    ),
    headers=("x-dropbox-request-id", "x-dropbox-response-origin"),
)
