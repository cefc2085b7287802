"""The exceptions of mail, name resolution, message brokers, further databases and further clients."""

from __future__ import annotations

from amends.foreign.outcomes import (
    ABORTED,
    BROKEN,
    CONFLICT,
    EXPIRED,
    FORBIDDEN,
    FULL,
    INVALID,
    LOST,
    MISSING,
    NOT_SIGNED_IN,
    NOT_STARTED_IN_TIME,
    OVER_QUOTA,
    REFUSED,
    THROTTLED,
    UNTRUSTED,
    Meaning,
)
from amends.foreign.row import INSIDE, Library, Rows

__all__ = ["LIBRARIES"]


def _rows(meaning: Meaning, names: str) -> Rows:
    return tuple((name, meaning) for name in names.split())


_SMTP: Rows = (
    ("SMTPConnectError", REFUSED, "smtp"),
    ("SMTPResponseException", BROKEN, "smtp"),
    ("SMTPRecipientsRefused", INVALID, "smtp"),
    ("SMTPServerDisconnected", LOST),
    ("SMTPException", BROKEN),
)

# kafka-python and aiokafka have a common origin; some names differ by version.
_KAFKA: Rows = (
    *_rows(
        REFUSED, "NotLeaderForPartitionError LeaderNotAvailableError NoBrokersAvailable NodeNotReadyError"
    ),
    *_rows(REFUSED, "NotControllerError NotEnoughReplicasError BrokerNotAvailableError StaleMetadata"),
    *_rows(REFUSED, "CoordinatorNotAvailableError NotCoordinatorError CoordinatorLoadInProgressError"),
    *_rows(REFUSED, "GroupCoordinatorNotAvailableError NotCoordinatorForGroupError GroupLoadInProgressError"),
    *_rows(LOST, "KafkaConnectionError NotEnoughReplicasAfterAppendError NetworkExceptionError"),
    *_rows(EXPIRED, "KafkaTimeoutError RequestTimedOutError"),
    *_rows(MISSING, "UnknownTopicOrPartitionError"),
    *_rows(FORBIDDEN, "AuthorizationError TopicAuthorizationFailedError GroupAuthorizationFailedError"),
    *_rows(FORBIDDEN, "ClusterAuthorizationFailedError TransactionalIdAuthorizationFailedError"),
    *_rows(
        NOT_SIGNED_IN,
        "AuthenticationFailedError SaslAuthenticationFailedError AuthenticationMethodNotSupported",
    ),
    *_rows(
        INVALID, "MessageSizeTooLargeError RecordListTooLargeError InvalidTopicError UnsupportedVersionError"
    ),
    *_rows(INVALID, "IllegalArgumentError IllegalStateError InvalidRequestError"),
    *_rows(CONFLICT, "IllegalGenerationError UnknownMemberIdError CommitFailedError TopicAlreadyExistsError"),
    *_rows(ABORTED, "RebalanceInProgressError ConcurrentTransactions"),
    *_rows(THROTTLED, "ThrottlingQuotaExceededError"),
    ("KafkaError", BROKEN),
)

LIBRARIES: tuple[Library, ...] = (
    (
        ("smtplib",),
        (*_SMTP, *_rows(INVALID, "SMTPNotSupportedError")),
    ),
    (
        ("aiosmtplib.errors",),
        (
            *_SMTP,
            *_rows(INVALID, "SMTPNotSupported"),
            *_rows(NOT_STARTED_IN_TIME, "SMTPConnectTimeoutError"),
            *_rows(EXPIRED, "SMTPTimeoutError"),
        ),
    ),
    (
        ("ftplib",),
        (("error_temp", REFUSED, "ftp"), ("error_perm", INVALID, "ftp"), ("Error", BROKEN)),
    ),
    (("imaplib",), (("IMAP4.abort", LOST), ("IMAP4.readonly", FORBIDDEN))),
    (("xmlrpc.client",), (("Fault", BROKEN, "xmlrpc"), ("ProtocolError", BROKEN, "xmlrpc"))),
    # A query has no effect.
    (("dns.exception",), (("Timeout", NOT_STARTED_IN_TIME), ("DNSException", BROKEN))),
    (
        ("dns.resolver",),
        (*_rows(MISSING, "NXDOMAIN NoAnswer"), *_rows(REFUSED, "NoNameservers"), *_rows(INVALID, "YXDOMAIN")),
    ),
    (("kafka.errors", "aiokafka.errors"), _KAFKA),
    (("cimpl",), (("KafkaException", BROKEN, "librdkafka"),)),
    (
        ("pika.exceptions",),
        (
            *_rows(NOT_SIGNED_IN, "AuthenticationError ProbableAuthenticationError"),
            *_rows(FORBIDDEN, "ProbableAccessDeniedError"),
            ("ConnectionClosed", LOST, "amqp"),
            ("ChannelClosed", LOST, "amqp"),
            ("AMQPConnectionError", LOST, INSIDE),
            *_rows(MISSING, "UnroutableError"),
            *_rows(LOST, "NackError"),  # an internal error of a queue; others may have the message
            *_rows(LOST, "ConnectionWrongStateError ChannelWrongStateError"),
            ("AMQPError", BROKEN),
        ),
    ),
    (
        ("aiormq.exceptions",),
        (
            *_rows(MISSING, "ChannelNotFoundEntity"),
            *_rows(CONFLICT, "ChannelLockedResource ChannelPreconditionFailed"),
            *_rows(FORBIDDEN, "ChannelAccessRefused ConnectionNotAllowed"),
            *_rows(NOT_SIGNED_IN, "AuthenticationError ProbableAuthenticationError"),
        ),
    ),
    (
        ("amqp.exceptions",),
        (
            *_rows(LOST, "RecoverableConnectionError ConnectionForced"),
            ("AMQPError", BROKEN, "amqp"),
        ),
    ),
    (("kombu.exceptions",), (("OperationalError", LOST, INSIDE),)),
    (
        ("stomp.exception",),
        (*_rows(REFUSED, "ConnectFailedException"), *_rows(LOST, "ConnectionClosedException")),
    ),
    (
        ("azure.servicebus.exceptions",),
        (
            *_rows(FULL, "ServiceBusServerBusyError"),
            *_rows(OVER_QUOTA, "ServiceBusQuotaExceededError"),
            *_rows(
                CONFLICT,
                "MessageLockLostError SessionLockLostError MessageAlreadySettled MessagingEntityAlreadyExistsError",
            ),
            *_rows(REFUSED, "SessionCannotBeLockedError"),
            *_rows(INVALID, "MessageSizeExceededError"),
            *_rows(NOT_SIGNED_IN, "ServiceBusAuthenticationError"),
            *_rows(FORBIDDEN, "ServiceBusAuthorizationError MessagingEntityDisabledError"),
            *_rows(MISSING, "MessagingEntityNotFoundError MessageNotFoundError"),
            *_rows(EXPIRED, "OperationTimeoutError"),
            *_rows(LOST, "ServiceBusConnectionError ServiceBusCommunicationError"),
        ),
    ),
    (
        ("cassandra",),
        (
            *_rows(REFUSED, "Unavailable"),
            *_rows(EXPIRED, "Timeout OperationTimedOut"),
            *_rows(LOST, "WriteFailure ReadFailure"),
            *_rows(CONFLICT, "AlreadyExists"),
            *_rows(FORBIDDEN, "Unauthorized"),
            *_rows(NOT_SIGNED_IN, "AuthenticationFailed"),
            *_rows(INVALID, "RequestValidationException UnsupportedOperation"),
            ("DriverException", BROKEN),
        ),
    ),
    (("cassandra.cluster",), _rows(LOST, "NoHostAvailable")),
    (("cassandra.connection",), _rows(LOST, "ConnectionException ConnectionShutdown")),
    (("cassandra.pool",), _rows(REFUSED, "NoConnectionsAvailable")),
    (
        ("neo4j.exceptions",),
        (
            *_rows(NOT_SIGNED_IN, "AuthError TokenExpired"),
            *_rows(FORBIDDEN, "Forbidden"),
            *_rows(CONFLICT, "ConstraintError"),
            *_rows(REFUSED, "DatabaseUnavailable NotALeader ForbiddenOnReadOnlyDatabase"),
            *_rows(ABORTED, "TransientError"),  # the transaction was rolled back
            *_rows(INVALID, "ClientError ConfigurationError"),
            *_rows(LOST, "ServiceUnavailable SessionExpired"),
        ),
    ),
    (
        ("snowflake.connector.errors",),
        (
            *_rows(THROTTLED, "TooManyRequests"),
            *_rows(LOST, "OperationalError ServiceUnavailableError BadGatewayError GatewayTimeoutError"),
            *_rows(FORBIDDEN, "ForbiddenError"),
            ("ProgrammingError", INVALID, "sqlstate"),
            ("IntegrityError", CONFLICT, "sqlstate"),
            ("Error", BROKEN, "sqlstate"),
        ),
    ),
    (
        ("_duckdb", "duckdb"),
        (
            *_rows(CONFLICT, "IntegrityError"),
            *_rows(ABORTED, "TransactionException"),
            *_rows(INVALID, "ProgrammingError DataError NotSupportedError"),
        ),
    ),
    (
        ("asyncssh.misc",),
        (
            *_rows(NOT_SIGNED_IN, "PermissionDenied"),
            *_rows(UNTRUSTED, "HostKeyNotVerifiable KeyExchangeFailed"),
            *_rows(LOST, "ConnectionLost DisconnectError"),
        ),
    ),
    (
        ("asyncssh.sftp",),
        (
            *_rows(MISSING, "SFTPNoSuchFile SFTPNoSuchPath"),
            *_rows(FORBIDDEN, "SFTPPermissionDenied SFTPWriteProtect"),
            *_rows(CONFLICT, "SFTPFileAlreadyExists"),
            *_rows(LOST, "SFTPConnectionLost SFTPNoConnection"),
        ),
    ),
    (
        ("ldap3.core.exceptions",),
        (
            *_rows(NOT_SIGNED_IN, "LDAPInvalidCredentialsResult LDAPBindError"),
            *_rows(FORBIDDEN, "LDAPInsufficientAccessRightsResult"),
            *_rows(REFUSED, "LDAPBusyResult LDAPUnavailableResult"),
            *_rows(MISSING, "LDAPNoSuchObjectResult"),
            *_rows(CONFLICT, "LDAPEntryAlreadyExistsResult"),
            *_rows(REFUSED, "LDAPSocketOpenError"),
            *_rows(LOST, "LDAPCommunicationError"),
        ),
    ),
    (("pycurl",), (("error", BROKEN, "curl"),)),
    (("curl_cffi.curl",), (("CurlError", BROKEN, "curl"),)),
    (("httplib2.error",), _rows(REFUSED, "ServerNotFoundError")),
    (("tornado.simple_httpclient",), _rows(EXPIRED, "HTTPTimeoutError")),
    (("tornado.simple_httpclient",), _rows(LOST, "HTTPStreamClosedError")),
    (
        ("twisted.internet.error",),
        (
            *_rows(NOT_STARTED_IN_TIME, "TCPTimedOutError"),
            *_rows(REFUSED, "DNSLookupError ConnectError"),
            *_rows(LOST, "ConnectionLost ConnectionDone ConnectionAborted"),
            *_rows(EXPIRED, "TimeoutError"),
        ),
    ),
    (
        ("websocket._exceptions",),
        (
            *_rows(LOST, "WebSocketConnectionClosedException"),
            *_rows(EXPIRED, "WebSocketTimeoutException"),
            *_rows(REFUSED, "WebSocketAddressException WebSocketProxyException"),
        ),
    ),
    (
        ("hvac.exceptions",),
        (
            *_rows(INVALID, "InvalidRequest ParamValidationError"),
            *_rows(NOT_SIGNED_IN, "Unauthorized"),
            *_rows(FORBIDDEN, "Forbidden"),
            *_rows(MISSING, "InvalidPath"),
            *_rows(THROTTLED, "RateLimitExceeded"),
            *_rows(LOST, "VaultDown BadGateway VaultNotInitialized"),
            ("VaultError", BROKEN),
        ),
    ),
    (
        ("typesense.exceptions",),
        (
            *_rows(MISSING, "ObjectNotFound"),
            *_rows(NOT_SIGNED_IN, "RequestUnauthorized"),
            *_rows(FORBIDDEN, "RequestForbidden"),
            *_rows(CONFLICT, "ObjectAlreadyExists"),
            *_rows(INVALID, "RequestMalformed ObjectUnprocessable"),
            *_rows(LOST, "ServiceUnavailable ServerError HTTPStatus0Error"),
            *_rows(EXPIRED, "Timeout"),
        ),
    ),
    (
        ("weaviate.exceptions",),
        (
            *_rows(REFUSED, "WeaviateStartUpError"),
            *_rows(LOST, "WeaviateConnectionError"),
            *_rows(EXPIRED, "WeaviateTimeoutError"),
        ),
    ),
    (
        ("chromadb.errors",),
        (
            *_rows(MISSING, "NotFoundError"),
            *_rows(THROTTLED, "RateLimitError"),
            *_rows(OVER_QUOTA, "QuotaError"),
            *_rows(FORBIDDEN, "AuthorizationError"),
            *_rows(CONFLICT, "UniqueConstraintError"),
            *_rows(INVALID, "InvalidDimensionException InvalidArgumentError BatchSizeExceededError"),
        ),
    ),
    (("qdrant_client.http.exceptions",), (("ResponseHandlingException", LOST, INSIDE),)),
    (("qdrant_client.common.client_exceptions",), _rows(THROTTLED, "ResourceExhaustedResponse")),
)
