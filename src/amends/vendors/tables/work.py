"""Notion, Atlassian, Salesforce, HubSpot, Zendesk, Linear, Airtable, Figma, Spotify, Dropbox, Box."""

from __future__ import annotations

from msgspec.structs import replace

from amends.vendors.kinds import (
    ABORTED,
    BAD_KEY,
    CONFLICT,
    DISABLED,
    EXPIRED,
    FORBIDDEN,
    IN_PROGRESS,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    QUOTA,
    RATE,
    STEP_UP,
    TIMEOUT,
    TOO_LARGE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDORS"]

NOTION = Vendor(
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

ATLASSIAN = Vendor(
    name="atlassian",
    title="Jira and Confluence",
    docs="https://developer.atlassian.com/cloud/jira/platform/rate-limiting/",
    words=words(
        (RATE, "jira-quota-global-based jira-quota-tenant-based jira-burst-based jira-per-issue-on-write"),
        (RATE, "jira-cost-based confluence-quota-tenant-based"),
    ),
    headers=("atl-traceid", "x-arequestid", "ratelimit-reason", "x-aaccountid"),
)

SALESFORCE = Vendor(
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

HUBSPOT = Vendor(
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

ZENDESK = Vendor(
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

LINEAR = Vendor(
    name="linear",
    title="Linear",
    docs="https://linear.app/developers/rate-limiting",
    words=words(
        (RATE, "RATELIMITED ratelimited"),
        (QUOTA, "USAGE_LIMIT_EXCEEDED"),
        (BAD_KEY, "AUTHENTICATION_ERROR"),
        (FORBIDDEN, "FEATURE_NOT_ACCESSIBLE"),
        (INVALID, "INPUT_ERROR INVALID_INPUT"),
        (IN_PROGRESS, "LOCK_TIMEOUT"),
    ),
    headers=("x-ratelimit-requests-limit", "x-ratelimit-complexity-limit", "x-complexity"),
)

AIRTABLE = Vendor(
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

FIGMA = Vendor(
    name="figma",
    title="Figma",
    docs="https://developers.figma.com/docs/rest-api/rate-limits/",
    headers=("x-figma-plan-tier", "x-figma-rate-limit-type", "x-figma-upgrade-link"),
)

SPOTIFY = Vendor(
    name="spotify",
    title="Spotify",
    docs="https://developer.spotify.com/documentation/web-api/concepts/api-calls",
    words=words((FORBIDDEN, "PREMIUM_REQUIRED"), (NOT_FOUND, "NO_ACTIVE_DEVICE")),
)

DROPBOX = Vendor(
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

BOX = Vendor(
    name="box",
    title="Box",
    docs="https://developer.box.com/guides/api-calls/permissions-and-errors/common-errors/",
    words=words(
        (QUOTA, "storage_limit_exceeded"),
        (CONFLICT, "item_name_in_use precondition_failed"),
        (IN_PROGRESS, "operation_blocked_temporary name_temporarily_reserved"),
        (FORBIDDEN, "access_denied_insufficient_permissions access_denied_item_locked"),
        (STEP_UP, "insufficient_scope"),
        (TOO_LARGE, "file_size_limit_exceeded"),
    ),
    headers=("box-request-id",),
)

MONDAY = Vendor(
    name="monday",
    title="monday.com",
    docs="https://developer.monday.com/api-reference/docs/error-handling",
    words=words(
        (
            RATE,
            "ComplexityException COMPLEXITY_BUDGET_EXHAUSTED maxConcurrencyExceeded IP_RATE_LIMIT_EXCEEDED",
        ),
        (RATE, "FIELD_MINUTE_RATE_LIMIT_EXCEEDED API_TEMPORARILY_BLOCKED Rate_Limit_Exceeded"),
        (QUOTA, "DAILY_LIMIT_EXCEEDED"),
        (FORBIDDEN, "USER_UNAUTHORIZED UserUnauthorizedException missingRequiredPermissions"),
        (NOT_FOUND, "ResourceNotFoundException InvalidBoardIdException"),
        (INVALID, "InvalidArgumentException InvalidColumnIdException ColumnValueException"),
    ),
)

CLICKUP = Vendor(
    name="clickup",
    title="ClickUp",
    docs="https://developer.clickup.com/docs/common_errors",
    words=words(
        (RATE, "APP_002"), (BAD_KEY, "OAUTH_017 OAUTH_019 OAUTH_025"), (FORBIDDEN, "OAUTH_023 OAUTH_027")
    ),
)

DOCUSIGN = Vendor(
    name="docusign",
    title="DocuSign",
    docs="https://developers.docusign.com/platform/resource-limits/",
    words=words(
        (RATE, "HOURLY_APIINVOCATION_LIMIT_EXCEEDED BURST_APIINVOCATION_LIMIT_EXCEEDED"),
        (BAD_KEY, "AUTHORIZATION_INVALID_TOKEN USER_AUTHENTICATION_FAILED PARTNER_AUTHENTICATION_FAILED"),
        (DISABLED, "ACCOUNT_HAS_BEEN_SUSPENDED USER_LACKS_MEMBERSHIP"),
        (QUOTA, "ENVELOPE_ALLOWANCE_EXCEEDED PLAN_ITEM_DISABLED"),
        (FORBIDDEN, "USER_LACKS_PERMISSIONS"),
        (NOT_FOUND, "ENVELOPE_DOES_NOT_EXIST TEMPLATE_ID_INVALID"),
        (IN_PROGRESS, "EDIT_LOCK_ENVELOPE_LOCKED"),
        (INVALID, "INVALID_REQUEST_BODY INVALID_REQUEST_PARAMETER"),
    ),
    headers=("x-docusign-tracetoken",),
)

VENDORS = (
    *(
        NOTION,
        ATLASSIAN,
        SALESFORCE,
        HUBSPOT,
        ZENDESK,
        LINEAR,
        AIRTABLE,
        FIGMA,
        SPOTIFY,
        DROPBOX,
        BOX,
        MONDAY,
        CLICKUP,
        DOCUSIGN,
    ),
)
