"""OpenAI."""

from __future__ import annotations

from amends.vendors.kinds import (
    BAD_KEY,
    CONTEXT,
    DISABLED,
    EXPIRED,
    FORBIDDEN,
    IN_PROGRESS,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    OVERLOADED,
    QUOTA,
    RATE,
    REFUSED,
    STEP_UP,
    TIMEOUT,
    TOO_LARGE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="openai",
    title="OpenAI",
    docs="https://platform.openai.com/docs/guides/error-codes",
    words=words(
        (QUOTA, "insufficient_quota billing_hard_limit_reached billing_not_active usage_limit_reached"),
        (QUOTA, "usage_not_included credit_balance_exhausted insufficient_credits billing_limit_user_error"),
        ({413: TOO_LARGE, 0: RATE}, "rate_limit_exceeded"),
        (RATE, "rate_limit_reached too_many_requests"),
        ({503: OVERLOADED, 500: OVERLOADED, 429: OVERLOADED, 0: RATE}, "slow_down"),
        (OVERLOADED, "server_overloaded server_is_overloaded engine_overloaded overloaded"),
        (CONTEXT, "context_length_exceeded context_window_exceeded max_context_length_exceeded"),
        (TOO_LARGE, "string_above_max_length array_above_max_length request_too_large file_too_large"),
        (REFUSED, "content_policy_violation content_filter moderation_blocked invalid_prompt"),
        (REFUSED, "image_content_policy_violation safety_violation cyber_policy_violation cyber_policy"),
        (
            BAD_KEY,
            "invalid_api_key invalid_authentication incorrect_api_key_provided mismatched_organization",
        ),
        (BAD_KEY, "invalid_organization mismatched_project no_api_key"),
        (EXPIRED, "token_expired expired_session"),
        (STEP_UP, "missing_scope"),
        (FORBIDDEN, "unsupported_country_region_territory ip_not_authorized"),
        (DISABLED, "account_deactivated access_terminated organization_deactivated project_archived"),
        (NOT_FOUND, "model_not_found previous_response_not_found response_not_found unknown_url"),
        (INVALID, "invalid_value missing_required_parameter unknown_parameter unsupported_parameter"),
        (INVALID, "unsupported_value invalid_type invalid_image integer_above_max_value invalid_base64"),
        (INVALID, "integer_below_min_value decimal_above_max_value invalid_image_format image_parse_error"),
        (INVALID, "invalid_json_schema invalid_function_parameters empty_array session_expired"),
        (IN_PROGRESS, "conversation_locked thread_locked"),
        (TIMEOUT, "vector_store_timeout"),
    ),
    unless={
        "invalid_request_error": INVALID,
        "authentication_error": BAD_KEY,
        "permission_error": FORBIDDEN,
        "not_found_error": NOT_FOUND,
        "rate_limit_error": RATE,
        "tokens": RATE,
        "requests": RATE,
        "server_error": INTERNAL,
        "api_error": INTERNAL,
        "internal_error": INTERNAL,
    },
    headers=("openai-organization", "openai-processing-ms", "openai-version", "openai-project"),
    computes=("/chat/completions", "/completions", "/embeddings", "/responses", "/moderations"),
)
