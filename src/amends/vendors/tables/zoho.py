"""Zoho."""

from __future__ import annotations

from amends.vendors.kinds import CONFLICT, FORBIDDEN, INVALID, QUOTA, STEP_UP
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="zoho",
    title="Zoho",
    docs="https://www.zoho.com/crm/developer/docs/api/v7/status-codes.html",
    words=words(
        (INVALID, "MANDATORY_NOT_FOUND INVALID_DATA INVALID_MODULE INVALID_URL_PATTERN"),
        (CONFLICT, "DUPLICATE_DATA"),
        (STEP_UP, "OAUTH_SCOPE_MISMATCH"),
        (FORBIDDEN, "NO_PERMISSION"),
        (QUOTA, "LICENSE_LIMIT_EXCEEDED"),
    ),
)
