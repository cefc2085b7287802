"""Salesforce."""

from __future__ import annotations

from amends.vendors.kinds import (
    ABORTED,
    BAD_KEY,
    CONFLICT,
    DISABLED,
    EXPIRED,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    QUOTA,
    TIMEOUT,
    TOO_LARGE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="salesforce",
    title="Salesforce",
    docs="https://developer.salesforce.com/docs/atlas.en-us.api.meta/api/sforce_api_calls_concepts_core_data_objects.htm",
    words=words(
        # The limit of 24 hours. Too many concurrent calls have the same word, and only the prose differs.
        (QUOTA, "REQUEST_LIMIT_EXCEEDED STORAGE_LIMIT_EXCEEDED LIMIT_EXCEEDED ExceededQuota"),
        (UNAVAILABLE, "SERVER_UNAVAILABLE"),
        (ABORTED, "UNABLE_TO_LOCK_ROW"),
        (EXPIRED, "INVALID_SESSION_ID sf:INVALID_SESSION_ID InvalidSessionId"),
        (BAD_KEY, "INVALID_LOGIN sf:INVALID_LOGIN INVALID_AUTH_HEADER LOGIN_MUST_USE_SECURITY_TOKEN"),
        (
            FORBIDDEN,
            "INSUFFICIENT_ACCESS INSUFFICIENT_ACCESS_OR_READONLY INSUFFICIENT_ACCESS_ON_CROSS_REFERENCE_ENTITY",
        ),
        (
            DISABLED,
            "API_DISABLED_FOR_ORG API_CURRENTLY_DISABLED ORGANIZATION_NOT_FOUND INACTIVE_OWNER_OR_USER",
        ),
        (CONFLICT, "DUPLICATES_DETECTED DUPLICATE_VALUE ENTITY_IS_DELETED ENTITY_IS_LOCKED"),
        (FORBIDDEN, "TXN_SECURITY_METERING_ERROR"),
        (NOT_FOUND, "INVALID_CROSS_REFERENCE_KEY"),
        (TOO_LARGE, "EXCEEDED_ID_LIMIT STRING_TOO_LONG QUERY_TOO_COMPLICATED"),
        (
            INVALID,
            "MALFORMED_QUERY MALFORMED_ID INVALID_FIELD INVALID_TYPE REQUIRED_FIELD_MISSING JSON_PARSER_ERROR",
        ),
        (INVALID, "FIELD_CUSTOM_VALIDATION_EXCEPTION FIELD_INTEGRITY_EXCEPTION"),
        (TIMEOUT, "QUERY_TIMEOUT"),
        (INTERNAL, "UNKNOWN_EXCEPTION"),
    ),
    headers=("sforce-limit-info", "sforce-locator"),
)
