"""The exceptions of databases, queues and validation."""

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
    REFUSED,
    THROTTLED,
    UNREADABLE,
)
from amends.foreign.row import INSIDE, Library, Rows

__all__ = ["LIBRARIES"]


def _dbapi(reader: str) -> Rows:
    """Return the rows of PEP 249's exceptions, for instances without a code."""
    return (
        ("Error", BROKEN, reader),
        ("InterfaceError", LOST, reader),
        ("DatabaseError", BROKEN, reader),
        ("OperationalError", LOST, reader),
        ("IntegrityError", CONFLICT, reader),
        ("DataError", INVALID, reader),
        ("ProgrammingError", INVALID, reader),
        ("NotSupportedError", INVALID, reader),
        ("InternalError", BROKEN, reader),
    )


LIBRARIES: tuple[Library, ...] = (
    (("sqlite3",), _dbapi("sqlite")),
    (
        ("psycopg",),
        (
            *_dbapi("sqlstate"),
            ("OperationalError", LOST, "psycopg"),
        ),
    ),
    (("psycopg.errors",), (("ConnectionTimeout", NOT_STARTED_IN_TIME),)),
    (
        ("psycopg_pool.errors", "psycopg_pool"),
        (
            ("PoolTimeout", NOT_STARTED_IN_TIME),
            ("PoolClosed", REFUSED),
            ("TooManyRequests", REFUSED),
        ),
    ),
    (("psycopg2",), _dbapi("sqlstate")),
    (("psycopg2.pool",), (("PoolError", REFUSED),)),
    (
        ("asyncpg.exceptions._base",),
        (("PostgresError", BROKEN, "sqlstate"), ("InterfaceError", LOST)),
    ),
    (("pymysql.err", "MySQLdb._exceptions", "mysql.connector.errors"), _dbapi("mysql")),
    (
        ("sqlalchemy.exc",),
        (
            ("TimeoutError", NOT_STARTED_IN_TIME),  # the pool had no free connection
            ("NoResultFound", MISSING),
            ("MultipleResultsFound", CONFLICT),
            ("PendingRollbackError", CONFLICT),
            ("DisconnectionError", LOST),
            ("StatementError", INVALID, INSIDE),  # a parameter could not be bound
            *_dbapi(INSIDE)[1:],  # without Error: the base class has another name here
            ("DBAPIError", BROKEN, INSIDE),
            ("SQLAlchemyError", BROKEN),
        ),
    ),
    (("sqlalchemy.orm.exc",), (("StaleDataError", CONFLICT),)),
    (
        ("redis.exceptions",),
        (
            ("BusyLoadingError", REFUSED),
            ("MaxConnectionsError", REFUSED),
            ("AuthenticationError", NOT_SIGNED_IN),
            ("AuthorizationError", FORBIDDEN),
            ("NoPermissionError", FORBIDDEN),
            ("ReadOnlyError", REFUSED),  # a replica: its primary is being replaced
            ("ClusterDownError", REFUSED),
            ("MasterDownError", REFUSED),
            ("TryAgainError", REFUSED),
            ("OutOfMemoryError", FULL),
            ("WatchError", ABORTED),
            ("LockError", CONFLICT),
            ("NoScriptError", MISSING),
            ("DataError", INVALID),
            ("PubSubError", INVALID),
            ("ExecAbortError", INVALID),  # a queued command was refused, so the transaction was discarded
            ("AskError", REFUSED),  # also MOVED: another node has the key
            ("ExternalAuthProviderError", NOT_SIGNED_IN),
            ("ResponseError", INVALID, "redis"),
            ("TimeoutError", EXPIRED, INSIDE),
            ("ConnectionError", LOST, INSIDE),
            ("RedisClusterException", LOST, INSIDE),
            ("SlotNotCoveredError", REFUSED),
            ("CrossSlotTransactionError", INVALID),
            ("RedisError", BROKEN),
        ),
    ),
    (
        ("pymongo.errors",),
        (
            ("ServerSelectionTimeoutError", REFUSED),
            ("WaitQueueTimeoutError", NOT_STARTED_IN_TIME),
            ("NetworkTimeout", EXPIRED, INSIDE),
            ("NotPrimaryError", REFUSED, "mongo"),
            ("AutoReconnect", LOST, INSIDE),
            ("ConnectionFailure", LOST, INSIDE),
            ("ExecutionTimeout", EXPIRED),
            ("WTimeoutError", EXPIRED),
            ("DuplicateKeyError", CONFLICT),
            ("CursorNotFound", MISSING),
            ("DocumentTooLarge", INVALID),
            ("WriteError", INVALID, "mongo"),
            ("OperationFailure", BROKEN, "mongo"),
            ("ConfigurationError", INVALID),
            ("CollectionInvalid", CONFLICT),
            ("InvalidName", INVALID),
            ("InvalidOperation", INVALID),
            ("InvalidURI", INVALID),
            ("PyMongoError", BROKEN),
        ),
    ),
    (("bson.errors",), (("BSONError", INVALID),)),
    (
        ("nats.errors",),
        (
            ("NoServersError", REFUSED),
            ("NoRespondersError", REFUSED),
            ("OutboundBufferLimitError", REFUSED),
            ("AuthorizationError", NOT_SIGNED_IN),
            ("InvalidUserCredentialsError", NOT_SIGNED_IN),
            ("TimeoutError", EXPIRED),
            ("ConnectionClosedError", LOST),
            ("ConnectionDrainingError", REFUSED),
            ("ConnectionReconnectingError", LOST),
            ("StaleConnectionError", LOST),
            ("SecureConnFailedError", REFUSED),
            ("SecureConnRequiredError", REFUSED),
            ("SecureConnWantedError", REFUSED),
            ("MaxPayloadError", INVALID),
            ("BadSubjectError", INVALID),
            ("BadHeaderError", INVALID),
            ("Error", BROKEN),
        ),
    ),
    (
        ("nats.js.errors",),
        (
            ("KeyWrongLastSequenceError", CONFLICT),
            ("ObjectAlreadyExists", CONFLICT),
            ("NotFoundError", MISSING),
            ("NoKeysError", MISSING),
            ("BadRequestError", INVALID),
            ("InvalidKeyError", INVALID),
            ("InvalidBucketNameError", INVALID),
            ("ServiceUnavailableError", LOST),
            ("NoStreamResponseError", REFUSED),
            ("TooManyStalledMsgsError", THROTTLED),
        ),
    ),
    (("tenacity",), (("RetryError", BROKEN, INSIDE),)),
    (("pydantic_core._pydantic_core",), (("ValidationError", INVALID, "pydantic"),)),
    (
        ("pydantic.error_wrappers", "pydantic.v1.error_wrappers"),
        (("ValidationError", INVALID, "pydantic"),),
    ),
    (
        ("fastapi.exceptions",),
        (("ResponseValidationError", BROKEN), ("ValidationException", INVALID, "pydantic")),
    ),
    (("msgspec",), (("ValidationError", INVALID, "msgspec"), ("DecodeError", UNREADABLE))),
    (("jsonschema.exceptions",), (("ValidationError", INVALID, "jsonschema"),)),
)
