"""
Write the vectors of vendors' failures: `src/amends/vectors/vendors.json`.

    python scripts/generate_vendor_vectors.py           write the file
    python scripts/generate_vendor_vectors.py --check   exit 1 if it differs

Each case has the response as the published reference or the SDK's own tests show it, the address of that source, and the
kind of failure that the reference describes. The kinds here are written down independently of the tables in
`amends.vendors`, which a test holds to these vectors.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

FILE = Path(__file__).resolve().parent.parent / "src" / "amends" / "vectors" / "vendors.json"
DATE = {"date": "Mon, 01 Jan 2024 00:00:00 GMT"}
"""2024-01-01T00:00:00Z is 1704067200."""

# kind → code, recovery, who acts, executed (None: by the status).
KINDS: dict[str, tuple[str | None, str, str | None, str | None]] = {
    "rate": ("RATE_LIMITED", "transient", "caller", "no"),
    "quota": ("QUOTA_EXCEEDED", "terminal", "user", "no"),
    "overloaded": ("OVERLOADED", "transient", "caller", None),
    "unavailable": ("SERVICE_UNAVAILABLE", "transient", None, None),
    "context": ("CONTEXT_TOO_LONG", "correctable", "caller", "no"),
    "large": ("CONTENT_TOO_LARGE", "correctable", "caller", "no"),
    "refused": ("CONTENT_REFUSED", "correctable", "caller", "no"),
    "auth": ("UNAUTHENTICATED", "correctable", None, "no"),
    "scope": ("PERMISSION_DENIED", "correctable", "user", "no"),
    "forbidden": ("PERMISSION_DENIED", "terminal", "user", "no"),
    "missing": ("NOT_FOUND", "correctable", "caller", "no"),
    "invalid": (None, "correctable", "caller", "no"),
    "conflict": ("CONFLICT", "correctable", "caller", "no"),
    "progress": ("CONFLICT", "transient", "caller", "no"),
    "not-ready": ("NOT_READY", "transient", "caller", "no"),
    "internal": ("INTERNAL_ERROR", "uncertain", "operator", "maybe"),
    "timeout": ("TIMEOUT", "transient", None, "maybe"),
    "permanent": (None, "terminal", "operator", "no"),
    "card": ("PAYMENT_REQUIRED", "correctable", "user", "no"),
    "pay": ("PAYMENT_REQUIRED", "correctable", None, "no"),
    "gateway": ("BAD_GATEWAY", "transient", None, "maybe"),
    "cancelled": ("CANCELLED", "terminal", None, "maybe"),
}
ACTIONS = {"transient": "retry", "correctable": "fix", "terminal": "escalate", "uncertain": "retry"}


class Case(NamedTuple):
    """One response and what it means."""

    vendor: str
    source: str
    status: int | None
    body: Any
    kind: str
    word: str | None = None
    wait: float | None = None
    headers: dict[str, str] = {}  # noqa: RUF012 - a NamedTuple, and never changed
    field: str | None = None
    trace: str | None = None
    doc: str | None = None
    more: dict[str, str] = {}  # noqa: RUF012
    """Further details, beside the code word."""


def openai() -> Iterator[Case]:
    """OpenAI and servers with its shapes."""
    where = "https://platform.openai.com/docs/guides/error-codes"

    def body(kind: str, code: str | None, param: str | None = None) -> dict[str, Any]:
        return {"error": {"message": "…", "type": kind, "param": param, "code": code}}

    for status, kind, code, means in (
        (429, "insufficient_quota", "insufficient_quota", "quota"),
        (429, "requests", "rate_limit_exceeded", "rate"),
        (429, "tokens", "rate_limit_exceeded", "rate"),
        (429, "invalid_request_error", "billing_hard_limit_reached", "quota"),
        (400, "invalid_request_error", "billing_hard_limit_reached", "quota"),
        (429, "billing_not_active", "billing_not_active", "quota"),
        (401, "invalid_request_error", "invalid_api_key", "auth"),
        (403, "request_forbidden", "unsupported_country_region_territory", "forbidden"),
        (404, "invalid_request_error", "model_not_found", "missing"),
        (400, "invalid_request_error", "content_policy_violation", "refused"),
        (400, "image_generation_user_error", "moderation_blocked", "refused"),
        (400, "invalid_request_error", "invalid_prompt", "refused"),
        (401, "invalid_request_error", "account_deactivated", "forbidden"),
        (503, "server_error", "slow_down", "overloaded"),
    ):
        yield Case("openai", where, status, body(kind, code), means, code)
    yield Case(
        "openai",
        where,
        400,
        body("invalid_request_error", "context_length_exceeded", "messages"),
        "context",
        "context_length_exceeded",
        field="messages",
    )
    yield Case(
        "openai",
        where,
        400,
        body("invalid_request_error", "string_above_max_length", "input"),
        "large",
        "string_above_max_length",
        field="input",
    )
    yield Case(
        "openai",
        where,
        400,
        body("invalid_request_error", "unsupported_parameter", "max_tokens"),
        "invalid",
        "unsupported_parameter",
        field="max_tokens",
    )
    yield Case("openai", where, 500, body("server_error", None), "internal", "server_error")
    yield Case("openai", where, 503, body("server_error", None), "unavailable", "server_error")
    limits = "https://platform.openai.com/docs/guides/rate-limits"
    yield Case(
        "openai",
        limits,
        429,
        body("tokens", "rate_limit_exceeded"),
        "rate",
        "rate_limit_exceeded",
        360.0,
        {
            "x-ratelimit-remaining-requests": "59",
            "x-ratelimit-reset-requests": "1s",
            "x-request-id": "req_1",
            "x-ratelimit-remaining-tokens": "0",
            "x-ratelimit-reset-tokens": "6m0s",
        },
        trace="req_1",
    )
    yield Case(
        "openai",
        limits,
        429,
        body("requests", "rate_limit_exceeded"),
        "rate",
        "rate_limit_exceeded",
        1.5,
        {"retry-after-ms": "1500", "retry-after": "2"},
    )
    yield Case(
        "openai",
        limits,
        429,
        body("requests", "rate_limit_exceeded"),
        "rate",
        "rate_limit_exceeded",
        20.0,
        {"retry-after": "20"},
    )
    codex = "https://github.com/openai/codex/blob/main/codex-rs/codex-api"
    yield Case(
        "openai",
        codex,
        429,
        {
            "error": {
                "type": "usage_limit_reached",
                "message": "…",
                "plan_type": "plus",
                "resets_in_seconds": 7200,
            }
        },
        "quota",
        "usage_limit_reached",
        7200.0,
    )
    yield Case(
        "openai",
        codex,
        429,
        {"error": {"type": "usage_not_included", "message": "…"}},
        "quota",
        "usage_not_included",
    )
    azure = "https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter"
    yield Case(
        "azure-openai",
        azure,
        400,
        {
            "error": {
                "message": "…",
                "type": None,
                "param": "prompt",
                "code": "content_filter",
                "status": 400,
                "innererror": {
                    "code": "ResponsibleAIPolicyViolation",
                    "content_filter_result": {"hate": {"filtered": True, "severity": "high"}},
                },
            }
        },
        "refused",
        "ResponsibleAIPolicyViolation",
        field="prompt",
    )
    quota = "https://learn.microsoft.com/azure/ai-services/openai/how-to/quota"
    yield Case(
        "azure-openai",
        quota,
        429,
        {"error": {"code": "429", "message": "…"}},
        "rate",
        None,
        26.0,
        {"retry-after": "26", "x-ms-region": "East US", "apim-request-id": "a-1"},
        trace="a-1",
    )
    yield Case(
        "azure-openai",
        quota,
        429,
        {"error": {"code": "RateLimitReached", "message": "…"}},
        "rate",
        "RateLimitReached",
        4.0,
        {"retry-after": "4"},
    )
    yield Case(
        "azure-openai",
        quota,
        404,
        {"error": {"code": "DeploymentNotFound", "message": "…"}},
        "missing",
        "DeploymentNotFound",
    )
    yield Case(
        "azure-openai",
        quota,
        429,
        {"error": {"code": "NoCapacity", "message": "…"}},
        "overloaded",
        "NoCapacity",
    )
    yield Case(
        "azure-openai",
        quota,
        429,
        {"error": {"code": "insufficient_quota", "message": "…"}},
        "quota",
        "insufficient_quota",
    )
    yield Case("azure-openai", quota, 401, {"statusCode": 401, "message": "…"}, "auth")
    models = "https://docs.github.com/github-models/prototyping-with-ai-models"
    yield Case(
        "azure-openai",
        models,
        413,
        {"error": {"code": "tokens_limit_reached", "message": "…"}},
        "context",
        "tokens_limit_reached",
    )


def anthropic() -> Iterator[Case]:
    """Anthropic."""
    where = "https://docs.anthropic.com/en/api/errors"

    def body(kind: str, **more: Any) -> dict[str, Any]:
        return {"type": "error", "error": {"type": kind, "message": "…", **more}, "request_id": "req_011"}

    for status, kind, means in (
        (400, "invalid_request_error", "invalid"),
        (401, "authentication_error", "auth"),
        (402, "billing_error", "quota"),
        (403, "permission_error", "forbidden"),
        (404, "not_found_error", "missing"),
        (413, "request_too_large", "large"),
        (429, "rate_limit_error", "rate"),
        (500, "api_error", "internal"),
        (504, "timeout_error", "timeout"),
        (529, "overloaded_error", "overloaded"),
    ):
        yield Case("anthropic", where, status, body(kind), means, kind, trace="req_011")
    limits = "https://docs.anthropic.com/en/api/rate-limits"
    yield Case(
        "anthropic",
        limits,
        429,
        body("rate_limit_error"),
        "rate",
        "rate_limit_error",
        20.0,
        {
            **DATE,
            "anthropic-ratelimit-requests-remaining": "0",
            "anthropic-ratelimit-requests-reset": "2024-01-01T00:00:20Z",
            "anthropic-ratelimit-tokens-remaining": "9000",
            "anthropic-ratelimit-tokens-reset": "2024-01-01T00:00:59Z",
        },
        trace="req_011",
    )
    yield Case(
        "anthropic",
        limits,
        429,
        body("rate_limit_error"),
        "rate",
        "rate_limit_error",
        13.0,
        {"retry-after": "13", "anthropic-ratelimit-tokens-remaining": "0"},
        trace="req_011",
    )
    yield Case(
        "anthropic",
        limits,
        429,
        body("rate_limit_error", details={"error_code": "workspace_spend_limit_exceeded"}),
        "quota",
        "workspace_spend_limit_exceeded",
        trace="req_011",
    )
    yield Case(
        "anthropic",
        limits,
        400,
        body("invalid_request_error", details={"error_code": "credit_balance_exhausted"}),
        "quota",
        "credit_balance_exhausted",
        trace="req_011",
    )
    yield Case(
        "anthropic",
        where,
        None,
        {
            "text": 'event: message_start\ndata: {"type":"message_start"}\n\n'
            'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"…"}}\n\n'
        },
        "overloaded",
        "overloaded_error",
    )
    yield Case(
        "anthropic", where, None, body("overloaded_error"), "overloaded", "overloaded_error", trace="req_011"
    )


def google() -> Iterator[Case]:
    """Google Cloud, Gemini, and the older REST errors."""
    where = "https://cloud.google.com/apis/design/errors"
    gemini = "https://ai.google.dev/gemini-api/docs/troubleshooting"
    legacy = "https://developers.google.com/workspace/drive/api/guides/handle-errors"

    def body(code: int, status: str, *details: dict[str, Any]) -> dict[str, Any]:
        return {"error": {"code": code, "message": "…", "status": status, "details": list(details)}}

    def info(reason: str, **metadata: str) -> dict[str, Any]:
        return {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": reason,
            "domain": "googleapis.com",
            "metadata": metadata,
        }

    def quota(name: str) -> dict[str, Any]:
        return {
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaMetric": "generativelanguage.googleapis.com/x", "quotaId": name}],
        }

    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}
    for code, status, means in (
        (400, "INVALID_ARGUMENT", "invalid"),
        (400, "FAILED_PRECONDITION", "invalid"),
        (401, "UNAUTHENTICATED", "auth"),
        (403, "PERMISSION_DENIED", "forbidden"),
        (404, "NOT_FOUND", "missing"),
        (409, "ABORTED", "progress"),
        (409, "ALREADY_EXISTS", "conflict"),
        (429, "RESOURCE_EXHAUSTED", "rate"),
        (500, "INTERNAL", "internal"),
        (503, "UNAVAILABLE", "unavailable"),
        (504, "DEADLINE_EXCEEDED", "timeout"),
    ):
        yield Case("google", where, code, body(code, status), means, status)
    yield Case(
        "google",
        gemini,
        429,
        body(429, "RESOURCE_EXHAUSTED", quota("GenerateRequestsPerMinutePerProjectPerModel"), retry),
        "rate",
        None,
        34.07,
    )
    yield Case(
        "google",
        gemini,
        429,
        body(429, "RESOURCE_EXHAUSTED", quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), retry),
        "quota",
    )
    yield Case(
        "google",
        where,
        429,
        body(
            429,
            "RESOURCE_EXHAUSTED",
            info(
                "RATE_LIMIT_EXCEEDED", quota_limit="RequestsPerMinutePerProject", service="x.googleapis.com"
            ),
        ),
        "rate",
        "RATE_LIMIT_EXCEEDED",
    )
    yield Case(
        "google",
        where,
        429,
        body(429, "RESOURCE_EXHAUSTED", info("RATE_LIMIT_EXCEEDED", quota_limit="RequestsPerDayPerProject")),
        "quota",
        "RATE_LIMIT_EXCEEDED",
    )
    yield Case(
        "google",
        gemini,
        400,
        body(400, "INVALID_ARGUMENT", info("API_KEY_INVALID")),
        "auth",
        "API_KEY_INVALID",
    )
    for reason, code, means in (
        ("SERVICE_DISABLED", 403, "forbidden"),
        ("BILLING_DISABLED", 403, "quota"),
        ("ACCESS_TOKEN_SCOPE_INSUFFICIENT", 403, "scope"),
        ("ACCESS_TOKEN_EXPIRED", 401, "auth"),
        ("CONSUMER_SUSPENDED", 403, "forbidden"),
        ("API_KEY_SERVICE_BLOCKED", 403, "forbidden"),
        ("RESOURCE_QUOTA_EXCEEDED", 429, "quota"),
        ("CREDENTIALS_MISSING", 401, "auth"),
    ):
        status = (
            "PERMISSION_DENIED" if code == 403 else "UNAUTHENTICATED" if code == 401 else "RESOURCE_EXHAUSTED"
        )
        yield Case("google", where, code, body(code, status, info(reason)), means, reason)
    yield Case(
        "google",
        where,
        400,
        body(
            400,
            "INVALID_ARGUMENT",
            {
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [{"field": "contents", "description": "…"}],
            },
        ),
        "invalid",
        None,
        field="contents",
    )

    def older(code: int, reason: str) -> dict[str, Any]:
        return {
            "error": {
                "code": code,
                "message": "…",
                "errors": [{"domain": "usageLimits", "reason": reason, "message": "…"}],
            }
        }

    for code, reason, means in (
        (403, "userRateLimitExceeded", "rate"),
        (403, "rateLimitExceeded", "rate"),
        (429, "rateLimitExceeded", "rate"),
        (403, "dailyLimitExceeded", "quota"),
        (403, "quotaExceeded", "quota"),
        (403, "storageQuotaExceeded", "quota"),
        (403, "accessNotConfigured", "forbidden"),
        (403, "insufficientFilePermissions", "forbidden"),
        (401, "authError", "auth"),
        (400, "keyInvalid", "auth"),
        (404, "notFound", "missing"),
        (503, "backendError", "unavailable"),
        (409, "duplicate", "conflict"),
        (400, "resourceNotReady", "not-ready"),
        (403, "responseTooLarge", "large"),
    ):
        yield Case("google", legacy, code, older(code, reason), means, reason)
    yield Case(
        "google",
        gemini,
        None,
        {
            "text": 'data: {"candidates": [{"content": {"parts": [{"text": "a"}]}}]}\n\n'
            '{\n  "error": {\n    "code": 503,\n    "message": "…",\n    "status": "UNAVAILABLE"\n  }\n}\n'
        },
        "unavailable",
        "UNAVAILABLE",
    )


def models() -> Iterator[Case]:
    """Further services that run models."""
    for vendor, where, status, body, means, word, wait in (
        (
            "mistral",
            "https://docs.mistral.ai/api/",
            429,
            {
                "object": "error",
                "message": "…",
                "type": "service_tier_capacity_exceeded",
                "param": None,
                "code": "3505",
            },
            "overloaded",
            "3505",
            None,
        ),
        (
            "mistral",
            "https://docs.mistral.ai/api/",
            429,
            {"object": "error", "message": "…", "type": "rate_limited", "param": None, "code": "1300"},
            "rate",
            "1300",
            None,
        ),
        (
            "mistral",
            "https://docs.mistral.ai/api/",
            400,
            {"object": "error", "message": "…", "type": "invalid_model", "param": None, "code": "1500"},
            "invalid",
            "1500",
            None,
        ),
        ("mistral", "https://docs.mistral.ai/api/", 401, {"detail": "…"}, "auth", None, None),
        (
            "mistral",
            "https://docs.mistral.ai/api/",
            422,
            {"detail": [{"loc": ["body", "model"], "msg": "…", "type": "missing"}]},
            "invalid",
            "missing",
            None,
        ),
        ("cohere", "https://docs.cohere.com/reference/errors", 429, {"message": "…"}, "rate", None, None),
        ("cohere", "https://docs.cohere.com/reference/errors", 401, {"message": "…"}, "auth", None, None),
        ("cohere", "https://docs.cohere.com/reference/errors", 400, {"message": "…"}, "invalid", None, None),
        ("cohere", "https://docs.cohere.com/reference/errors", 402, {"message": "…"}, "quota", None, None),
        (
            "groq",
            "https://console.groq.com/docs/errors",
            413,
            {"error": {"message": "…", "type": "tokens", "code": "rate_limit_exceeded"}},
            "large",
            "rate_limit_exceeded",
            None,
        ),
        (
            "groq",
            "https://console.groq.com/docs/errors",
            429,
            {"error": {"message": "…", "type": "tokens", "code": "rate_limit_exceeded"}},
            "rate",
            "rate_limit_exceeded",
            None,
        ),
        (
            "groq",
            "https://console.groq.com/docs/errors",
            400,
            {"error": {"message": "…", "type": "invalid_request_error", "code": "model_decommissioned"}},
            "missing",
            "model_decommissioned",
            None,
        ),
        (
            "groq",
            "https://console.groq.com/docs/errors",
            400,
            {
                "error": {
                    "message": "…",
                    "type": "invalid_request_error",
                    "code": "json_validate_failed",
                    "failed_generation": "…",
                }
            },
            "invalid",
            "json_validate_failed",
            None,
        ),
        (
            "groq",
            "https://console.groq.com/docs/errors",
            400,
            {"error": {"message": "…", "type": "invalid_request_error", "code": "blocked_api_access"}},
            "quota",
            "blocked_api_access",
            None,
        ),
        (
            "openrouter",
            "https://openrouter.ai/docs/api-reference/errors",
            402,
            {
                "error": {
                    "code": 402,
                    "message": "…",
                    "metadata": {"error_type": "payment_required", "limit_source": "openrouter_credits"},
                }
            },
            "quota",
            "openrouter_credits",
            None,
        ),
        (
            "openrouter",
            "https://openrouter.ai/docs/api-reference/errors",
            403,
            {
                "error": {
                    "code": 403,
                    "message": "…",
                    "metadata": {"limit_source": "openrouter_key_limit", "limit_usd": 5},
                }
            },
            "quota",
            "openrouter_key_limit",
            None,
        ),
        (
            "openrouter",
            "https://openrouter.ai/docs/api-reference/errors",
            503,
            {"error": {"code": 503, "message": "…", "metadata": {"error_type": "provider_overloaded"}}},
            "overloaded",
            "provider_overloaded",
            None,
        ),
        (
            "openrouter",
            "https://openrouter.ai/docs/api-reference/errors",
            400,
            {"error": {"code": 400, "message": "…", "metadata": {"error_type": "context_length_exceeded"}}},
            "context",
            "context_length_exceeded",
            None,
        ),
        (
            "openrouter",
            "https://openrouter.ai/docs/api-reference/errors",
            502,
            {
                "error": {
                    "code": 502,
                    "message": "…",
                    "metadata": {
                        "provider_name": "x",
                        "raw": '{"error":{"type":"overloaded_error","message":"…"}}',
                    },
                }
            },
            "overloaded",
            "overloaded_error",
            None,
        ),
        (
            "together",
            "https://docs.together.ai/docs/error-codes",
            402,
            {"error": {"message": "…", "type": "credit_limit", "param": None, "code": None}},
            "quota",
            "credit_limit",
            None,
        ),
        (
            "together",
            "https://docs.together.ai/docs/error-codes",
            429,
            {"error": {"message": "…", "type": "rate_limit", "param": None, "code": None}},
            "rate",
            "rate_limit",
            None,
        ),
        (
            "together",
            "https://docs.together.ai/docs/error-codes",
            503,
            {"error": {"message": "…", "type": "overloaded", "param": None, "code": None}},
            "overloaded",
            "overloaded",
            None,
        ),
        (
            "huggingface",
            "https://huggingface.co/docs/api-inference/detailed_parameters",
            503,
            {"error": "Model x is currently loading", "estimated_time": 20.0},
            "unavailable",
            None,
            20.0,
        ),
        (
            "huggingface",
            "https://huggingface.co/docs/text-generation-inference",
            429,
            {"error": "Model is overloaded", "error_type": "overloaded"},
            "overloaded",
            "overloaded",
            None,
        ),
        (
            "huggingface",
            "https://huggingface.co/docs/text-generation-inference",
            422,
            {"error": "Input validation error", "error_type": "validation"},
            "invalid",
            "validation",
            None,
        ),
        (
            "huggingface",
            "https://huggingface.co/docs/text-generation-inference",
            424,
            {"error": "Request failed during generation", "error_type": "generation"},
            "internal",
            "generation",
            None,
        ),
        (
            "vllm",
            "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
            400,
            {"object": "error", "message": "…", "type": "BadRequestError", "param": None, "code": 400},
            "invalid",
            "BadRequestError",
            None,
        ),
        (
            "vllm",
            "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
            404,
            {"error": {"message": "…", "type": "NotFoundError", "param": None, "code": 404}},
            "missing",
            "NotFoundError",
            None,
        ),
        (
            "vllm",
            "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
            None,
            {"object": "error", "message": "…", "type": "BadRequestError", "param": None, "code": 400},
            "invalid",
            "BadRequestError",
            None,
        ),
        (
            "ollama",
            "https://github.com/ollama/ollama/blob/main/docs/api.md",
            404,
            {"error": "model 'x' not found"},
            "missing",
            None,
            None,
        ),
        (
            "ollama",
            "https://github.com/ollama/ollama/blob/main/docs/api.md",
            503,
            {"error": "server busy, please try again"},
            "unavailable",
            None,
            None,
        ),
        (
            "deepseek",
            "https://api-docs.deepseek.com/quick_start/error_codes",
            402,
            {
                "error": {
                    "message": "Insufficient Balance",
                    "type": "unknown_error",
                    "param": None,
                    "code": "invalid_request_error",
                }
            },
            "quota",
            "invalid_request_error",
            None,
        ),
        (
            "deepseek",
            "https://api-docs.deepseek.com/quick_start/error_codes",
            503,
            {
                "error": {
                    "message": "…",
                    "type": "service_unavailable_error",
                    "param": None,
                    "code": "service_unavailable_error",
                }
            },
            "unavailable",
            "service_unavailable_error",
            None,
        ),
        (
            "xai",
            "https://docs.x.ai/docs/debugging",
            403,
            {"code": "personal-team-blocked:spending-limit", "error": "You have run out of credits"},
            "quota",
            "personal-team-blocked:spending-limit",
            None,
        ),
        (
            "xai",
            "https://docs.x.ai/docs/debugging",
            400,
            {"code": "Client specified an invalid argument", "error": "…"},
            "invalid",
            None,
            None,
        ),
        (
            "cerebras",
            "https://inference-docs.cerebras.ai/support/error",
            429,
            {
                "message": "…",
                "type": "too_many_tokens_error",
                "param": "quota",
                "code": "token_quota_exceeded",
            },
            "rate",
            "token_quota_exceeded",
            None,
        ),
        (
            "cerebras",
            "https://inference-docs.cerebras.ai/support/error",
            429,
            {"message": "…", "type": "too_many_requests_error", "param": "queue", "code": "queue_exceeded"},
            "overloaded",
            "queue_exceeded",
            None,
        ),
        (
            "elevenlabs",
            "https://elevenlabs.io/docs/developer-guides/errors",
            401,
            {"detail": {"status": "quota_exceeded", "message": "…"}},
            "quota",
            "quota_exceeded",
            None,
        ),
        (
            "elevenlabs",
            "https://elevenlabs.io/docs/developer-guides/errors",
            429,
            {"detail": {"status": "too_many_concurrent_requests", "message": "…"}},
            "rate",
            "too_many_concurrent_requests",
            None,
        ),
        (
            "elevenlabs",
            "https://elevenlabs.io/docs/developer-guides/errors",
            429,
            {"detail": {"status": "system_busy", "message": "…"}},
            "overloaded",
            "system_busy",
            None,
        ),
        (
            "elevenlabs",
            "https://elevenlabs.io/docs/developer-guides/errors",
            401,
            {"detail": {"status": "invalid_api_key", "message": "…"}},
            "auth",
            "invalid_api_key",
            None,
        ),
        (
            "deepgram",
            "https://developers.deepgram.com/docs/errors",
            402,
            {"err_code": "ASR_PAYMENT_REQUIRED", "err_msg": "…", "request_id": "r1"},
            "quota",
            "ASR_PAYMENT_REQUIRED",
            None,
        ),
        (
            "deepgram",
            "https://developers.deepgram.com/docs/errors",
            401,
            {"err_code": "INVALID_AUTH", "err_msg": "…", "request_id": "r1"},
            "auth",
            "INVALID_AUTH",
            None,
        ),
        (
            "deepgram",
            "https://developers.deepgram.com/docs/errors",
            429,
            {"err_code": "TOO_MANY_REQUESTS", "err_msg": "…", "request_id": "r1"},
            "rate",
            "TOO_MANY_REQUESTS",
            None,
        ),
    ):
        yield Case(vendor, where, status, body, means, word, wait)
    yield Case(
        "openrouter",
        "https://openrouter.ai/docs/use-cases/limits",
        402,
        {
            "error": {
                "code": 402,
                "message": "…",
                "metadata": {
                    "error_type": "in_flight_budget_exhausted",
                    "limit_source": "openrouter_in_flight_budget",
                },
            }
        },
        "rate",
        "openrouter_in_flight_budget",
        12.0,
        {"retry-after": "12"},
    )
    yield Case(
        "openrouter",
        "https://openrouter.ai/docs/use-cases/limits",
        429,
        {
            "error": {
                "code": 429,
                "message": "…",
                "metadata": {
                    "headers": {
                        "X-RateLimit-Limit": "20",
                        "X-RateLimit-Remaining": "0",
                        "X-RateLimit-Reset": "1704067230000",
                    }
                },
            }
        },
        "rate",
        None,
        30.0,
        DATE,
    )
    yield Case(
        "cohere",
        "https://docs.cohere.com/reference/errors",
        498,
        {"message": "…"},
        "refused",
        headers={"x-debug-trace-id": "t"},
    )
    yield Case(
        "groq",
        "https://console.groq.com/docs/flex-processing",
        498,
        {"error": {"message": "…", "type": "x", "code": "capacity_exceeded"}},
        "overloaded",
        "capacity_exceeded",
    )
    yield Case(
        "huggingface",
        "https://github.com/huggingface/huggingface_hub",
        403,
        {"error": "…"},
        "forbidden",
        "GatedRepo",
        headers={"x-error-code": "GatedRepo", "x-request-id": "h"},
        trace="h",
    )
    yield Case(
        "huggingface",
        "https://github.com/huggingface/huggingface_hub",
        401,
        {"error": "…"},
        "missing",
        "RepoNotFound",
        headers={"x-error-code": "RepoNotFound"},
    )


def aws() -> Iterator[Case]:
    """AWS."""
    where = "https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html"
    for status, word, means in (
        (400, "ThrottlingException", "rate"),
        (400, "ProvisionedThroughputExceededException", "rate"),
        (400, "RequestLimitExceeded", "rate"),
        (429, "TooManyRequestsException", "rate"),
        (400, "TransactionInProgressException", "progress"),
        (400, "TransactionConflictException", "progress"),
        (400, "ConditionalCheckFailedException", "conflict"),
        (400, "ExpiredTokenException", "auth"),
        (400, "UnrecognizedClientException", "auth"),
        (400, "AccessDeniedException", "forbidden"),
        (400, "ResourceNotFoundException", "missing"),
        (400, "ValidationException", "invalid"),
        (400, "ServiceQuotaExceededException", "quota"),
        (402, "ServiceQuotaExceededException", "quota"),
        (400, "IdempotentParameterMismatchException", "conflict"),
        (400, "ItemCollectionSizeLimitExceededException", "large"),
        (409, "ResourceConflictException", "progress"),
        (409, "OperationAborted", "progress"),
        (500, "InternalServerError", "internal"),
        (503, "ServiceUnavailableException", "overloaded"),
        (429, "ModelNotReadyException", "not-ready"),
        (408, "ModelTimeoutException", "timeout"),
        (424, "ModelErrorException", "internal"),
    ):
        yield Case(
            "aws",
            where,
            status,
            {"__type": f"com.amazonaws.x#{word}", "message": "…"},
            means,
            word,
            headers={"x-amzn-requestid": "R1"},
            trace="R1",
        )
    yield Case(
        "aws",
        where,
        429,
        {"message": "…"},
        "rate",
        "ThrottlingException",
        headers={
            "x-amzn-errortype": "ThrottlingException:http://internal.amazon.com/coral/com.amazon.coral.availability/",
            "x-amzn-requestid": "R2",
        },
        trace="R2",
    )
    yield Case(
        "aws",
        where,
        400,
        {
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
            "CancellationReasons": [{"Code": "None"}, {"Code": "ThrottlingError"}],
        },
        "rate",
        "ThrottlingError",
    )
    s3 = "https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html"
    for status, word, means in (
        (503, "SlowDown", "rate"),
        (403, "AccessDenied", "forbidden"),
        (404, "NoSuchKey", "missing"),
        (400, "ExpiredToken", "auth"),
        (400, "RequestTimeout", "timeout"),
        (403, "RequestTimeTooSkewed", "auth"),
        (403, "SignatureDoesNotMatch", "auth"),
        (409, "BucketAlreadyExists", "conflict"),
        (412, "PreconditionFailed", "conflict"),
        (400, "EntityTooLarge", "large"),
        (400, "MalformedXML", "invalid"),
        (500, "InternalError", "internal"),
        (200, "InternalError", "internal"),
        (200, "SlowDown", "rate"),
    ):
        text = (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{word}</Code><Message>…</Message>'
            "<RequestId>S1</RequestId><HostId>h</HostId></Error>"
        )
        yield Case("aws", s3, status, text, means, word, trace="S1")
    query = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html"
    for status, word, means in (
        (503, "RequestLimitExceeded", "rate"),
        (400, "InstanceLimitExceeded", "quota"),
        (500, "InsufficientInstanceCapacity", "overloaded"),
        (403, "UnauthorizedOperation", "forbidden"),
        (401, "AuthFailure", "auth"),
        (400, "InvalidParameterValue", "invalid"),
        (403, "OptInRequired", "forbidden"),
    ):
        text = f"<Response><Errors><Error><Code>{word}</Code><Message>…</Message></Error></Errors><RequestID>E1</RequestID></Response>"
        yield Case("aws", query, status, text, means, word, trace="E1")
    yield Case(
        "aws",
        "https://docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html",
        400,
        "<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error>"
        "<RequestId>Q1</RequestId></ErrorResponse>",
        "rate",
        "Throttling",
        trace="Q1",
    )
    yield Case(
        "amazon-sp",
        "https://developer-docs.amazon.com/sp-api/docs/usage-plans-and-rate-limits",
        429,
        {"errors": [{"code": "QuotaExceeded", "message": "…", "details": ""}]},
        "rate",
        "QuotaExceeded",
    )


def azure() -> Iterator[Case]:
    """Azure, Microsoft Graph, Entra."""
    where = (
        "https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors"
    )
    for status, word, means in (
        (429, "SubscriptionRequestsThrottled", "rate"),
        (429, "TooManyRequests", "rate"),
        (409, "AnotherOperationInProgress", "progress"),
        (429, "RetryableErrorDueToAnotherOperation", "progress"),
        (409, "MissingSubscriptionRegistration", "forbidden"),
        (400, "QuotaExceeded", "quota"),
        (403, "AuthorizationFailed", "forbidden"),
        (401, "ExpiredAuthenticationToken", "auth"),
        (401, "InvalidAuthenticationToken", "auth"),
        (404, "ResourceNotFound", "missing"),
        (409, "ZonalAllocationFailed", "overloaded"),
        (403, "RequestDisallowedByPolicy", "forbidden"),
        (403, "DisabledSubscription", "forbidden"),
        (400, "InvalidTemplate", "invalid"),
        (409, "SkuNotAvailable", "invalid"),
    ):
        yield Case(
            "azure",
            where,
            status,
            {"error": {"code": word, "message": "…"}},
            means,
            word,
            headers={"x-ms-request-id": "m1"},
            trace="m1",
        )
    storage = "https://learn.microsoft.com/rest/api/storageservices/common-rest-api-error-codes"
    for status, word, means in (
        (503, "ServerBusy", "overloaded"),
        (500, "OperationTimedOut", "timeout"),
        (409, "ContainerBeingDeleted", "progress"),
        (403, "AuthenticationFailed", "auth"),
        (404, "BlobNotFound", "missing"),
        (412, "ConditionNotMet", "conflict"),
        (409, "BlobBeingRehydrated", "not-ready"),
        (409, "LeaseAlreadyPresent", "conflict"),
        (403, "AccountIsDisabled", "forbidden"),
        (413, "RequestBodyTooLarge", "large"),
    ):
        text = f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{word}</Code><Message>…</Message></Error>'
        yield Case(
            "azure",
            storage,
            status,
            text,
            means,
            word,
            headers={"x-ms-error-code": word, "x-ms-request-id": "b1"},
            trace="b1",
        )
    yield Case(
        "azure", storage, 404, "", "missing", "BlobNotFound", headers={"x-ms-error-code": "BlobNotFound"}
    )
    cosmos = "https://learn.microsoft.com/rest/api/cosmos-db/http-status-codes-for-cosmosdb"
    yield Case(
        "azure",
        cosmos,
        429,
        {"code": "TooManyRequests", "message": "…"},
        "rate",
        "TooManyRequests",
        0.012,
        {"x-ms-retry-after-ms": "12", "x-ms-substatus": "3200"},
    )
    yield Case(
        "azure",
        cosmos,
        449,
        {"code": "RetryWith", "message": "…"},
        "progress",
        "RetryWith",
        headers={"x-ms-substatus": "0"},
    )
    graph = "https://learn.microsoft.com/graph/errors"

    def inner(code: str, more: str | None = None) -> dict[str, Any]:
        return {
            "error": {
                "code": code,
                "message": "…",
                "innerError": {
                    **({"code": more} if more else {}),
                    "date": "2024-01-01T00:00:00",
                    "request-id": "g1",
                    "client-request-id": "g2",
                },
            }
        }

    for status, word, means in (
        (429, "TooManyRequests", "rate"),
        (429, "activityLimitReached", "rate"),
        (509, "activityLimitReached", "rate"),
        (507, "quotaLimitReached", "quota"),
        (401, "InvalidAuthenticationToken", "auth"),
        (403, "Authorization_RequestDenied", "forbidden"),
        (404, "Request_ResourceNotFound", "missing"),
        (423, "resourceLocked", "progress"),
        (503, "serviceNotAvailable", "overloaded"),
        (409, "nameAlreadyExists", "conflict"),
        (400, "Directory_QuotaExceeded", "quota"),
    ):
        yield Case("microsoft-graph", graph, status, inner(word), means, word, trace="g1")
    yield Case(
        "microsoft-graph",
        graph,
        429,
        inner("TooManyRequests", "ApplicationThrottled"),
        "rate",
        "ApplicationThrottled",
        10.0,
        {"retry-after": "10"},
        trace="g1",
    )
    entra = "https://learn.microsoft.com/entra/identity-platform/reference-error-codes"
    for word, means in (
        ("invalid_grant", "auth"),
        ("interaction_required", "auth"),
        ("temporarily_unavailable", "unavailable"),
    ):
        yield Case(
            "oauth",
            entra,
            400,
            {
                "error": word,
                "error_description": "AADSTS50173: …",
                "error_codes": [50173],
                "trace_id": "t1",
                "correlation_id": "c1",
            },
            means,
            word,
        )


def code_hosts() -> Iterator[Case]:
    """GitHub, GitLab, registries."""
    where = "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api"
    page = "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"
    yield Case(
        "github",
        where,
        403,
        {"message": "API rate limit exceeded for user ID 1.", "documentation_url": page},
        "rate",
        None,
        900.0,
        {
            **DATE,
            "x-ratelimit-remaining": "0",
            "x-ratelimit-reset": "1704068100",
            "x-github-request-id": "A:B",
        },
        trace="A:B",
        doc=page,
    )
    yield Case(
        "github",
        where,
        429,
        {"message": "API rate limit exceeded", "documentation_url": page},
        "rate",
        None,
        900.0,
        {**DATE, "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1704068100"},
        doc=page,
    )
    second = page + "#about-secondary-rate-limits"
    yield Case(
        "github",
        where,
        403,
        {"message": "You have exceeded a secondary rate limit.", "documentation_url": second},
        "rate",
        None,
        60.0,
        {"x-ratelimit-remaining": "4999", "x-github-request-id": "A:C"},
        trace="A:C",
        doc=second,
    )
    yield Case(
        "github",
        where,
        403,
        {"message": "You have exceeded a secondary rate limit.", "documentation_url": second},
        "rate",
        None,
        30.0,
        {"retry-after": "30"},
        doc=second,
    )
    rest = "https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api"
    doc = "https://docs.github.com/rest"
    for status, means in ((401, "auth"), (403, "forbidden"), (404, "missing"), (409, "conflict")):
        yield Case(
            "github",
            rest,
            status,
            {"message": "…", "documentation_url": doc, "status": str(status)},
            means,
            headers={"x-github-request-id": "A:D"},
            trace="A:D",
            doc=doc,
        )
    yield Case(
        "github",
        rest,
        422,
        {
            "message": "Validation Failed",
            "errors": [{"resource": "Issue", "field": "title", "code": "missing_field"}],
            "documentation_url": doc,
        },
        "invalid",
        "missing_field",
        field="title",
        doc=doc,
    )
    yield Case(
        "github",
        rest,
        422,
        {
            "message": "Validation Failed",
            "errors": [{"resource": "Label", "field": "name", "code": "already_exists"}],
            "documentation_url": doc,
        },
        "conflict",
        "already_exists",
        field="name",
        doc=doc,
    )
    yield Case(
        "github",
        rest,
        502,
        {"message": "Server Error"},
        "gateway",
        headers={"x-github-request-id": "A:E"},
        trace="A:E",
    )
    graphql = "https://docs.github.com/graphql/overview/rate-limits-and-node-limits-for-the-graphql-api"
    for word, means in (
        ("RATE_LIMITED", "rate"),
        ("INSUFFICIENT_SCOPES", "scope"),
        ("MAX_NODE_LIMIT_EXCEEDED", "large"),
        ("NOT_FOUND", "missing"),
        ("FORBIDDEN", "forbidden"),
    ):
        yield Case(
            "github", graphql, 200, {"data": None, "errors": [{"type": word, "message": "…"}]}, means, word
        )
    oauth = "https://docs.github.com/apps/oauth-apps/maintaining-oauth-apps/troubleshooting-oauth-app-access-token-request-errors"
    for word, means in (
        ("bad_verification_code", "auth"),
        ("incorrect_client_credentials", "auth"),
        ("authorization_pending", "not-ready"),
        ("access_denied", "forbidden"),
    ):
        yield Case(
            "github",
            oauth,
            200,
            {"error": word, "error_description": "…", "error_uri": "https://docs.github.com"},
            means,
            word,
            5.0 if word == "authorization_pending" else None,
        )
    yield Case(
        "github",
        oauth,
        200,
        {"error": "slow_down", "error_description": "…", "interval": 10},
        "not-ready",
        "slow_down",
        10.0,
    )
    lab = "https://docs.gitlab.com/api/rest/troubleshooting/"
    yield Case(
        "gitlab",
        lab,
        429,
        {"message": "Too Many Requests"},
        "rate",
        None,
        60.0,
        {
            **DATE,
            "ratelimit-remaining": "0",
            "ratelimit-reset": "1704067260",
            "ratelimit-resettime": "Mon, 01 Jan 2024 00:01:00 GMT",
            "x-gitlab-meta": "{}",
        },
    )
    yield Case(
        "gitlab", lab, 401, {"error": "invalid_token", "error_description": "…"}, "auth", "invalid_token"
    )
    yield Case(
        "gitlab",
        lab,
        403,
        {"error": "insufficient_scope", "error_description": "…", "scope": "api"},
        "scope",
        "insufficient_scope",
    )
    yield Case(
        "gitlab", lab, 404, {"message": "404 Project Not Found"}, "missing", headers={"x-gitlab-meta": "{}"}
    )
    docker = "https://distribution.github.io/distribution/spec/api/#errors"
    for status, word, means in (
        (429, "TOOMANYREQUESTS", "rate"),
        (401, "UNAUTHORIZED", "auth"),
        (403, "DENIED", "forbidden"),
        (404, "MANIFEST_UNKNOWN", "missing"),
        (400, "DIGEST_INVALID", "invalid"),
    ):
        yield Case(
            "docker-registry",
            docker,
            status,
            {"errors": [{"code": word, "message": "…", "detail": None}]},
            means,
            word,
            headers={"docker-distribution-api-version": "registry/2.0"},
        )


def payments() -> Iterator[Case]:
    """Stripe, Adyen, PayPal, Square, Plaid."""
    where = "https://docs.stripe.com/error-codes"

    def stripe(kind: str, code: str | None, **more: Any) -> dict[str, Any]:
        return {
            "error": {
                "type": kind,
                "code": code,
                "message": "…",
                "request_log_url": "https://dashboard.stripe.com/logs",
                **more,
            }
        }

    for status, kind, code, means in (
        (429, "invalid_request_error", "rate_limit", "rate"),
        (429, "invalid_request_error", "lock_timeout", "progress"),
        (409, "idempotency_error", "idempotency_key_in_use", "progress"),
        (400, "idempotency_error", None, "conflict"),
        (401, "invalid_request_error", "api_key_expired", "auth"),
        (404, "invalid_request_error", "resource_missing", "missing"),
        (400, "invalid_request_error", "parameter_missing", "invalid"),
        (400, "invalid_request_error", "balance_insufficient", "quota"),
        (400, "invalid_request_error", "charge_already_refunded", "conflict"),
        (402, "card_error", "expired_card", "card"),
        (402, "card_error", "incorrect_cvc", "card"),
        (402, "card_error", "authentication_required", "card"),
    ):
        yield Case(
            "stripe",
            where,
            status,
            stripe(kind, code),
            means,
            code or kind,
            headers={"request-id": "req_s", "stripe-version": "2024-06-20"},
            trace="req_s",
        )
    yield Case(
        "stripe",
        where,
        402,
        stripe("card_error", "card_declined", decline_code="insufficient_funds"),
        "card",
        "insufficient_funds",
    )
    yield Case(
        "stripe",
        where,
        400,
        stripe("invalid_request_error", "parameter_unknown", param="amout"),
        "invalid",
        "parameter_unknown",
        field="amout",
    )
    yield Case("stripe", where, 500, stripe("api_error", None), "internal", "api_error")
    adyen = "https://docs.adyen.com/development-resources/error-codes/"
    for status, code, kind, means in (
        (422, "704", "validation", "progress"),
        (401, "000", "security", "auth"),
        (403, "901", "security", "forbidden"),
        (422, "702", "validation", "invalid"),
        (500, "905", "configuration", "permanent"),
    ):
        yield Case(
            "adyen",
            adyen,
            status,
            {"status": status, "errorCode": code, "message": "…", "errorType": kind, "pspReference": "P1"},
            means,
        )
    paypal = "https://developer.paypal.com/api/rest/responses/"

    def issue(name: str, *issues: str) -> dict[str, Any]:
        return {
            "name": name,
            "message": "…",
            "debug_id": "d1",
            "details": [{"issue": each, "description": "…"} for each in issues],
        }

    for status, name, issues, means in (
        (429, "RATE_LIMIT_REACHED", (), "rate"),
        (422, "UNPROCESSABLE_ENTITY", ("INSTRUMENT_DECLINED",), "card"),
        (422, "UNPROCESSABLE_ENTITY", ("ORDER_ALREADY_CAPTURED",), "conflict"),
        (403, "NOT_AUTHORIZED", ("PERMISSION_DENIED",), "scope"),
        (401, "AUTHENTICATION_FAILURE", (), "auth"),
        (404, "RESOURCE_NOT_FOUND", ("INVALID_RESOURCE_ID",), "missing"),
        (400, "INVALID_REQUEST", ("MISSING_REQUIRED_PARAMETER",), "invalid"),
        (500, "INTERNAL_SERVER_ERROR", ("INTERNAL_SERVICE_ERROR",), "internal"),
        (409, "RESOURCE_CONFLICT", ("PREVIOUS_REQUEST_IN_PROGRESS",), "progress"),
    ):
        yield Case(
            "paypal", paypal, status, issue(name, *issues), means, issues[0] if issues else name, trace="d1"
        )
    square = "https://developer.squareup.com/docs/build-basics/handling-errors"
    for status, category, code, means in (
        (429, "RATE_LIMIT_ERROR", "RATE_LIMITED", "rate"),
        (402, "PAYMENT_METHOD_ERROR", "GENERIC_DECLINE", "card"),
        (401, "AUTHENTICATION_ERROR", "ACCESS_TOKEN_EXPIRED", "auth"),
        (403, "AUTHENTICATION_ERROR", "INSUFFICIENT_SCOPES", "scope"),
        (400, "INVALID_REQUEST_ERROR", "IDEMPOTENCY_KEY_REUSED", "conflict"),
        (503, "API_ERROR", "TEMPORARY_ERROR", "unavailable"),
        (400, "INVALID_REQUEST_ERROR", "MISSING_REQUIRED_PARAMETER", "invalid"),
    ):
        yield Case(
            "square",
            square,
            status,
            {"errors": [{"category": category, "code": code, "detail": "…", "field": "f"}]},
            means,
            code,
            field="f",
        )
    plaid = "https://plaid.com/docs/errors/"
    for status, kind, code, means in (
        (429, "RATE_LIMIT_EXCEEDED", "TRANSACTIONS_LIMIT", "rate"),
        (400, "ITEM_ERROR", "ITEM_LOGIN_REQUIRED", "auth"),
        (400, "INSTITUTION_ERROR", "INSTITUTION_DOWN", "unavailable"),
        (400, "ITEM_ERROR", "PRODUCT_NOT_READY", "not-ready"),
        (400, "INVALID_INPUT", "INVALID_API_KEYS", "auth"),
    ):
        yield Case(
            "plaid",
            plaid,
            status,
            {
                "error_type": kind,
                "error_code": code,
                "error_message": "…",
                "display_message": None,
                "request_id": "p1",
            },
            means,
            None,
            trace="p1",
        )


def messaging() -> Iterator[Case]:
    """Slack, Twilio, SendGrid, Discord, Telegram, Zoom, Intercom, Postmark."""
    slack = "https://docs.slack.dev/reference/methods/chat.postMessage"
    for word, means in (
        ("ratelimited", "rate"),
        ("fatal_error", "overloaded"),
        ("internal_error", "overloaded"),
        ("invalid_auth", "auth"),
        ("not_authed", "auth"),
        ("token_expired", "auth"),
        ("token_revoked", "auth"),
        ("account_inactive", "forbidden"),
        ("missing_scope", "scope"),
        ("channel_not_found", "missing"),
        ("is_archived", "conflict"),
        ("msg_too_long", "large"),
        ("restricted_action", "forbidden"),
        ("no_text", "invalid"),
        ("request_timeout", "timeout"),
    ):
        yield Case("slack", slack, 200, {"ok": False, "error": word}, means, word)
    yield Case(
        "slack",
        "https://docs.slack.dev/apis/web-api/rate-limits",
        429,
        {"ok": False, "error": "ratelimited"},
        "rate",
        "ratelimited",
        30.0,
        {"retry-after": "30", "x-slack-req-id": "s1"},
        trace="s1",
    )
    twilio = "https://www.twilio.com/docs/api/errors"
    for status, code, means in (
        (429, 20429, "rate"),
        (401, 20003, "auth"),
        (404, 20404, "missing"),
        (400, 21211, "invalid"),
        (400, 21610, "forbidden"),
        (400, 21617, "large"),
        (429, 63038, "quota"),
        (500, 20500, "internal"),
        (503, 20503, "unavailable"),
    ):
        doc = f"https://www.twilio.com/docs/errors/{code}"
        yield Case(
            "twilio",
            twilio,
            status,
            {"code": code, "message": "…", "more_info": doc, "status": status},
            means,
            str(code),
            doc=doc,
        )
    sendgrid = "https://www.twilio.com/docs/sendgrid/api-reference/how-to-use-the-sendgrid-v3-api/errors"
    yield Case(
        "sendgrid",
        sendgrid,
        400,
        {"errors": [{"message": "…", "field": "from.email", "help": None}]},
        "invalid",
        field="from.email",
    )
    yield Case(
        "sendgrid",
        sendgrid,
        429,
        {"errors": [{"message": "too many requests", "field": None, "help": None}]},
        "rate",
        None,
        20.0,
        {**DATE, "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1704067220"},
    )
    discord = "https://discord.com/developers/docs/topics/rate-limits"
    yield Case(
        "discord",
        discord,
        429,
        {"message": "You are being rate limited.", "retry_after": 64.57, "global": False},
        "rate",
        None,
        64.57,
        {"x-ratelimit-scope": "user", "retry-after": "65"},
    )
    for status, code, means in (
        (401, 40001, "auth"),
        (403, 50013, "forbidden"),
        (404, 10003, "missing"),
        (400, 50035, "invalid"),
        (429, 20028, "rate"),
        (503, 130000, "overloaded"),
    ):
        yield Case(
            "discord",
            "https://discord.com/developers/docs/topics/opcodes-and-status-codes",
            status,
            {"code": code, "message": "…"},
            means,
            str(code),
        )
    telegram = "https://core.telegram.org/bots/api#making-requests"
    yield Case(
        "telegram",
        telegram,
        429,
        {"ok": False, "error_code": 429, "description": "…", "parameters": {"retry_after": 35}},
        "rate",
        None,
        35.0,
    )
    for status, means in ((400, "invalid"), (401, "auth"), (403, "forbidden"), (409, "conflict")):
        yield Case(
            "telegram", telegram, status, {"ok": False, "error_code": status, "description": "…"}, means
        )
    zoom = "https://developers.zoom.us/docs/api/rate-limits/"
    yield Case(
        "zoom",
        zoom,
        429,
        {"code": 429, "message": "…"},
        "quota",
        "Daily-limit",
        3600.0,
        {
            **DATE,
            "retry-after": "2024-01-01T01:00:00Z",
            "x-ratelimit-type": "Daily-limit",
            "x-zm-trackingid": "z1",
        },
        trace="z1",
    )
    yield Case(
        "zoom",
        zoom,
        429,
        {"code": 429, "message": "…"},
        "rate",
        "QPS",
        headers={"x-ratelimit-type": "QPS", "x-ratelimit-category": "Light"},
    )
    yield Case("zoom", zoom, 401, {"code": 124, "message": "…"}, "auth", "124")
    yield Case("zoom", zoom, 404, {"code": 3001, "message": "…"}, "missing", "3001")
    intercom = "https://developers.intercom.com/docs/references/rest-api/errors/error-objects"
    for status, word, means in (
        (429, "rate_limit_exceeded", "rate"),
        (401, "token_unauthorized", "auth"),
        (400, "parameter_invalid", "invalid"),
        (403, "api_plan_restricted", "forbidden"),
    ):
        yield Case(
            "intercom",
            intercom,
            status,
            {"type": "error.list", "request_id": "i1", "errors": [{"code": word, "message": "…"}]},
            means,
            word,
            trace="i1",
        )
    postmark = "https://postmarkapp.com/developer/api/overview#error-codes"
    for status, code, means in (
        (401, 10, "auth"),
        (422, 405, "quota"),
        (422, 406, "forbidden"),
        (422, 300, "invalid"),
    ):
        yield Case("postmark", postmark, status, {"ErrorCode": code, "Message": "…"}, means, str(code))


def work() -> Iterator[Case]:
    """Tools that people work with."""
    notion = "https://developers.notion.com/reference/status-codes"
    for status, word, means in (
        (429, "rate_limited", "rate"),
        (409, "conflict_error", "progress"),
        (401, "unauthorized", "auth"),
        (403, "restricted_resource", "forbidden"),
        (404, "object_not_found", "missing"),
        (400, "validation_error", "invalid"),
        (503, "service_unavailable", "unavailable"),
        (503, "database_connection_unavailable", "unavailable"),
        (504, "gateway_timeout", "timeout"),
    ):
        yield Case(
            "notion",
            notion,
            status,
            {"object": "error", "status": status, "code": word, "message": "…", "request_id": "n1"},
            means,
            word,
            trace="n1",
        )
    jira = "https://developer.atlassian.com/cloud/jira/platform/rate-limiting/"
    yield Case(
        "atlassian",
        jira,
        429,
        {"errorMessages": ["…"]},
        "rate",
        "jira-burst-based",
        5.0,
        {"retry-after": "5", "ratelimit-reason": "jira-burst-based"},
    )
    yield Case(
        "atlassian",
        jira,
        429,
        {"errorMessages": ["…"]},
        "rate",
        "jira-quota-tenant-based",
        1800.0,
        {
            **DATE,
            "x-ratelimit-remaining": "0",
            "x-ratelimit-reset": "2024-01-01T00:30Z",
            "ratelimit-reason": "jira-quota-tenant-based",
            "atl-traceid": "j1",
        },
        trace="j1",
    )
    yield Case(
        "atlassian", jira, 400, {"errorMessages": [], "errors": {"summary": "…"}}, "invalid", field="summary"
    )
    yield Case("atlassian", jira, 404, {"errorMessages": ["…"], "errors": {}}, "missing")
    salesforce = "https://developer.salesforce.com/docs/atlas.en-us.api_rest.meta/api_rest/errorcodes.htm"
    for status, word, means in (
        (403, "REQUEST_LIMIT_EXCEEDED", "quota"),
        (401, "INVALID_SESSION_ID", "auth"),
        (400, "UNABLE_TO_LOCK_ROW", "progress"),
        (503, "SERVER_UNAVAILABLE", "unavailable"),
        (403, "INSUFFICIENT_ACCESS_OR_READONLY", "forbidden"),
        (404, "NOT_FOUND", "missing"),
        (400, "DUPLICATES_DETECTED", "conflict"),
        (400, "MALFORMED_QUERY", "invalid"),
        (400, "STORAGE_LIMIT_EXCEEDED", "quota"),
        (403, "API_DISABLED_FOR_ORG", "forbidden"),
    ):
        yield Case("salesforce", salesforce, status, [{"message": "…", "errorCode": word}], means, word)
    yield Case(
        "salesforce",
        "https://developer.salesforce.com/docs/atlas.en-us.api.meta/api/sforce_api_calls_login.htm",
        500,
        '<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body><soapenv:Fault>'
        "<faultcode>sf:INVALID_LOGIN</faultcode><faultstring>…</faultstring></soapenv:Fault></soapenv:Body>"
        "</soapenv:Envelope>",
        "auth",
        "INVALID_LOGIN",
    )
    hubspot = "https://developers.hubspot.com/docs/api/usage-details"
    for policy, means in (("DAILY", "quota"), ("TEN_SECONDLY_ROLLING", "rate"), ("SECONDLY", "rate")):
        yield Case(
            "hubspot",
            hubspot,
            429,
            {
                "status": "error",
                "message": "…",
                "errorType": "RATE_LIMIT",
                "correlationId": "h1",
                "policyName": policy,
                "groupName": "g",
            },
            means,
            policy,
            trace="h1",
        )
    yield Case(
        "hubspot",
        hubspot,
        429,
        {
            "status": "error",
            "message": "…",
            "errorType": "RATE_LIMIT",
            "correlationId": "h1",
            "policyName": "TEN_SECONDLY_ROLLING",
        },
        "rate",
        "TEN_SECONDLY_ROLLING",
        10.0,
        {"x-hubspot-ratelimit-remaining": "0", "x-hubspot-ratelimit-interval-milliseconds": "10000"},
        trace="h1",
    )
    for status, word, means in (
        (401, "EXPIRED_AUTHENTICATION", "auth"),
        (403, "MISSING_SCOPES", "scope"),
        (404, "OBJECT_NOT_FOUND", "missing"),
        (400, "VALIDATION_ERROR", "invalid"),
    ):
        yield Case(
            "hubspot",
            hubspot,
            status,
            {"status": "error", "message": "…", "correlationId": "h2", "category": word},
            means,
            word,
            trace="h2",
        )
    zendesk = "https://developer.zendesk.com/api-reference/introduction/rate-limits/"
    yield Case(
        "zendesk",
        zendesk,
        429,
        {"error": "APIRateLimitExceeded", "description": "…"},
        "rate",
        "APIRateLimitExceeded",
        41.0,
        {"zendesk-ratelimit-tickets-index": "total=100; remaining=0; resets=41"},
    )
    for status, word, means in (
        (404, "RecordNotFound", "missing"),
        (422, "RecordInvalid", "invalid"),
        (409, "DatabaseConflict", "progress"),
    ):
        yield Case("zendesk", zendesk, status, {"error": word, "description": "…"}, means, word)
    linear = "https://linear.app/developers/rate-limiting"
    yield Case(
        "linear",
        linear,
        400,
        {"errors": [{"message": "…", "extensions": {"type": "ratelimited", "code": "RATELIMITED"}}]},
        "rate",
        "RATELIMITED",
        30.0,
        {
            **DATE,
            "x-ratelimit-requests-remaining": "0",
            "x-ratelimit-requests-reset": "1704067230000",
            "x-ratelimit-requests-limit": "1500",
        },
    )
    yield Case(
        "linear",
        linear,
        200,
        {"data": None, "errors": [{"message": "…", "extensions": {"code": "AUTHENTICATION_ERROR"}}]},
        "auth",
        "AUTHENTICATION_ERROR",
    )
    airtable = "https://airtable.com/developers/web/api/errors"
    yield Case(
        "airtable",
        airtable,
        429,
        {"errors": [{"error": "RATE_LIMIT_REACHED", "message": "…"}]},
        "rate",
        "RATE_LIMIT_REACHED",
    )
    for status, word, means in (
        (429, "PUBLIC_API_BILLING_LIMIT_EXCEEDED", "quota"),
        (401, "AUTHENTICATION_REQUIRED", "auth"),
        (403, "INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND", "forbidden"),
        (422, "INVALID_VALUE_FOR_COLUMN", "invalid"),
    ):
        yield Case("airtable", airtable, status, {"error": {"type": word, "message": "…"}}, means, word)
    yield Case(
        "figma",
        "https://developers.figma.com/docs/rest-api/rate-limits/",
        429,
        {"status": 429, "err": "Rate limit exceeded"},
        "rate",
        None,
        3.0,
        {"retry-after": "3", "x-figma-rate-limit-type": "low"},
    )
    yield Case(
        "figma",
        "https://developers.figma.com/docs/rest-api/errors/",
        404,
        {"status": 404, "err": "Not found"},
        "missing",
    )
    spotify = "https://developer.spotify.com/documentation/web-api/concepts/api-calls"
    for status, means in ((401, "auth"), (404, "missing"), (429, "rate"), (502, "gateway")):
        yield Case(
            "spotify",
            spotify,
            status,
            {"error": {"status": status, "message": "…"}},
            means,
            None,
            7.0 if status == 429 else None,
            {"retry-after": "7"} if status == 429 else {},
        )
    dropbox = "https://www.dropbox.com/developers/documentation/http/documentation#error-handling"
    for status, word, means in (
        (429, "too_many_requests", "rate"),
        (401, "expired_access_token", "auth"),
        (429, "too_many_write_operations", "progress"),
        (401, "missing_scope", "scope"),
    ):
        yield Case(
            "dropbox", dropbox, status, {"error_summary": f"{word}/..", "error": {".tag": word}}, means, word
        )
    box = "https://developer.box.com/guides/api-calls/permissions-and-errors/common-errors/"
    for status, word, means in (
        (429, "rate_limit_exceeded", "rate"),
        (403, "storage_limit_exceeded", "quota"),
        (409, "item_name_in_use", "conflict"),
        (409, "operation_blocked_temporary", "progress"),
        (403, "access_denied_insufficient_permissions", "forbidden"),
    ):
        yield Case(
            "box",
            box,
            status,
            {
                "type": "error",
                "status": status,
                "code": word,
                "message": "…",
                "help_url": "https://developer.box.com",
                "request_id": "x1",
            },
            means,
            word,
            trace="x1",
        )


def infrastructure() -> Iterator[Case]:
    """Cloudflare, Kubernetes, Elasticsearch, data warehouses, platforms."""
    edge = (
        "https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-1xxx-errors/"
    )
    for status, code, means in (
        (429, 1015, "rate"),
        (403, 1020, "permanent"),
        (403, 1006, "permanent"),
        (530, 1016, "unavailable"),
        (530, 1033, "unavailable"),
        (429, 1027, "quota"),
    ):
        yield Case(
            "cloudflare",
            edge,
            status,
            f"error code: {code}",
            means,
            str(code),
            headers={"server": "cloudflare"},
        )
    yield Case(
        "cloudflare",
        edge,
        429,
        '<!DOCTYPE html><html><body><span class="cf-error-code">1015</span></body></html>',
        "rate",
        "1015",
        headers={"server": "cloudflare", "content-type": "text/html"},
    )
    rfc = "https://developers.cloudflare.com/fundamentals/reference/markdown-for-agents/"
    yield Case(
        "cloudflare",
        rfc,
        429,
        {
            "type": "https://developers.cloudflare.com/1015",
            "title": "Error 1015: You are being rate limited",
            "status": 429,
            "detail": "…",
            "error_code": 1015,
            "cloudflare_error": True,
            "retryable": True,
            "retry_after": 30,
            "ray_id": "c1",
        },
        "rate",
        "1015",
        30.0,
        trace="c1",
    )
    yield Case(
        "cloudflare",
        rfc,
        403,
        {
            "type": "https://developers.cloudflare.com/1020",
            "title": "Error 1020: Access denied",
            "status": 403,
            "detail": "…",
            "error_code": 1020,
            "cloudflare_error": True,
            "retryable": False,
            "ray_id": "c2",
        },
        "permanent",
        "1020",
        trace="c2",
    )
    api = "https://developers.cloudflare.com/fundamentals/api/reference/limits/"
    yield Case(
        "cloudflare",
        api,
        429,
        {"success": False, "errors": [{"code": 971, "message": "…"}], "messages": [], "result": None},
        "rate",
        "971",
        300.0,
    )
    for status, code, means in (
        (403, 10000, "auth"),
        (400, 7003, "missing"),
        (429, 3036, "quota"),
        (429, 3040, "overloaded"),
    ):
        yield Case(
            "cloudflare",
            api,
            status,
            {"success": False, "errors": [{"code": code, "message": "…"}], "messages": [], "result": None},
            means,
            str(code),
        )
    yield Case(
        "cloudflare",
        api,
        200,
        {"success": False, "errors": [{"code": 10000, "message": "…"}], "messages": [], "result": None},
        "auth",
        "10000",
    )
    five = (
        "https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-5xx-errors/"
    )
    for status, means in (
        (520, "unavailable"),
        (521, "unavailable"),
        (522, "unavailable"),
        (523, "unavailable"),
        (524, "unavailable"),
        (525, "unavailable"),
        (526, "permanent"),
    ):
        yield Case(
            "cloudflare", five, status, "<html><body>…</body></html>", means, headers={"server": "cloudflare"}
        )
    k8s = "https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md"
    for code, reason, means in (
        (429, "TooManyRequests", "rate"),
        (409, "Conflict", "conflict"),
        (409, "AlreadyExists", "conflict"),
        (404, "NotFound", "missing"),
        (403, "Forbidden", "forbidden"),
        (422, "Invalid", "invalid"),
        (410, "Expired", "conflict"),
        (401, "Unauthorized", "auth"),
        (500, "InternalError", "internal"),
        (504, "Timeout", "timeout"),
    ):
        yield Case(
            "kubernetes",
            k8s,
            code,
            {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": "…",
                "reason": reason,
                "code": code,
            },
            means,
            reason,
        )
    yield Case(
        "kubernetes",
        k8s,
        500,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "…",
            "reason": "ServerTimeout",
            "details": {"name": "x", "kind": "pods", "retryAfterSeconds": 2},
            "code": 500,
        },
        "unavailable",
        "ServerTimeout",
        2.0,
    )
    elastic = "https://www.elastic.co/docs/troubleshoot/elasticsearch/rejected-requests"

    def search(kind: str, **more: Any) -> dict[str, Any]:
        return {"type": kind, "reason": "some prose", **more}

    for status, kind, means in (
        (429, "es_rejected_execution_exception", "rate"),
        (409, "version_conflict_engine_exception", "conflict"),
        (404, "index_not_found_exception", "missing"),
        (400, "parsing_exception", "invalid"),
        (503, "no_shard_available_action_exception", "unavailable"),
        (503, "master_not_discovered_exception", "unavailable"),
        (429, "cluster_block_exception", "overloaded"),
        (403, "cluster_block_exception", "forbidden"),
    ):
        yield Case(
            "elasticsearch",
            elastic,
            status,
            {"error": {"root_cause": [search(kind)], **search(kind)}, "status": status},
            means,
            kind,
        )
    for durability, means in (("PERMANENT", "permanent"), ("TRANSIENT", "overloaded")):
        error = search("circuit_breaking_exception", durability=durability, bytes_wanted=1)
        yield Case(
            "elasticsearch",
            elastic,
            429,
            {"error": {"root_cause": [error], **error}, "status": 429},
            means,
            "circuit_breaking_exception",
        )
    databricks = "https://docs.databricks.com/api/workspace/introduction"
    for status, word, means in (
        (429, "REQUEST_LIMIT_EXCEEDED", "rate"),
        (503, "TEMPORARILY_UNAVAILABLE", "unavailable"),
        (404, "RESOURCE_DOES_NOT_EXIST", "missing"),
        (400, "INVALID_PARAMETER_VALUE", "invalid"),
        (429, "QUOTA_EXCEEDED", "quota"),
        (409, "RESOURCE_CONFLICT", "conflict"),
    ):
        yield Case("databricks", databricks, status, {"error_code": word, "message": "…"}, means, word)
    snowflake = "https://docs.snowflake.com/en/developer-guide/sql-api/handling-responses"
    for status, code, means in (
        (401, "390318", "auth"),
        (401, "390144", "auth"),
        (422, "002003", "missing"),
        (422, "001003", "invalid"),
        (408, "000630", "timeout"),
    ):
        yield Case(
            "snowflake",
            snowflake,
            status,
            {"code": code, "message": "…", "sqlState": "42S02", "statementHandle": "h"},
            means,
            code,
        )
    yield Case(
        "snowflake",
        snowflake,
        200,
        {"data": None, "code": "390114", "message": "…", "success": False},
        "auth",
        "390114",
    )
    click = "https://github.com/ClickHouse/ClickHouse/blob/master/src/Common/ErrorCodes.cpp"
    for status, code, means in (
        (500, "202", "rate"),
        (403, "516", "auth"),
        (404, "60", "missing"),
        (500, "241", "large"),
    ):
        yield Case(
            "clickhouse", click, status, "Code: …", means, code, headers={"x-clickhouse-exception-code": code}
        )
    heroku = "https://devcenter.heroku.com/articles/platform-api-reference#errors"
    for status, word, means in (
        (429, "rate_limit", "rate"),
        (403, "suspended", "forbidden"),
        (402, "delinquency", "quota"),
    ):
        yield Case(
            "heroku",
            heroku,
            status,
            {"id": word, "message": "…"},
            means,
            word,
            headers={"ratelimit-multiplier": "1"},
        )
    yield Case(
        "digitalocean",
        "https://docs.digitalocean.com/reference/api/intro/",
        429,
        {"id": "too_many_requests", "message": "…"},
        "rate",
        "too_many_requests",
        25.0,
        {**DATE, "ratelimit-remaining": "0", "ratelimit-reset": "1704067225"},
    )
    vercel = "https://vercel.com/docs/rest-api/reference/errors"
    yield Case(
        "vercel",
        vercel,
        429,
        {
            "error": {
                "code": "rate_limited",
                "message": "…",
                "limit": {"remaining": 0, "reset": 1704067260, "total": 60},
            }
        },
        "rate",
        "rate_limited",
        60.0,
        {**DATE, "x-vercel-id": "v1"},
    )
    yield Case(
        "vercel",
        vercel,
        402,
        {"error": {"code": "payment_required", "message": "…"}},
        "quota",
        "payment_required",
        headers={"x-vercel-id": "v2"},
    )
    okta = "https://developer.okta.com/docs/reference/error-codes/"
    for status, word, means in (
        (429, "E0000047", "rate"),
        (401, "E0000011", "auth"),
        (403, "E0000006", "forbidden"),
        (404, "E0000007", "missing"),
        (400, "E0000001", "invalid"),
        (500, "E0000009", "internal"),
    ):
        yield Case(
            "okta",
            okta,
            status,
            {"errorCode": word, "errorSummary": "…", "errorLink": word, "errorId": "oae1", "errorCauses": []},
            means,
            word,
        )
    postgrest = "https://postgrest.org/en/stable/references/errors.html"
    for status, word, means in (
        (401, "PGRST301", "auth"),
        (503, "PGRST001", "unavailable"),
        (504, "PGRST003", "overloaded"),
        (406, "PGRST116", "missing"),
        (400, "PGRST100", "invalid"),
    ):
        yield Case(
            "supabase",
            postgrest,
            status,
            {"code": word, "details": None, "hint": None, "message": "…"},
            means,
            word,
        )


def social() -> Iterator[Case]:
    """X, Reddit, Meta, LinkedIn."""
    x = "https://docs.x.com/x-api/fundamentals/response-codes-and-errors"
    kind = "https://api.twitter.com/2/problems/usage-capped"
    yield Case(
        "x",
        x,
        429,
        {
            "account_id": 1,
            "product_name": "standard-basic",
            "title": "UsageCapExceeded",
            "period": "Monthly",
            "scope": "Product",
            "detail": "…",
            "type": kind,
        },
        "quota",
        kind,
    )
    yield Case(
        "x",
        x,
        429,
        {"title": "Too Many Requests", "detail": "Too Many Requests", "type": "about:blank", "status": 429},
        "rate",
        None,
        900.0,
        {**DATE, "x-rate-limit-remaining": "0", "x-rate-limit-reset": "1704068100"},
    )
    yield Case(
        "x",
        x,
        429,
        {"title": "Too Many Requests", "detail": "Too Many Requests", "type": "about:blank", "status": 429},
        "rate",
        None,
        43200.0,
        {
            **DATE,
            "x-rate-limit-remaining": "99",
            "x-rate-limit-reset": "1704068100",
            "x-user-limit-24hour-remaining": "0",
            "x-user-limit-24hour-reset": "1704110400",
        },
    )
    client = "https://api.twitter.com/2/problems/client-forbidden"
    yield Case(
        "x",
        x,
        403,
        {
            "client_id": "1",
            "detail": "…",
            "registration_url": "https://developer.x.com",
            "title": "Client Forbidden",
            "required_enrollment": "…",
            "reason": "client-not-enrolled",
            "type": client,
        },
        "forbidden",
        "client-not-enrolled",
    )
    for status, code, means in (
        (429, 88, "rate"),
        (401, 32, "auth"),
        (403, 64, "forbidden"),
        (404, 34, "missing"),
        (503, 130, "overloaded"),
        (403, 187, "conflict"),
        (403, 185, "quota"),
    ):
        yield Case("x", x, status, {"errors": [{"code": code, "message": "…"}]}, means, str(code))
    reddit = "https://www.reddit.com/dev/api/"
    yield Case(
        "reddit",
        reddit,
        429,
        {"message": "Too Many Requests", "error": 429},
        "rate",
        None,
        55.0,
        {"x-ratelimit-remaining": "0.0", "x-ratelimit-reset": "55", "x-ratelimit-used": "600"},
    )
    yield Case(
        "reddit",
        reddit,
        200,
        {"json": {"errors": [["RATELIMIT", "…", "ratelimit"]], "ratelimit": 178.4}},
        "rate",
        "RATELIMIT",
        178.4,
    )
    yield Case(
        "reddit",
        reddit,
        200,
        {"json": {"errors": [["SUBREDDIT_NOEXIST", "…", "sr"]]}},
        "missing",
        "SUBREDDIT_NOEXIST",
    )
    yield Case("reddit", reddit, 200, {"error": "invalid_grant"}, "auth", "invalid_grant")
    meta = "https://developers.facebook.com/docs/graph-api/guides/error-handling"
    for status, code, means in (
        (400, 4, "rate"),
        (400, 17, "rate"),
        (400, 613, "rate"),
        (401, 190, "auth"),
        (403, 200, "forbidden"),
        (400, 100, "invalid"),
        (500, 2, "unavailable"),
        (403, 368, "forbidden"),
        (400, 80004, "rate"),
    ):
        yield Case(
            "meta",
            meta,
            status,
            {"error": {"message": "…", "type": "OAuthException", "code": code, "fbtrace_id": "F1"}},
            means,
            str(code),
            trace="F1",
        )
    linkedin = "https://learn.microsoft.com/linkedin/shared/api-guide/concepts/error-handling"
    for status, code, means in ((401, 65601, "auth"), (403, 100, "forbidden"), (429, 101, "rate")):
        yield Case(
            "linkedin",
            linkedin,
            status,
            {"serviceErrorCode": code, "message": "…", "status": status},
            means,
            str(code),
        )


def commerce() -> Iterator[Case]:
    """Shopify, Xero, QuickBooks, eBay, Yelp, NewsAPI."""
    shopify = "https://shopify.dev/docs/api/usage/limits"
    yield Case(
        "shopify",
        shopify,
        429,
        {"errors": "Exceeded 2 calls per second for api client."},
        "rate",
        None,
        2.0,
        {"retry-after": "2.0", "x-shopify-shop-api-call-limit": "40/40"},
    )
    yield Case(
        "shopify",
        shopify,
        200,
        {
            "errors": [{"message": "Throttled", "extensions": {"code": "THROTTLED"}}],
            "extensions": {
                "cost": {
                    "requestedQueryCost": 101,
                    "actualQueryCost": None,
                    "throttleStatus": {"maximumAvailable": 1000, "currentlyAvailable": 1, "restoreRate": 50},
                }
            },
        },
        "rate",
        "THROTTLED",
        2.0,
    )
    for word, means in (
        ("MAX_COST_EXCEEDED", "large"),
        ("ACCESS_DENIED", "forbidden"),
        ("SHOP_INACTIVE", "forbidden"),
    ):
        yield Case(
            "shopify",
            shopify,
            200,
            {"data": None, "errors": [{"message": "…", "extensions": {"code": word}}]},
            means,
            word,
        )
    yield Case(
        "shopify",
        shopify,
        200,
        {"data": {"productCreate": {"product": None, "userErrors": [{"field": ["title"], "message": "…"}]}}},
        "invalid",
        field="title",
    )
    yield Case(
        "shopify",
        "https://shopify.dev/docs/api/usage/response-codes",
        402,
        {"errors": "…"},
        "quota",
        headers={"x-shopid": "1"},
    )
    yield Case(
        "shopify",
        "https://shopify.dev/docs/api/usage/response-codes",
        422,
        {"errors": {"title": ["…"]}},
        "invalid",
        field="title",
        headers={"x-shopid": "1"},
    )
    xero = "https://developer.xero.com/documentation/guides/oauth2-limits/limits"
    yield Case(
        "xero",
        xero,
        429,
        "",
        "rate",
        "minute",
        12.0,
        {"retry-after": "12", "x-rate-limit-problem": "minute", "xero-correlation-id": "x"},
    )
    yield Case(
        "xero",
        xero,
        429,
        "",
        "quota",
        "day",
        40000.0,
        {"retry-after": "40000", "x-rate-limit-problem": "day"},
    )
    qb = "https://developer.intuit.com/app/developer/qbo/docs/develop/troubleshooting/error-codes"
    for status, code, means in (
        (429, "003001", "rate"),
        (401, "3200", "auth"),
        (400, "5010", "conflict"),
        (400, "610", "missing"),
    ):
        yield Case(
            "quickbooks",
            qb,
            status,
            {
                "Fault": {
                    "Error": [{"Message": "…", "Detail": "…", "code": code}],
                    "type": "ValidationFault",
                },
                "time": "2024-01-01",
            },
            means,
            code,
            headers={"intuit_tid": "q1"},
        )
    ebay = "https://developer.ebay.com/api-docs/static/handling-error-messages.html"
    for status, code, means in ((429, 2001, "rate"), (401, 1001, "auth"), (403, 1100, "forbidden")):
        yield Case(
            "ebay",
            ebay,
            status,
            {"errors": [{"errorId": code, "domain": "ACCESS", "category": "REQUEST", "message": "…"}]},
            means,
            str(code),
            headers={"x-ebay-c-request-id": "e"},
        )
    yelp = "https://docs.developer.yelp.com/docs/fusion-rate-limiting"
    for status, word, means in (
        (429, "TOO_MANY_REQUESTS_PER_SECOND", "rate"),
        (429, "ACCESS_LIMIT_REACHED", "quota"),
        (401, "TOKEN_INVALID", "auth"),
    ):
        yield Case("yelp", yelp, status, {"error": {"code": word, "description": "…"}}, means, word)
    news = "https://newsapi.org/docs/errors"
    for status, word, means in (
        (429, "rateLimited", "rate"),
        (429, "apiKeyExhausted", "quota"),
        (401, "apiKeyInvalid", "auth"),
        (400, "parametersMissing", "invalid"),
    ):
        yield Case("newsapi", news, status, {"status": "error", "code": word, "message": "…"}, means, word)


def protocols() -> Iterator[Case]:
    """Formats that many services share."""
    oauth = "https://www.rfc-editor.org/rfc/rfc6749#section-5.2"
    for word, status, means in (
        ("invalid_grant", 400, "auth"),
        ("invalid_client", 401, "auth"),
        ("invalid_scope", 400, "invalid"),
        ("unauthorized_client", 400, "forbidden"),
        ("temporarily_unavailable", 503, "unavailable"),
        ("unsupported_grant_type", 400, "invalid"),
    ):
        yield Case("oauth", oauth, status, {"error": word, "error_description": "…"}, means, word)
    device = "https://www.rfc-editor.org/rfc/rfc8628#section-3.5"
    yield Case(
        "oauth",
        device,
        400,
        {"error": "authorization_pending", "error_description": "…"},
        "not-ready",
        "authorization_pending",
        5.0,
    )
    yield Case(
        "oauth",
        device,
        400,
        {"error": "slow_down", "error_description": "…", "interval": 10},
        "not-ready",
        "slow_down",
        10.0,
    )
    yield Case(
        "oauth", device, 400, {"error": "expired_token", "error_description": "…"}, "auth", "expired_token"
    )
    yield Case(
        "oauth",
        device,
        400,
        {"error": "access_denied", "error_description": "…"},
        "forbidden",
        "access_denied",
    )
    yield Case(
        "oauth",
        "https://www.rfc-editor.org/rfc/rfc9449#section-8",
        400,
        {"error": "use_dpop_nonce", "error_description": "…"},
        "auth",
        "use_dpop_nonce",
        headers={"dpop-nonce": "n"},
    )
    bearer = "https://www.rfc-editor.org/rfc/rfc6750#section-3.1"
    yield Case(
        "oauth",
        bearer,
        401,
        "",
        "auth",
        "invalid_token",
        headers={"www-authenticate": 'Bearer realm="x", error="invalid_token", error_description="…"'},
        more={"error": "invalid_token", "error_description": "…"},
    )
    yield Case(
        "oauth",
        bearer,
        403,
        "",
        "scope",
        "insufficient_scope",
        headers={"www-authenticate": 'Bearer error="insufficient_scope", scope="repo"'},
        more={"error": "insufficient_scope", "scope": "repo"},
    )
    grpc = "https://grpc.github.io/grpc/core/md_doc_statuscodes.html"
    for number, name, means in (
        ("3", "INVALID_ARGUMENT", "invalid"),
        ("4", "DEADLINE_EXCEEDED", "timeout"),
        ("5", "NOT_FOUND", "missing"),
        ("7", "PERMISSION_DENIED", "forbidden"),
        ("8", "RESOURCE_EXHAUSTED", "rate"),
        ("10", "ABORTED", "progress"),
        ("13", "INTERNAL", "internal"),
        ("14", "UNAVAILABLE", "unavailable"),
        ("16", "UNAUTHENTICATED", "auth"),
    ):
        yield Case("grpc", grpc, 200, "", means, name, headers={"grpc-status": number, "grpc-message": "…"})
    yield Case(
        "grpc",
        "https://github.com/grpc/proposal/blob/master/A6-client-retries.md",
        200,
        "",
        "unavailable",
        "UNAVAILABLE",
        0.25,
        {"grpc-status": "14", "grpc-retry-pushback-ms": "250"},
    )
    yield Case(
        "grpc",
        "https://github.com/grpc/proposal/blob/master/A6-client-retries.md",
        200,
        "",
        "permanent",
        "UNAVAILABLE",
        headers={"grpc-status": "14", "grpc-retry-pushback-ms": "-1"},
    )
    connect = "https://connectrpc.com/docs/protocol/#error-codes"
    for status, word, means in (
        (429, "resource_exhausted", "rate"),
        (503, "unavailable", "unavailable"),
        (409, "aborted", "progress"),
        (401, "unauthenticated", "auth"),
        (400, "invalid_argument", "invalid"),
        (504, "deadline_exceeded", "timeout"),
    ):
        yield Case("connect", connect, status, {"code": word, "message": "…"}, means, word)
    yield Case(
        "connect",
        connect,
        429,
        {
            "code": "resource_exhausted",
            "message": "…",
            "details": [{"type": "google.rpc.RetryInfo", "value": "CgIIHg"}],
        },
        "rate",
        "resource_exhausted",
        30.0,
    )
    twirp = "https://twitchtv.github.io/twirp/docs/errors.html"
    for status, word, means in (
        (429, "resource_exhausted", "rate"),
        (503, "unavailable", "unavailable"),
        (409, "aborted", "progress"),
        (400, "malformed", "invalid"),
    ):
        yield Case("connect", twirp, status, {"code": word, "msg": "…"}, means, word)
    graphql = "https://www.apollographql.com/docs/apollo-server/data/errors"
    for word, means in (
        ("UNAUTHENTICATED", "auth"),
        ("FORBIDDEN", "forbidden"),
        ("BAD_USER_INPUT", "invalid"),
        ("INTERNAL_SERVER_ERROR", "internal"),
        ("GRAPHQL_VALIDATION_FAILED", "invalid"),
    ):
        yield Case(
            "graphql",
            graphql,
            200,
            {"data": None, "errors": [{"message": "…", "path": ["a"], "extensions": {"code": word}}]},
            means,
            word,
            field="a",
        )
    x402 = "https://docs.cdp.coinbase.com/x402/core-concepts/http-402"
    yield Case(
        "x402",
        x402,
        402,
        {
            "x402Version": 1,
            "error": "X-PAYMENT header is required",
            "accepts": [{"scheme": "exact", "network": "base", "maxAmountRequired": "10000", "payTo": "0x0"}],
        },
        "pay",
    )
    yield Case("x402", x402, 402, "", "pay", headers={"payment-required": "eyJ4NDAyVmVyc2lvbiI6Mn0="})
    apigee = "https://cloud.google.com/apigee/docs/api-platform/troubleshoot/policies/runtime/quota"
    yield Case(
        "edge",
        apigee,
        429,
        {"fault": {"faultstring": "…", "detail": {"errorcode": "policies.ratelimit.QuotaViolation"}}},
        "rate",
        "policies.ratelimit.QuotaViolation",
    )
    yield Case(
        "edge",
        apigee,
        429,
        {"fault": {"faultstring": "…", "detail": {"errorcode": "policies.ratelimit.SpikeArrestViolation"}}},
        "rate",
        "policies.ratelimit.SpikeArrestViolation",
    )


GROUPS = (
    *(
        openai,
        anthropic,
        google,
        models,
        aws,
        azure,
        code_hosts,
        payments,
        messaging,
        work,
        infrastructure,
        social,
    ),
    *(commerce, protocols),
)
NO = {521, 523, 525, 526, 529}


def expected(case: Case) -> dict[str, Any]:
    """Return the members of the fault and the decision that the kind of a case determines."""
    code, recovery, actor, executed = KINDS[case.kind]
    if executed is None:
        status = case.status
        no = status is not None and (status in NO or (400 <= status < 500 and status not in {408, 499}))
        executed = "no" if no else "maybe"
        if case.vendor == "anthropic" and case.kind == "overloaded":
            executed = "no"
    fault: dict[str, Any] = {"recovery": recovery, "executed": executed}
    facts = {
        "code": code,
        "actor": actor,
        "retry_after": case.wait,
        "field": case.field,
        "trace_id": case.trace,
        "doc_uri": case.doc,
        "details": None if case.word is None else {"code": case.word, **case.more},
    }
    fault |= {name: value for name, value in facts.items() if value is not None}
    action = ACTIONS[recovery]
    if case.vendor == "anthropic" and isinstance(case.body, dict) and "text" in case.body:
        fault["executed"] = "no"
    delay = None if action != "retry" else 1.0 if case.wait is None else min(case.wait, 3600.0)
    return {"fault": fault, "decision": {"action": action, "delay": delay}}


DOCUMENTED: dict[tuple[str, str | None], float] = {("airtable", "RATE_LIMIT_REACHED"): 30.0}


def vectors() -> list[dict[str, Any]]:
    """Return all vectors."""
    made: list[dict[str, Any]] = []
    seen: dict[str, int] = {}
    for case in (case for group in GROUPS for case in group()):
        if (case.vendor, case.word) in DOCUMENTED:
            case = case._replace(wait=DOCUMENTED[case.vendor, case.word])  # noqa: PLW2901
        number = seen[case.vendor] = seen.get(case.vendor, 0) + 1
        if case.status is None:
            given: Any = case.body
        else:
            given = {"status": case.status, "headers": case.headers, "body": case.body}
        made.append(
            {
                "id": f"vendors/{case.vendor}-{number}",
                "vendor": case.vendor,
                "source": case.source,
                "in_success": case.status == 200,
                "input": given,
                "expected": expected(case),
            }
        )
    return made


def main(check: bool) -> int:
    """Write the file, or check it."""
    lines = b",\n".join(msgspec.json.encode(each) for each in vectors())
    data = b"[\n" + lines + b"\n]\n"
    if check:
        return int(FILE.read_bytes() != data)
    FILE.write_bytes(data)
    sys.stdout.write(f"{len(vectors())} vectors of {len({each['vendor'] for each in vectors()})} vendors\n")
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
