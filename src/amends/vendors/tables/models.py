"""Further services that run models; most of them use OpenAI's shapes with a few words of their own."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CONTEXT,
    DISABLED,
    FORBIDDEN,
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
from amends.vendors.model import Vendor, words

__all__ = ["VENDORS"]

_CHAT = ("/chat/completions", "/completions", "/embeddings", "/chat", "/embed", "/rerank", "/generate")

VENDORS = (
    Vendor(
        name="mistral",
        title="Mistral",
        docs="https://docs.mistral.ai/api/",
        words=words(
            (OVERLOADED, "service_tier_capacity_exceeded capacity_exceeded 3505"),
            (RATE, "rate_limited 1300"),
            (INVALID, "invalid_model 1500 invalid_request_message_order 3230"),
            (CONTEXT, "3051"),
        ),
        headers=("mistral-correlation-id", "x-kong-request-id"),
        computes=_CHAT,
        numbers=True,
    ),
    Vendor(
        name="cohere",
        title="Cohere",
        docs="https://docs.cohere.com/reference/errors",
        statuses={498: REFUSED, 499: UNAVAILABLE},
        headers=("x-endpoint-monthly-call-limit", "x-trial-endpoint-call-limit", "x-debug-trace-id"),
        computes=_CHAT,
    ),
    Vendor(
        name="groq",
        title="Groq",
        docs="https://console.groq.com/docs/errors",
        words=words(
            ({413: TOO_LARGE, 0: RATE}, "rate_limit_exceeded"),
            (NOT_FOUND, "model_decommissioned model_not_active"),
            (INVALID, "json_validate_failed tool_use_failed"),
            (QUOTA, "blocked_api_access spend_limit_reached"),
            (DISABLED, "organization_restricted"),
            (OVERLOADED, "over_capacity capacity_exceeded flex_tier_capacity_exceeded"),
        ),
        statuses={498: OVERLOADED},
        headers=("x-groq-region",),
        computes=_CHAT,
    ),
    Vendor(
        name="openrouter",
        title="OpenRouter",
        docs="https://openrouter.ai/docs/api-reference/errors",
        words=words(
            (QUOTA, "insufficient_credits key_limit_exceeded payment_required openrouter_credits"),
            (QUOTA, "openrouter_guardrail_budget openrouter_workspace_budget openrouter_key_limit"),
            # Requests in flight fill the budget; it is free again when they end.
            (RATE, "in_flight_budget_exhausted openrouter_in_flight_budget"),
            (TOO_LARGE, "weight_exceeds_budget max_tokens_exceeded string_too_long image_too_large"),
            (REFUSED, "@moderation moderation content_policy_violation guardrail content_filter refusal"),
            ({400: REFUSED, 403: REFUSED, 422: REFUSED}, "@guardrail"),
            (BAD_KEY, "authentication"),
            (TIMEOUT, "timeout"),
            (UNAVAILABLE, "provider_unavailable"),
            (OVERLOADED, "provider_overloaded no_providers_available no_available_providers"),
            (CONTEXT, "context_length_exceeded token_limit_exceeded"),
        ),
        statuses={402: QUOTA},
        computes=_CHAT,
    ),
    Vendor(
        name="together",
        title="Together AI",
        docs="https://docs.together.ai/docs/error-codes",
        words=words(
            (QUOTA, "credit_limit insufficient_credits payment_required"),
            (RATE, "rate_limit dynamic_request_limited dynamic_token_limited"),
            (OVERLOADED, "overloaded engine_overloaded"),
            (CONTEXT, "input_too_long"),
        ),
        headers=("x-together-", "x-api-received"),
        computes=_CHAT,
    ),
    Vendor(
        name="huggingface",
        title="Hugging Face",
        docs="https://huggingface.co/docs/text-generation-inference/reference/api_reference",
        words=words(
            (OVERLOADED, "overloaded"),
            (INVALID, "validation"),
            ({424: INTERNAL, 0: INTERNAL}, "generation incomplete_generation"),
            (NOT_READY, "loading"),
            (FORBIDDEN, "GatedRepo DisabledRepo"),
            (NOT_FOUND, "RepoNotFound RevisionNotFound EntryNotFound"),
        ),
        headers=("x-error-code", "x-error-message", "x-repo-commit", "x-compute-type", "x-inference-id"),
        computes=("/models/", *_CHAT),
    ),
    Vendor(
        name="vllm",
        title="vLLM and other OpenAI-compatible servers",
        docs="https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
        words=words(
            (OVERLOADED, "ServiceUnavailableError EngineDeadError"),
            (NOT_FOUND, "NotFoundError"),
            (CONTEXT, "exceed_context_size_error"),
            (NOT_READY, "unavailable_error"),
            (INVALID, "not_supported_error"),
        ),
        unless={
            "BadRequestError": INVALID,
            "InternalServerError": INTERNAL,
            "UnprocessableEntityError": INVALID,
            "AuthenticationError": BAD_KEY,
            "PermissionDeniedError": FORBIDDEN,
            "RateLimitError": RATE,
        },
        computes=_CHAT,
    ),
    Vendor(
        name="ollama",
        title="Ollama",
        # Errors are prose only: the status decides.
        docs="https://github.com/ollama/ollama/blob/main/docs/api.md",
        computes=("/api/generate", "/api/chat", "/api/embed"),
    ),
    Vendor(
        name="deepseek",
        title="DeepSeek",
        docs="https://api-docs.deepseek.com/quick_start/error_codes",
        words=words((QUOTA, "insufficient_balance")),
        headers=("x-ds-trace-id",),
        computes=_CHAT,
    ),
    Vendor(
        name="xai",
        title="xAI",
        docs="https://docs.x.ai/docs/debugging",
        words=words(
            (QUOTA, "personal-team-blocked:spending-limit team-blocked:spending-limit"),
            (DISABLED, "team-blocked"),
        ),
        headers=("x-zero-data-retention", "x-metrics-e2e-ms"),
        computes=_CHAT,
    ),
    Vendor(
        name="cerebras",
        title="Cerebras",
        docs="https://inference-docs.cerebras.ai/support/error",
        words=words(
            # These are limits per minute, hour or day; the headers say which one is exhausted.
            (
                RATE,
                "request_quota_exceeded token_quota_exceeded too_many_requests_error too_many_tokens_error",
            ),
            (OVERLOADED, "queue_exceeded"),
            (CONTEXT, "context_length_exceeded"),
            (BAD_KEY, "wrong_api_key"),
        ),
        computes=_CHAT,
    ),
    Vendor(
        name="elevenlabs",
        title="ElevenLabs",
        docs="https://elevenlabs.io/docs/developer-guides/errors",
        words=words(
            (QUOTA, "quota_exceeded"),
            (RATE, "too_many_concurrent_requests"),
            (OVERLOADED, "system_busy"),
            (TOO_LARGE, "max_character_limit_exceeded"),
            (BAD_KEY, "invalid_api_key needs_authorization missing_permissions"),
            (NOT_FOUND, "voice_not_found model_not_found"),
            (FORBIDDEN, "detected_unusual_activity only_for_creator subscription_required"),
        ),
        computes=("/text-to-speech/", "/speech-to-text"),
    ),
    Vendor(
        name="deepgram",
        title="Deepgram",
        docs="https://developers.deepgram.com/docs/errors",
        words=words(
            (QUOTA, "ASR_PAYMENT_REQUIRED INSUFFICIENT_CREDITS"),
            (RATE, "TOO_MANY_REQUESTS"),
            (BAD_KEY, "INVALID_AUTH"),
            (FORBIDDEN, "INSUFFICIENT_PERMISSIONS"),
        ),
        headers=("dg-request-id", "dg-error"),
        computes=("/v1/listen", "/v1/speak"),
    ),
    Vendor(
        name="fireworks",
        title="Fireworks AI",
        docs="https://docs.fireworks.ai/guides/inference-error-codes",
        # A suspended account is reported with status 412.
        words=words(({412: DISABLED}, "PRECONDITION_FAILED")),
        headers=("fireworks-server-processing-time", "fireworks-prompt-tokens"),
        computes=_CHAT,
    ),
    Vendor(
        name="exa",
        title="Exa",
        docs="https://docs.exa.ai/reference/error-codes",
        words=words(
            (QUOTA, "NO_MORE_CREDITS API_KEY_BUDGET_EXCEEDED"),
            (REFUSED, "CONTENT_FILTER_ERROR PROHIBITED_CONTENT"),
            (BAD_KEY, "INVALID_API_KEY"),
            (FORBIDDEN, "ACCESS_DENIED FEATURE_DISABLED"),
        ),
        computes=("/search", "/contents", "/answer", "/findSimilar"),
    ),
    Vendor(
        name="tavily",
        title="Tavily",
        docs="https://docs.tavily.com/documentation/api-reference/endpoint/search",
        # Errors are prose only; the limits of the plan have statuses of their own.
        statuses={432: QUOTA, 433: QUOTA},
        computes=("/search", "/extract"),
    ),
)
