"""
AWS: the query, JSON, REST-XML and event-stream protocols, S3, DynamoDB, Bedrock; and Amazon's Selling Partner API.

AWS sends many of these with status 400, so the word has priority over the status.
"""

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
    NOT_READY,
    OVERLOADED,
    QUOTA,
    RATE,
    REFUSED,
    TIMEOUT,
    TOO_LARGE,
    UNAVAILABLE,
)
from amends.vendors.model import Key, Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="aws",
    title="Amazon Web Services and Bedrock",
    docs="https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html",
    words=words(
        (
            RATE,
            "Throttling ThrottlingException ThrottledException RequestThrottledException throttlingException",
        ),
        (RATE, "TooManyRequestsException ProvisionedThroughputExceededException RequestLimitExceeded"),
        (RATE, "ProvisionedThroughputExceeded ThrottlingError ThrottlingReason RequestThrottled SlowDown"),
        # AppSync sends it for missing credentials, too.
        ({401: BAD_KEY, 0: FORBIDDEN}, "UnauthorizedException"),
        # SQS: too many messages in flight, and a name that is free again after a minute.
        (RATE, "OverLimit AWS.SimpleQueueService.OverLimit"),
        (replace(IN_PROGRESS, wait=60.0), "QueueDeletedRecently AWS.SimpleQueueService.QueueDeletedRecently"),
        (RATE, "BandwidthLimitExceeded EC2ThrottledException PriorRequestNotComplete"),
        # API Gateway: 429 is the quota of a usage plan or of resources; with a wait it is the rate limit of the control plane.
        ({429: QUOTA, -429: RATE, 409: QUOTA, 410: QUOTA, 0: RATE}, "LimitExceededException"),
        (RATE, "SnapshotCreationPerVolumeRateExceeded KMSThrottlingException TooManyRequestsFault"),
        (RATE, "ReservedFunctionConcurrentInvocationLimitExceeded ConcurrentInvocationLimitExceeded"),
        # Those that run have to end first.
        (RATE, "ConcurrentRunsExceededException ActiveStatementsExceededException"),
        (RATE, "ActiveSessionsExceededException"),
        (QUOTA, "ServiceQuotaExceededException InstanceLimitExceeded VcpuLimitExceeded AddressLimitExceeded"),
        (QUOTA, "TooManyBuckets CodeStorageExceededException DailyQuotaExceeded ENILimitReachedException"),
        (QUOTA, "ClusterQuotaExceeded StorageQuotaExceeded LimitExceeded AccountSendingPausedException"),
        (OVERLOADED, "InsufficientInstanceCapacity InsufficientHostCapacity InsufficientCapacity"),
        (OVERLOADED, "InsufficientCapacityException InsufficientReservedInstanceCapacity"),
        (
            OVERLOADED,
            "ServiceUnavailable Unavailable ServiceUnavailableException serviceUnavailableException",
        ),
        (UNAVAILABLE, "IDPCommunicationError IDPCommunicationErrorException DependencyException"),
        (NOT_READY, "ModelNotReadyException ResourceNotReadyException SnapStartNotReadyException"),
        (TIMEOUT, "RequestTimeout RequestTimeoutException ModelTimeoutException modelTimeoutException"),
        (INTERNAL, "ModelErrorException ModelStreamErrorException modelStreamErrorException InternalError"),
        (INTERNAL, "InternalServerException internalServerException InternalFailure InternalServerError"),
        (INTERNAL, "InternalServiceError InternalServiceException"),
        (EXPIRED, "ExpiredToken ExpiredTokenException RequestExpired TokenRefreshRequired"),
        (BAD_KEY, "AuthFailure UnrecognizedClientException InvalidClientTokenId SignatureDoesNotMatch"),
        (
            BAD_KEY,
            "InvalidAccessKeyId InvalidSignatureException IncompleteSignature MissingAuthenticationToken",
        ),
        (BAD_KEY, "MissingAuthenticationTokenException RequestTimeTooSkewed InvalidToken"),
        # Cognito: the name or password is wrong.
        (BAD_KEY, "NotAuthorizedException"),
        (
            FORBIDDEN,
            "AccessDenied AccessDeniedException UnauthorizedOperation NotAuthorized",
        ),
        (FORBIDDEN, "KMSAccessDeniedException AuthorizationError"),
        (
            DISABLED,
            "OptInRequired SubscriptionRequiredException AccountProblem AllAccessDisabled NotSignedUp",
        ),
        (DISABLED, "SendingPausedException AccountSuspendedException DisabledException"),
        (DISABLED, "RegionDisabledException PendingVerification KMSDisabledException"),
        (
            NOT_FOUND,
            "NoSuchKey NoSuchBucket ResourceNotFoundException NoSuchEntity NoSuchUpload NoSuchVersion",
        ),
        (
            NOT_FOUND,
            "QueueDoesNotExist AWS.SimpleQueueService.NonExistentQueue ResourceNotFound NotFoundException",
        ),
        (NOT_FOUND, "DBInstanceNotFound StackNotFoundException"),
        (IN_PROGRESS, "TransactionInProgressException OperationAborted ResourceConflictException"),
        (IN_PROGRESS, "OperationInProgressException ConcurrentOperation UpdateInProgressException"),
        (ABORTED, "TransactionConflictException OptimisticLockException ConditionalRequestConflict"),
        (ABORTED, "ConcurrentModificationException TransactionConflict ReplicatedWriteConflictException"),
        (ABORTED, "RetryableConflictException"),
        (CONFLICT, "ConditionalCheckFailedException ConditionalCheckFailed ResourceInUseException"),
        (CONFLICT, "ConflictException BucketAlreadyExists BucketAlreadyOwnedByYou EntityAlreadyExists"),
        (CONFLICT, "IdempotentParameterMismatch IdempotentParameterMismatchException PreconditionFailed"),
        (CONFLICT, "DependencyViolation IncorrectInstanceState IncorrectState InvalidSequenceTokenException"),
        (CONFLICT, "ResourceAlreadyExistsException InvalidObjectState BucketNotEmpty DeleteConflict"),
        # Step Functions: the task whose result is sent has ended.
        (CONFLICT, "TaskTimedOut KMSInvalidStateException"),
        (INVALID, "ValidationException ValidationError validationException InvalidParameterValue"),
        (
            INVALID,
            "InvalidParameterCombination MissingParameter MalformedPolicyDocument SerializationException",
        ),
        (
            INVALID,
            "MalformedXML InvalidArgument InvalidRequest InvalidParameterException AuthorizationHeaderMalformed",
        ),
        (INVALID, "InvalidRequestException InvalidAction InvalidBucketName PermanentRedirect"),
        (TOO_LARGE, "ItemCollectionSizeLimitExceededException RequestTooLargeException EntityTooLarge"),
        (TOO_LARGE, "RequestEntityTooLargeException EntityTooSmall MessageTooLong MaxMessageLengthExceeded"),
        (REFUSED, "MessageRejected"),
    ),
    headers=("x-amzn-", "x-amz-"),
    keys=Key(field="ClientToken"),
    computes=("/converse", "/invoke", "/converse-stream", "/invoke-with-response-stream"),
)
