"""Notion."""

from __future__ import annotations

from amends.vendors.kinds import ABORTED, BAD_KEY, FORBIDDEN, INVALID, NOT_FOUND, RATE, TIMEOUT, UNAVAILABLE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="notion",
    title="Notion",
    docs="https://developers.notion.com/reference/status-codes",
    words=words(
        (RATE, "rate_limited"),
        (ABORTED, "conflict_error"),
        (UNAVAILABLE, "service_unavailable database_connection_unavailable"),
        (TIMEOUT, "gateway_timeout"),
        (BAD_KEY, "unauthorized"),
        (FORBIDDEN, "restricted_resource"),
        (NOT_FOUND, "object_not_found"),
        (INVALID, "validation_error invalid_json invalid_request_url invalid_request missing_version"),
    ),
    headers=("x-notion-request-id",),
)
