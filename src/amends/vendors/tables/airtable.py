"""Airtable."""

from __future__ import annotations

from msgspec.structs import replace

from amends.vendors.kinds import BAD_KEY, FORBIDDEN, INVALID, NOT_FOUND, QUOTA, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="airtable",
    title="Airtable",
    docs="https://airtable.com/developers/web/api/errors",
    words=words(
        (replace(RATE, wait=30.0), "RATE_LIMIT_REACHED"),
        (QUOTA, "PUBLIC_API_BILLING_LIMIT_EXCEEDED"),
        (BAD_KEY, "AUTHENTICATION_REQUIRED"),
        (FORBIDDEN, "INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND INVALID_PERMISSIONS"),
        (NOT_FOUND, "MODEL_ID_NOT_FOUND TABLE_NOT_FOUND"),
        (
            INVALID,
            "INVALID_REQUEST_UNKNOWN INVALID_REQUEST_MISSING_FIELDS UNKNOWN_FIELD_NAME INVALID_VALUE_FOR_COLUMN",
        ),
    ),
    statuses={429: replace(RATE, wait=30.0)},
    headers=("x-airtable-has-uncaught-error", "airtable-uncaught-error"),
)
