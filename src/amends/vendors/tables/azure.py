"""Azure."""

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
    TIMEOUT,
    TOO_LARGE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
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
