"""Microsoft Graph."""

from __future__ import annotations

from amends.vendors.kinds import (
    ABORTED,
    CONFLICT,
    EXPIRED,
    FORBIDDEN,
    IN_PROGRESS,
    INVALID,
    NOT_FOUND,
    OVERLOADED,
    QUOTA,
    RATE,
    TOO_LARGE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="microsoft-graph",
    title="Microsoft Graph",
    docs="https://learn.microsoft.com/graph/errors",
    words=words(
        (RATE, "activityLimitReached ApplicationThrottled tooManyRequests ErrorTooManyObjectsOpened"),
        (OVERLOADED, "ErrorServerBusy serviceNotAvailable ErrorMailboxStoreUnavailable"),
        (QUOTA, "quotaLimitReached insufficientStorage Directory_QuotaExceeded ErrorQuotaExceeded"),
        (QUOTA, "ErrorExceededMessageLimit ErrorMessageSizeExceededQuota"),
        (EXPIRED, "InvalidAuthenticationToken CompactTokenParsingFailed tokenExpired"),
        (FORBIDDEN, "Authorization_RequestDenied accessDenied ErrorAccessDenied MailboxNotEnabledForRESTAPI"),
        (NOT_FOUND, "Request_ResourceNotFound itemNotFound ErrorItemNotFound"),
        (IN_PROGRESS, "resourceLocked"),
        (ABORTED, "Directory_ConcurrencyViolation ErrorIrresolvableConflict"),
        (CONFLICT, "nameAlreadyExists resyncRequired"),
        (INVALID, "Request_BadRequest invalidRequest"),
        (TOO_LARGE, "requestEntityTooLarge"),
    ),
    # 509 is used for a bandwidth limit.
    statuses={509: RATE},
    headers=("x-ms-ags-diagnostic", "client-request-id"),
)
