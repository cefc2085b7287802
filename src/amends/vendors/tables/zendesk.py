"""Zendesk."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, CONFLICT, IN_PROGRESS, INVALID, NOT_FOUND, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="zendesk",
    title="Zendesk",
    docs="https://developer.zendesk.com/api-reference/introduction/requests/",
    words=words(
        (RATE, "APIRateLimitExceeded"),
        (NOT_FOUND, "RecordNotFound InvalidEndpoint"),
        (INVALID, "RecordInvalid InvalidValue BlankValue"),
        (CONFLICT, "RecordDuplicate UpdateConflict"),
        (IN_PROGRESS, "DatabaseConflict"),
        (BAD_KEY, "Couldn't_authenticate_you"),
    ),
    headers=("x-zendesk-request-id", "x-zendesk-api-version", "zendesk-ratelimit-"),
)
