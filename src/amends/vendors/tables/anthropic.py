"""
Anthropic.

A credit balance that is too low is reported as `invalid_request_error` with status 400 and only in prose, so the status
decides: the request is not repeated.
"""

from __future__ import annotations

from msgspec.structs import replace

from amends.core.enums import Executed
from amends.vendors.kinds import (
    BAD_KEY,
    CONTEXT,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    OVERLOADED,
    QUOTA,
    RATE,
    TIMEOUT,
    TOO_LARGE,
)
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="anthropic",
    title="Anthropic",
    docs="https://docs.anthropic.com/en/api/errors",
    words=words(
        # Sent with status 529, also inside a stream.
        (
            {
                0: replace(OVERLOADED, executed=Executed.NO),
                500: OVERLOADED,
                502: OVERLOADED,
                503: OVERLOADED,
            },
            "overloaded_error",
        ),
        (QUOTA, "billing_error credits_required credit_balance_too_low"),
        (TOO_LARGE, "request_too_large"),
        (CONTEXT, "model_context_window_exceeded prompt_too_long"),
        (TIMEOUT, "timeout_error"),
        ({404: NOT_FOUND}, "not_found_error"),
    ),
    unless={
        "invalid_request_error": INVALID,
        "authentication_error": BAD_KEY,
        "permission_error": FORBIDDEN,
        "not_found_error": NOT_FOUND,
        "rate_limit_error": RATE,
        "api_error": INTERNAL,
    },
    headers=("anthropic-organization-id", "anthropic-ratelimit-"),
    computes=("/v1/messages", "/v1/messages/count_tokens", "/v1/complete"),
)
