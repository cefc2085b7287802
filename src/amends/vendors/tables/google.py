"""Google Cloud and Gemini (google.rpc), their older REST errors, and Firebase."""

from __future__ import annotations

from amends.vendors.kinds import (
    ABORTED,
    BAD_KEY,
    CANCELLED,
    CONFLICT,
    DISABLED,
    EXPIRED,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    NOT_READY,
    OVERLOADED,
    QUOTA,
    RATE,
    REFUSED,
    SIGN_IN,
    STEP_UP,
    TIMEOUT,
    TOO_LARGE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDORS"]

GOOGLE = Vendor(
    name="google",
    title="Google Cloud, Gemini and Vertex AI",
    docs="https://cloud.google.com/apis/design/errors",
    words=words(
        (RATE, "RATE_LIMIT_EXCEEDED rateLimitExceeded userRateLimitExceeded concurrentLimitExceeded"),
        (RATE, "servingLimitExceeded jobRateLimitExceeded sharingRateLimitExceeded OVER_QUERY_LIMIT"),
        (RATE, "RESOURCE_TEMPORARILY_EXHAUSTED"),
        # Of Firebase Cloud Messaging and of quotas per minute; a quota per day shows in the name of the quota.
        ({429: RATE}, "QUOTA_EXCEEDED"),
        (QUOTA, "dailyLimitExceeded dailyLimitExceededUnreg quotaExceeded storageQuotaExceeded"),
        (QUOTA, "RESOURCE_QUOTA_EXCEEDED BILLING_DISABLED billingNotEnabled uploadLimitExceeded"),
        (QUOTA, "QUOTA_EXHAUSTED INSUFFICIENT_G1_CREDITS_BALANCE OVER_DAILY_LIMIT"),
        (QUOTA, "activeItemCreationLimitExceeded numChildrenInNonRootLimitExceeded"),
        (DISABLED, "SERVICE_DISABLED accessNotConfigured CONSUMER_SUSPENDED userAccountSuspended"),
        (DISABLED, "RESOURCE_PROJECT_INVALID CONSUMER_INVALID"),
        (
            BAD_KEY,
            "API_KEY_INVALID keyInvalid badRequestKey CREDENTIALS_MISSING ACCESS_TOKEN_TYPE_UNSUPPORTED REQUEST_DENIED",
        ),
        (EXPIRED, "API_KEY_EXPIRED keyExpired ACCESS_TOKEN_EXPIRED authError expired"),
        (SIGN_IN, "ACCOUNT_STATE_INVALID"),
        (STEP_UP, "ACCESS_TOKEN_SCOPE_INSUFFICIENT insufficientPermissions insufficientScopes"),
        (FORBIDDEN, "API_KEY_SERVICE_BLOCKED API_KEY_HTTP_REFERRER_BLOCKED API_KEY_IP_ADDRESS_BLOCKED"),
        (
            FORBIDDEN,
            "API_KEY_ANDROID_APP_BLOCKED API_KEY_IOS_APP_BLOCKED USER_PROJECT_DENIED IAM_PERMISSION_DENIED",
        ),
        (FORBIDDEN, "insufficientFilePermissions domainPolicy SECURITY_POLICY_VIOLATED"),
        (UNAVAILABLE, "backendError backend_error"),
        (OVERLOADED, "MODEL_CAPACITY_EXHAUSTED MODEL_CAPACITY_EXCEEDED"),
        (OVERLOADED, "ZONE_RESOURCE_POOL_EXHAUSTED ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"),
        (NOT_READY, "resourceNotReady"),
        (CONFLICT, "duplicate conditionNotMet"),
        (TOO_LARGE, "responseTooLarge resourcesExceeded uploadTooLarge"),
        (REFUSED, "PROHIBITED_CONTENT BLOCKLIST SAFETY IMAGE_SAFETY MODEL_ARMOR JAILBREAK"),
        (ABORTED, "ABORTED"),
        (NOT_FOUND, "notFound"),
        (INVALID, "invalidParameter badRequest parseError keyRequired INVALID_REQUEST"),
    ),
    unless={
        "OK": UNAVAILABLE,
        "CANCELLED": CANCELLED,
        "UNKNOWN": INTERNAL,
        "INVALID_ARGUMENT": INVALID,
        "DEADLINE_EXCEEDED": TIMEOUT,
        "NOT_FOUND": NOT_FOUND,
        "ALREADY_EXISTS": CONFLICT,
        "PERMISSION_DENIED": FORBIDDEN,
        "RESOURCE_EXHAUSTED": RATE,
        "FAILED_PRECONDITION": CONFLICT,
        "OUT_OF_RANGE": INVALID,
        "UNIMPLEMENTED": INVALID,
        "INTERNAL": INTERNAL,
        "UNAVAILABLE": OVERLOADED,
        "DATA_LOSS": INTERNAL,
        "UNAUTHENTICATED": BAD_KEY,
    },
    headers=("x-goog-", "server-timing-gfet4t7", "x-guploader-uploadid"),
    computes=(
        ":generateContent",
        ":streamGenerateContent",
        ":embedContent",
        ":countTokens",
        ":predict",
        ":rawPredict",
    ),
)

FIREBASE = Vendor(
    name="firebase",
    title="Firebase Cloud Messaging and Identity",
    docs="https://firebase.google.com/docs/cloud-messaging/error-codes",
    words=words(
        (NOT_FOUND, "UNREGISTERED EMAIL_NOT_FOUND USER_NOT_FOUND"),
        (FORBIDDEN, "SENDER_ID_MISMATCH THIRD_PARTY_AUTH_ERROR OPERATION_NOT_ALLOWED"),
        (RATE, "TOO_MANY_ATTEMPTS_TRY_LATER"),
        (CONFLICT, "EMAIL_EXISTS"),
        (DISABLED, "USER_DISABLED"),
        (SIGN_IN, "TOKEN_EXPIRED CREDENTIAL_TOO_OLD_LOGIN_AGAIN"),
        (BAD_KEY, "INVALID_PASSWORD INVALID_LOGIN_CREDENTIALS INVALID_ID_TOKEN"),
        (INVALID, "WEAK_PASSWORD INVALID_EMAIL"),
    ),
)

VENDORS = (GOOGLE, FIREBASE)
