"""Together AI."""

from __future__ import annotations

from amends.vendors.kinds import CONTEXT, OVERLOADED, QUOTA, RATE
from amends.vendors.model import Vendor, words
from amends.vendors.routes import CHAT

__all__ = ["VENDOR"]

VENDOR = Vendor(
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
    computes=CHAT,
)
