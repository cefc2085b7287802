"""
The meanings of the exceptions of common libraries, by class name.

A row is (name, meaning) or (name, meaning, reader), where the reader finds more exact details in an instance. The
nearest class along the MRO that has a row decides, so the row of a library's base class covers all classes that are
not listed. A class without any row (ValueError, KeyError, an application's own exception) counts as BROKEN.
"""

from __future__ import annotations

from typing import NamedTuple

from amends.foreign.outcomes import (
    ABORTED,
    BROKEN,
    CANCELLED,
    CONFLICT,
    DENIED_CONTENT,
    EXPIRED,
    FORBIDDEN,
    INVALID,
    LOST,
    MISSING,
    NOT_SIGNED_IN,
    NOT_STARTED_IN_TIME,
    OVER_QUOTA,
    REFUSED,
    THROTTLED,
    TOO_LONG,
    UNREADABLE,
    UNTRUSTED,
    Meaning,
)

__all__ = ["ROWS", "Row", "names", "row_for_class"]


class Row(NamedTuple):
    """The meaning of a class, and the reader of further details: a key of `exceptions.READERS`, or INSIDE."""

    meaning: Meaning
    reader: str | None = None


INSIDE = "inside"
"""The reader of classes that wrap another exception: its meaning is used. `executed` stays "no" if the row has that."""

_Rows = tuple[tuple[str, Meaning] | tuple[str, Meaning, str], ...]


def _dbapi(reader: str) -> _Rows:
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


_HTTPCORE: _Rows = (
    ("ConnectError", REFUSED, INSIDE),
    ("ConnectTimeout", NOT_STARTED_IN_TIME),
    ("PoolTimeout", NOT_STARTED_IN_TIME),
    ("ProxyError", REFUSED),  # the tunnel was not opened
    ("UnsupportedProtocol", INVALID),
    ("TimeoutException", EXPIRED),  # read and write time-outs
    ("NetworkError", LOST),  # read, write and close errors
    ("RemoteProtocolError", LOST),
    ("ProtocolError", BROKEN),  # the local one: part of the request may have been sent
)

# (modules, rows): the same rows for every module named.
LIBRARIES: tuple[tuple[tuple[str, ...], _Rows], ...] = (
    (
        ("builtins",),
        (
            ("OSError", BROKEN, "errno"),
            ("ConnectionRefusedError", REFUSED),
            ("ConnectionError", LOST),  # reset, aborted, broken pipe
            ("TimeoutError", EXPIRED),
            ("PermissionError", FORBIDDEN),
            ("FileNotFoundError", MISSING),
            ("FileExistsError", CONFLICT),
            ("IsADirectoryError", INVALID),
            ("NotADirectoryError", INVALID),
            ("ProcessLookupError", MISSING),
            ("UnicodeError", UNREADABLE),
            ("KeyboardInterrupt", CANCELLED),
            ("GeneratorExit", CANCELLED),
        ),
    ),
    (("socket",), (("gaierror", REFUSED), ("herror", REFUSED))),
    (
        ("ssl",),
        (
            ("SSLCertVerificationError", UNTRUSTED),
            # Of a connection that was established.
            ("SSLEOFError", LOST),
            ("SSLZeroReturnError", LOST),
            ("SSLSyscallError", LOST),
            ("SSLError", REFUSED, "ssl"),
        ),
    ),
    (
        ("asyncio.exceptions",),
        (("CancelledError", CANCELLED), ("IncompleteReadError", LOST)),
    ),
    (("concurrent.futures._base",), (("CancelledError", CANCELLED),)),
    (("trio",), (("Cancelled", CANCELLED), ("TooSlowError", EXPIRED), ("BrokenResourceError", LOST))),
    (
        ("anyio",),
        (
            ("ConnectionFailed", REFUSED, INSIDE),
            ("BrokenResourceError", LOST),
            ("ClosedResourceError", LOST),
            ("EndOfStream", LOST),
            ("IncompleteRead", LOST),
        ),
    ),
    (("subprocess",), (("TimeoutExpired", EXPIRED), ("SubprocessError", BROKEN))),
    (("json.decoder",), (("JSONDecodeError", UNREADABLE, "json"),)),
    (
        ("http.client",),
        (("InvalidURL", INVALID), ("ImproperConnectionState", BROKEN), ("HTTPException", LOST)),
    ),
    (("urllib.error",), (("ContentTooShortError", LOST), ("URLError", LOST, INSIDE))),
    (("httpcore", "httpcore2"), (*_HTTPCORE, ("ConnectionNotAvailable", REFUSED))),
    (
        ("httpx", "httpx2"),
        (
            *_HTTPCORE,
            ("InvalidURL", INVALID),
            ("TransportError", LOST),
            ("HTTPError", BROKEN),  # too many redirects, or a response that cannot be decoded
        ),
    ),
    (
        ("urllib3.exceptions",),
        (
            ("NewConnectionError", REFUSED),  # name resolution too
            ("ConnectTimeoutError", NOT_STARTED_IN_TIME),
            ("ReadTimeoutError", EXPIRED),
            ("TimeoutError", EXPIRED),
            ("ProxyError", REFUSED),  # raised only if the proxy was not reached
            ("EmptyPoolError", REFUSED),
            ("ClosedPoolError", REFUSED),
            ("MaxRetryError", LOST, INSIDE),
            ("SSLError", LOST, INSIDE),
            ("ProtocolError", LOST),
            ("IncompleteRead", LOST),
            ("InvalidChunkLength", LOST),
            ("ResponseError", LOST),
            ("LocationValueError", INVALID),
            ("HTTPError", BROKEN),
        ),
    ),
    (
        ("requests.exceptions",),
        (
            ("ConnectTimeout", NOT_STARTED_IN_TIME),
            ("Timeout", EXPIRED),
            ("ProxyError", REFUSED),
            ("SSLError", LOST, INSIDE),
            ("ConnectionError", LOST, INSIDE),
            ("ChunkedEncodingError", LOST),
            ("RetryError", LOST, INSIDE),
            ("InvalidURL", INVALID),
            ("InvalidSchema", INVALID),
            ("MissingSchema", INVALID),
            ("InvalidHeader", INVALID),
            ("URLRequired", INVALID),
            ("JSONDecodeError", BROKEN),  # a response, not a request
            ("InvalidJSONError", INVALID),
            ("RequestException", BROKEN),
        ),
    ),
    (
        ("aiohttp.client_exceptions",),
        (
            ("ClientConnectorError", REFUSED, INSIDE),  # name resolution, TLS and proxies too
            ("ServerFingerprintMismatch", UNTRUSTED),
            ("ConnectionTimeoutError", NOT_STARTED_IN_TIME),
            ("ServerTimeoutError", EXPIRED),
            ("ClientHttpProxyError", REFUSED),
            ("ClientResponseError", BROKEN, INSIDE),
            ("ClientConnectionError", LOST),
            ("ClientPayloadError", LOST),
            ("InvalidURL", INVALID),
            ("NonHttpUrlClientError", INVALID),
            ("ClientError", BROKEN),
        ),
    ),
    (("aiohttp.http_exceptions",), (("HttpProcessingError", LOST),)),
    (
        ("websockets.exceptions",),
        (("InvalidURI", INVALID), ("InvalidHandshake", REFUSED), ("ConnectionClosed", LOST, "websocket")),
    ),
    (
        # `__module__` of these classes is the package; they are defined in the private module.
        ("openai", "openai._exceptions", "anthropic", "anthropic._exceptions"),
        (("APITimeoutError", EXPIRED, INSIDE), ("APIConnectionError", LOST, INSIDE)),
    ),
    (
        ("groq", "groq._exceptions", "together", "cerebras.cloud.sdk", "cerebras.cloud.sdk._exceptions"),
        (("APITimeoutError", EXPIRED, INSIDE), ("APIConnectionError", LOST, INSIDE)),
    ),
    (
        ("litellm.exceptions",),
        # Classes that say more than their status.
        (
            ("ContextWindowExceededError", TOO_LONG),
            ("ContentPolicyViolationError", DENIED_CONTENT),
            ("BudgetExceededError", OVER_QUOTA),
            ("RateLimitError", THROTTLED),
            ("AuthenticationError", NOT_SIGNED_IN),
            ("PermissionDeniedError", FORBIDDEN),
            ("NotFoundError", MISSING),
            ("Timeout", EXPIRED, INSIDE),
            ("ServiceUnavailableError", LOST),
            ("InternalServerError", BROKEN),
            ("APIConnectionError", LOST, INSIDE),
            ("MidStreamFallbackError", LOST, INSIDE),
            ("BadRequestError", INVALID),
            ("UnprocessableEntityError", INVALID),
            ("APIError", BROKEN, INSIDE),
        ),
    ),
    (
        ("pydantic_ai.exceptions",),
        (
            ("UsageLimitExceeded", OVER_QUOTA),
            ("ContentFilterError", DENIED_CONTENT),
            ("UserError", INVALID),
            ("ModelAPIError", BROKEN, INSIDE),
            ("AgentRunError", BROKEN, INSIDE),
        ),
    ),
    (
        ("langchain_core.exceptions",),
        (("ContextOverflowError", TOO_LONG), ("LangChainException", BROKEN, INSIDE)),
    ),
    (("langgraph.errors",), (("GraphRecursionError", BROKEN), ("InvalidUpdateError", INVALID))),
    (
        ("agents.exceptions",),
        (
            ("InputGuardrailTripwireTriggered", DENIED_CONTENT),
            ("OutputGuardrailTripwireTriggered", DENIED_CONTENT),
            ("UserError", INVALID),
            ("AgentsException", BROKEN, INSIDE),
        ),
    ),
    (
        ("instructor.exceptions", "instructor.core.exceptions", "instructor.v2.core.errors"),
        (("InstructorRetryException", BROKEN, INSIDE), ("InstructorError", BROKEN, INSIDE)),
    ),
    (
        ("azure.core.exceptions",),
        (
            ("ServiceRequestTimeoutError", NOT_STARTED_IN_TIME),
            ("ServiceRequestError", REFUSED, INSIDE),
            ("ServiceResponseTimeoutError", EXPIRED),
            ("ServiceResponseError", LOST, INSIDE),
            ("IncompleteReadError", LOST),
            ("ClientAuthenticationError", NOT_SIGNED_IN),
            ("AzureError", BROKEN, INSIDE),
        ),
    ),
    (
        ("google.genai.errors",),
        (("ClientError", INVALID), ("ServerError", LOST), ("APIError", BROKEN)),
    ),
    (
        ("stripe", "stripe._error", "stripe.error"),
        (
            ("APIConnectionError", LOST, INSIDE),
            ("RateLimitError", THROTTLED),
            ("AuthenticationError", NOT_SIGNED_IN),
            ("PermissionError", FORBIDDEN),
            ("IdempotencyError", CONFLICT),
            ("InvalidRequestError", INVALID),
            ("StripeError", BROKEN, INSIDE),
        ),
    ),
    (
        ("slack_sdk.errors",),
        (("SlackRequestError", INVALID), ("SlackClientError", BROKEN, INSIDE)),
    ),
    (
        ("github.GithubException", "github"),
        (
            ("RateLimitExceededException", THROTTLED),
            ("BadCredentialsException", NOT_SIGNED_IN),
            ("GithubException", BROKEN),
        ),
    ),
    (
        ("elastic_transport", "elastic_transport._exceptions"),
        (("ConnectionTimeout", EXPIRED), ("ConnectionError", LOST, INSIDE), ("TransportError", LOST, INSIDE)),
    ),
    (
        ("paramiko.ssh_exception",),
        (
            ("AuthenticationException", NOT_SIGNED_IN),
            ("BadHostKeyException", UNTRUSTED),
            ("NoValidConnectionsError", REFUSED),
            ("SSHException", LOST, INSIDE),
        ),
    ),
    (
        ("docker.errors",),
        (("ImageNotFound", MISSING), ("NotFound", MISSING), ("DockerException", BROKEN, INSIDE)),
    ),
    (
        ("telegram.error",),
        (
            ("InvalidToken", NOT_SIGNED_IN),
            ("Forbidden", FORBIDDEN),
            ("BadRequest", INVALID),
            ("TimedOut", EXPIRED, INSIDE),
            ("NetworkError", LOST, INSIDE),
            ("RetryAfter", THROTTLED),
            ("Conflict", CONFLICT),
        ),
    ),
    (
        ("mcp.shared.exceptions",),
        # By number: see codes.JSONRPC.
        (("MCPError", BROKEN), ("McpError", BROKEN)),
    ),
    # A sign-in that was refused or that cannot be trusted. Repeating it would ask the user again.
    (("mcp.client.auth.exceptions",), (("OAuthFlowError", NOT_SIGNED_IN),)),
    (
        ("a2a.utils.errors",),
        (
            ("TaskNotFoundError", MISSING),
            ("TaskNotCancelableError", CONFLICT),
            ("UnsupportedOperationError", INVALID),
            ("ContentTypeNotSupportedError", INVALID),
            ("InvalidParamsError", INVALID),
            ("InvalidRequestError", INVALID),
            ("MethodNotFoundError", MISSING),
        ),
    ),
    (
        ("a2a.client.errors",),
        (("A2AClientTimeoutError", EXPIRED, INSIDE), ("A2AClientError", BROKEN, INSIDE)),
    ),
    (
        ("grpc",),
        (
            ("RpcError", BROKEN, "grpc"),
            ("FutureTimeoutError", EXPIRED),
            ("FutureCancelledError", CANCELLED),
        ),
    ),
    (
        ("google.api_core.exceptions",),
        (("RetryError", EXPIRED, INSIDE), ("GoogleAPIError", BROKEN)),
    ),
    (
        ("google.auth.exceptions",),
        (
            ("TransportError", REFUSED),
            ("RefreshError", NOT_SIGNED_IN),
            ("DefaultCredentialsError", NOT_SIGNED_IN),
        ),
    ),
    (
        ("botocore.exceptions",),
        (
            ("EndpointConnectionError", REFUSED),
            ("ProxyConnectionError", REFUSED),
            ("ConnectTimeoutError", NOT_STARTED_IN_TIME),
            ("ReadTimeoutError", EXPIRED),
            ("SSLError", LOST, INSIDE),
            ("HTTPClientError", LOST),
            ("ConnectionError", LOST),
            ("NoCredentialsError", NOT_SIGNED_IN),
            ("PartialCredentialsError", NOT_SIGNED_IN),
            ("CredentialRetrievalError", NOT_SIGNED_IN),
            ("TokenRetrievalError", NOT_SIGNED_IN),
            ("UnauthorizedSSOTokenError", NOT_SIGNED_IN),
            ("ParamValidationError", INVALID),
            ("ValidationError", INVALID),
            ("NoRegionError", INVALID),
            ("IncompleteReadError", LOST),
            ("BotoCoreError", BROKEN),
            ("ClientError", BROKEN),  # by its response: see `responses`
        ),
    ),
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
    (("pymysql.err", "MySQLdb._exceptions", "mysql.connector.errors"), _dbapi("sqlstate")),
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
            ("OutOfMemoryError", REFUSED),
            ("WatchError", ABORTED),
            ("LockError", CONFLICT),
            ("NoScriptError", MISSING),
            ("DataError", INVALID),
            ("ResponseError", INVALID),
            ("TimeoutError", EXPIRED, INSIDE),
            ("ConnectionError", LOST, INSIDE),
            ("RedisError", BROKEN),
        ),
    ),
    (
        ("pymongo.errors",),
        (
            ("ServerSelectionTimeoutError", REFUSED),
            ("WaitQueueTimeoutError", NOT_STARTED_IN_TIME),
            ("NetworkTimeout", EXPIRED, INSIDE),
            ("NotPrimaryError", REFUSED),
            ("AutoReconnect", LOST, INSIDE),
            ("ConnectionFailure", LOST, INSIDE),
            ("ExecutionTimeout", EXPIRED),
            ("WTimeoutError", EXPIRED),
            ("DuplicateKeyError", CONFLICT),
            ("CursorNotFound", MISSING),
            ("DocumentTooLarge", INVALID),
            ("WriteError", INVALID),
            ("ConfigurationError", INVALID),
            ("InvalidName", INVALID),
            ("InvalidURI", INVALID),
            ("PyMongoError", BROKEN),
        ),
    ),
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

ROWS: dict[str, Row] = {
    f"{module}.{name}": Row(meaning, *reader)
    for modules, rows in LIBRARIES
    for module in modules
    for name, meaning, *reader in rows
}


def names(cls: type) -> list[str]:
    """Return the dotted names of a class and its bases, nearest first."""
    return [f"{base.__module__}.{base.__qualname__}" for base in cls.__mro__]


def row_for_class(cls: type) -> Row | None:
    """Return the row of the nearest class along the MRO that has one, or None."""
    for name in names(cls):
        row = ROWS.get(name)
        if row is not None:
            return row
    return None
