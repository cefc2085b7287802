"""Azure OpenAI."""

from __future__ import annotations

from amends.vendors.kinds import (
    CONTEXT,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    OVERLOADED,
    QUOTA,
    RATE,
    REFUSED,
    TIMEOUT,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="azure-openai",
    title="Azure OpenAI",
    docs="https://learn.microsoft.com/azure/ai-services/openai/reference",
    words=words(
        (REFUSED, "ResponsibleAIPolicyViolation content_filter contentFilter"),
        (RATE, "RateLimitReached TooManyRequests too_many_requests"),
        (OVERLOADED, "NoCapacity EngineOverloaded"),
        (NOT_FOUND, "DeploymentNotFound model_not_found"),
        (QUOTA, "insufficient_quota InsufficientQuota quota_exceeded"),
        (CONTEXT, "context_length_exceeded"),
        ({413: CONTEXT, 0: CONTEXT}, "tokens_limit_reached"),
        (FORBIDDEN, "PermissionDenied"),
        (TIMEOUT, "Timeout"),
        (INVALID, "OperationNotSupported unsupported_parameter"),
    ),
    headers=("x-ms-deployment-name", "azureml-model-session", "x-ms-rai-invoked", "apim-request-id"),
    computes=("/chat/completions", "/completions", "/embeddings", "/responses"),
)
