"""Azure (Resource Manager, Storage, Cosmos DB, Key Vault), Microsoft Graph and Entra ID."""

from __future__ import annotations

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
    NOT_READY,
    OVERLOADED,
    QUOTA,
    RATE,
    SIGN_IN,
    TIMEOUT,
    TOO_LARGE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDORS"]

AZURE = Vendor(
    name="azure",
    title="Azure",
    docs="https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors",
    words=words(
        (
            RATE,
            "TooManyRequests SubscriptionRequestsThrottled ThrottledRequest Throttled RequestRateTooLarge",
        ),
        (RATE, "ResourceRequestsThrottled SubscriptionRequestsThrottledByResourceProvider"),
        (OVERLOADED, "ServerBusy AllocationFailed ZonalAllocationFailed SkuCapacityNotAvailable NoCapacity"),
        (TIMEOUT, "OperationTimedOut GatewayTimeout RequestTimeout"),
        (
            IN_PROGRESS,
            "AnotherOperationInProgress RetryableErrorDueToAnotherOperation RetryableError DeploymentActive",
        ),
        (IN_PROGRESS, "ContainerBeingDeleted QueueBeingDeleted TableBeingDeleted ShareBeingDeleted"),
        (IN_PROGRESS, "ResourceGroupBeingDeleted AccountBeingCreated ConflictingServerOperation"),
        (NOT_READY, "BlobBeingRehydrated"),
        ({400: QUOTA, 403: QUOTA, 409: QUOTA}, "QuotaExceeded"),
        (QUOTA, "ResourceQuotaExceeded CoreQuotaExceeded DeploymentQuotaExceeded"),
        (DISABLED, "MissingSubscriptionRegistration SubscriptionNotRegistered DisabledSubscription"),
        (DISABLED, "ReadOnlyDisabledSubscription AccountIsDisabled SubscriptionNotFound"),
        (EXPIRED, "ExpiredAuthenticationToken InvalidAuthenticationToken ExpiredToken"),
        (BAD_KEY, "AuthenticationFailed InvalidAuthenticationInfo InvalidAuthenticationTokenTenant"),
        (BAD_KEY, "AuthenticationFailedInvalidHeader NoAuthenticationInformation"),
        (FORBIDDEN, "AuthorizationFailed LinkedAuthorizationFailed InsufficientAccountPermissions"),
        (
            FORBIDDEN,
            "RequestDisallowedByPolicy AuthorizationPermissionMismatch ForbiddenByPolicy ForbiddenByRbac",
        ),
        (NOT_FOUND, "ResourceNotFound ResourceGroupNotFound BlobNotFound ContainerNotFound SecretNotFound"),
        (
            CONFLICT,
            "LeaseAlreadyPresent LeaseIdMissing ConditionNotMet TargetConditionNotMet BlobAlreadyExists",
        ),
        (CONFLICT, "ContainerAlreadyExists UpdateConditionNotSatisfied EntityAlreadyExists"),
        (INVALID, "InvalidTemplate InvalidTemplateDeployment InvalidResourceName SkuNotAvailable"),
        (INVALID, "InvalidParameter LocationNotAvailableForResourceType InvalidQueryParameterValue"),
        (TOO_LARGE, "RequestBodyTooLarge"),
        (INTERNAL, "InternalServerError InternalError"),
    ),
    # Cosmos DB: retry with the same request.
    statuses={449: ABORTED},
    headers=(
        "x-ms-request-id",
        "x-ms-correlation-request-id",
        "x-ms-error-code",
        "x-ms-substatus",
        "x-ms-ratelimit-",
    ),
)

GRAPH = Vendor(
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

ENTRA = Vendor(
    name="entra",
    title="Microsoft Entra ID",
    docs="https://learn.microsoft.com/entra/identity-platform/reference-error-codes",
    words=words(
        (SIGN_IN, "50076 50079 65001 50173 70043 700082 70008 50158 53003"),
        (BAD_KEY, "7000215 700016 7000222 700027 50011"),
        (UNAVAILABLE, "90033 50196"),
        (DISABLED, "50057 7000112"),
    ),
    numbers=True,
)

VENDORS = (AZURE, GRAPH, ENTRA)
