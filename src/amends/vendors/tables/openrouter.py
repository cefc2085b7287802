"""OpenRouter."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CONTEXT,
    OVERLOADED,
    QUOTA,
    RATE,
    REFUSED,
    TIMEOUT,
    TOO_LARGE,
    UNAVAILABLE,
)
from amends.vendors.model import Vendor, words
from amends.vendors.routes import CHAT

__all__ = ["VENDOR"]

VENDOR = Vendor(
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
    computes=CHAT,
)
