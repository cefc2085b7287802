"""Cerebras."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, CONTEXT, OVERLOADED, RATE
from amends.vendors.model import Vendor, words
from amends.vendors.routes import CHAT

__all__ = ["VENDOR"]

VENDOR = Vendor(
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
    computes=CHAT,
)
