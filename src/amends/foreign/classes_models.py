"""The exceptions of the SDKs of model services, and of frameworks for agents."""

from __future__ import annotations

from amends.foreign.outcomes import (
    BROKEN,
    CANCELLED,
    DENIED_CONTENT,
    EXPIRED,
    FORBIDDEN,
    FULL,
    INVALID,
    LOST,
    MISSING,
    NOT_SIGNED_IN,
    OVER_QUOTA,
    THROTTLED,
    TOO_LONG,
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
)
