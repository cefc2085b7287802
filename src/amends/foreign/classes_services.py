"""The exceptions of the SDKs of services, and of frameworks for agents."""

from __future__ import annotations

from amends.foreign.outcomes import (
    BROKEN,
    CANCELLED,
    CONFLICT,
    DENIED_CONTENT,
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
    TOO_LONG,
    UNTRUSTED,
)
from amends.foreign.row import INSIDE, Library

__all__ = ["LIBRARIES"]

LIBRARIES: tuple[Library, ...] = (
    (
        # `__module__` of these classes is the package; they are defined in the private module.
        ("openai", "openai._exceptions", "anthropic", "anthropic._exceptions"),
        (
            ("APITimeoutError", EXPIRED, INSIDE),
            ("APIConnectionError", LOST, INSIDE),
            ("APIError", BROKEN, INSIDE),
        ),
    ),
    (
        ("openai", "openai._exceptions"),
        (
            ("LengthFinishReasonError", TOO_LONG),  # the answer was cut at max_tokens
            ("ContentFilterFinishReasonError", DENIED_CONTENT),
            ("InvalidWebhookSignatureError", INVALID),
            # The base class itself: the client could not be made, because credentials or an address are missing.
            ("OpenAIError", INVALID),
        ),
    ),
    (
        ("openai._exceptions",),
        (
            ("SubjectTokenProviderError", NOT_SIGNED_IN),
            ("WebSocketConnectionClosedError", LOST, INSIDE),
            ("WebSocketQueueFullError", FULL),
        ),
    ),
    (("anthropic", "anthropic._exceptions"), (("AnthropicError", INVALID),)),
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
            ("PaymentRequiredError", OVER_QUOTA),
            ("RejectedRequestError", DENIED_CONTENT),
            ("GuardrailRaisedException", DENIED_CONTENT),
            ("BlockedPiiEntityError", DENIED_CONTENT),
            ("RateLimitError", THROTTLED),
            ("AuthenticationError", NOT_SIGNED_IN),
            ("PermissionDeniedError", FORBIDDEN),
            ("NotFoundError", MISSING),
            ("Timeout", EXPIRED, INSIDE),
            ("ServiceUnavailableError", LOST, INSIDE),
            ("BadGatewayError", LOST, INSIDE),
            ("InternalServerError", BROKEN, INSIDE),
            ("APIConnectionError", LOST, INSIDE),
            ("MidStreamFallbackError", LOST, INSIDE),
            ("BadRequestError", INVALID),
            ("UnprocessableEntityError", INVALID),
            ("APIError", BROKEN, INSIDE),
            ("APIResponseValidationError", BROKEN),
            ("ModelNotMappedError", INVALID),
            ("OpenAIError", BROKEN, INSIDE),
        ),
    ),
    # All deployments of a model are cooling down after failures.
    (
        ("litellm.types.router",),
        (("RouterRateLimitError", THROTTLED, "cooldown"), ("RouterRateLimitErrorBasic", THROTTLED)),
    ),
    (
        ("pydantic_ai.exceptions",),
        (
            ("UsageLimitExceeded", OVER_QUOTA),
            ("ContentFilterError", DENIED_CONTENT),
            ("IncompleteToolCall", TOO_LONG),  # the answer was cut at max_tokens
            ("ConcurrencyLimitExceeded", FULL),
            ("RunCancelled", CANCELLED),
            ("SuspendedResponseExpired", MISSING),
            ("UserError", INVALID),
            # The model answered something else than what was asked for; the next answer may be right.
            ("UnexpectedModelBehavior", BROKEN),
            ("ModelAPIError", BROKEN, INSIDE),
            ("AgentRunError", BROKEN, INSIDE),
        ),
    ),
    (
        ("langchain_core.exceptions",),
        (
            ("ContextOverflowError", TOO_LONG),
            ("ModelAuthenticationError", NOT_SIGNED_IN, INSIDE),
            ("ModelPermissionDeniedError", FORBIDDEN, INSIDE),
            ("ModelInvalidRequestError", INVALID, INSIDE),
            ("ModelNotFoundError", MISSING, INSIDE),
            ("ModelRateLimitError", THROTTLED, INSIDE),
            ("ModelTimeoutError", EXPIRED, INSIDE),
            ("ModelConnectionError", LOST, INSIDE),
            ("OutputParserException", BROKEN),  # an answer of the model, not a request
            ("LangChainException", BROKEN, INSIDE),
        ),
    ),
    (
        ("langgraph.errors",),
        (
            ("GraphRecursionError", BROKEN),
            ("InvalidUpdateError", INVALID),
            ("EmptyInputError", INVALID),
            ("TaskNotFound", MISSING),
            ("NodeTimeoutError", EXPIRED),
            ("NodeCancelledError", CANCELLED),
            ("GraphBubbleUp", CANCELLED),  # an interrupt: a person has to answer
        ),
    ),
    (
        ("agents.exceptions",),
        (
            ("InputGuardrailTripwireTriggered", DENIED_CONTENT),
            ("OutputGuardrailTripwireTriggered", DENIED_CONTENT),
            ("ToolInputGuardrailTripwireTriggered", DENIED_CONTENT),
            ("ToolOutputGuardrailTripwireTriggered", DENIED_CONTENT),
            ("ModelRefusalError", DENIED_CONTENT),
            ("ToolTimeoutError", EXPIRED, INSIDE),
            ("MCPToolCancellationError", CANCELLED),
            ("UserError", INVALID),
            ("AgentsException", BROKEN, INSIDE),
        ),
    ),
    (
        ("instructor.exceptions", "instructor.core.exceptions", "instructor.v2.core.errors"),
        (
            ("IncompleteOutputException", TOO_LONG),  # the answer was cut at max_tokens
            ("TokenBudgetError", OVER_QUOTA),
            ("ConfigurationError", INVALID),
            ("ModeError", INVALID),
            ("ClientError", INVALID, INSIDE),
            ("InstructorRetryException", BROKEN, INSIDE),
            ("InstructorError", BROKEN, INSIDE),
        ),
    ),
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
