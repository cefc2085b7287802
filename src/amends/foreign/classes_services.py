"""The exceptions of the SDKs of clouds and other services."""

from __future__ import annotations

from amends.foreign.outcomes import (
    BROKEN,
    CANCELLED,
    CONFLICT,
    EXPIRED,
    FORBIDDEN,
    INVALID,
    LOST,
    MISSING,
    NOT_SIGNED_IN,
    NOT_STARTED_IN_TIME,
    REFUSED,
    THROTTLED,
    UNTRUSTED,
)
from amends.foreign.row import INSIDE, Library

__all__ = ["LIBRARIES"]

LIBRARIES: tuple[Library, ...] = (
    (
        ("azure.core.exceptions",),
        (
            ("ServiceRequestTimeoutError", NOT_STARTED_IN_TIME),
            # Over aiohttp, azure-core raises it too if the connection breaks after the request was sent.
            ("ServiceRequestError", LOST, INSIDE),
            ("ServiceResponseTimeoutError", EXPIRED),
            ("ServiceResponseError", LOST, INSIDE),
            ("IncompleteReadError", LOST),
            ("ClientAuthenticationError", NOT_SIGNED_IN),
            ("SerializationError", INVALID),
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
            ("SignatureVerificationError", INVALID),
            ("StripeError", BROKEN, INSIDE),
        ),
    ),
    (
        ("slack_sdk.errors",),
        (
            ("SlackRequestError", INVALID),
            ("SlackObjectFormationError", INVALID),
            ("SlackClientConfigurationError", INVALID),
            ("BotUserAccessError", INVALID),
            ("SlackClientNotConnectedError", REFUSED),
            ("SlackTokenRotationError", NOT_SIGNED_IN, INSIDE),
            ("SlackClientError", BROKEN, INSIDE),
        ),
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
        (
            ("ConnectionTimeout", EXPIRED, INSIDE),
            ("ConnectionError", LOST, INSIDE),
            ("SerializationError", INVALID),
            ("TransportError", LOST, INSIDE),
        ),
    ),
    (("elasticsearch.exceptions", "elasticsearch"), (("UnsupportedProductError", UNTRUSTED),)),
    (
        ("paramiko.ssh_exception",),
        (
            ("AuthenticationException", NOT_SIGNED_IN),
            ("BadHostKeyException", UNTRUSTED),
            ("NoValidConnectionsError", REFUSED),
            ("ProxyCommandFailure", REFUSED),
            ("ChannelException", REFUSED, "ssh"),
            ("IncompatiblePeer", UNTRUSTED),
            ("ConfigParseError", INVALID),
            ("CouldNotCanonicalize", INVALID),
            ("SSHException", LOST, INSIDE),
        ),
    ),
    (
        ("docker.errors",),
        (
            ("ImageNotFound", MISSING),
            ("NotFound", MISSING),
            ("ContextNotFound", MISSING),
            ("ContextAlreadyExists", CONFLICT),
            ("InvalidVersion", INVALID),
            ("InvalidRepository", INVALID),
            ("InvalidConfigFile", INVALID),
            ("InvalidArgument", INVALID),
            ("TLSParameterError", INVALID),
            ("NullResource", INVALID),
            ("MissingContextParameter", INVALID),
            ("DockerException", BROKEN, INSIDE),
        ),
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
    # What the client checks by itself, before it sends anything.
    (("kubernetes.client.exceptions",), (("OpenApiException", INVALID), ("ApiException", BROKEN))),
    (("kubernetes.config.config_exception",), (("ConfigException", INVALID),)),
    (("twilio.base.exceptions",), (("TwilioException", BROKEN, INSIDE),)),
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
            ("ParamValidationError", INVALID),
            ("ValidationError", INVALID),
            ("NoRegionError", INVALID),
            ("BaseEndpointResolverError", INVALID),
            ("EndpointProviderError", INVALID),
            ("DataNotFoundError", INVALID),  # an unknown service
            ("UnknownRegionError", INVALID),
            ("ProfileNotFound", INVALID),
            ("ConfigNotFound", INVALID),
            ("ConfigParseError", INVALID),
            ("InvalidConfigError", INVALID),
            ("InvalidRetryConfigurationError", INVALID),
            ("MissingParametersError", INVALID),
            ("InvalidDNSNameError", INVALID),
            ("OperationNotPageableError", INVALID),
            ("UnknownSignatureVersionError", INVALID),
            ("MissingDependencyException", INVALID),
            ("NoAuthTokenError", NOT_SIGNED_IN),
            ("UnknownCredentialError", NOT_SIGNED_IN),
            ("UnknownTokenProviderError", NOT_SIGNED_IN),
            ("RefreshWithMFAUnsupportedError", NOT_SIGNED_IN),
            ("SSOError", NOT_SIGNED_IN),
            ("LoginError", NOT_SIGNED_IN),
            ("MetadataRetrievalError", NOT_SIGNED_IN),
            ("CapacityNotAvailableError", REFUSED),
            ("ChecksumError", LOST),
            ("FlexibleChecksumError", LOST),
            ("WaiterError", BROKEN, "waiter"),
            ("IncompleteReadError", LOST),
            ("BotoCoreError", BROKEN),
            ("ClientError", BROKEN),  # by its response: see `responses`
        ),
    ),
)
