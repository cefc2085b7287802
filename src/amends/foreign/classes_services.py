"""The exceptions of the SDKs of services, and of frameworks for agents."""

from __future__ import annotations

from amends.foreign.outcomes import (
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
    UNTRUSTED,
)
from amends.foreign.row import INSIDE, Library

__all__ = ["LIBRARIES"]

LIBRARIES: tuple[Library, ...] = (
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
)
