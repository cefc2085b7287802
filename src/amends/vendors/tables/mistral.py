"""Mistral."""

from __future__ import annotations

from amends.vendors.kinds import CONTEXT, INVALID, OVERLOADED, RATE
from amends.vendors.model import Vendor, words
from amends.vendors.routes import CHAT

__all__ = ["VENDOR"]

VENDOR = Vendor(
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
    computes=CHAT,
    numbers=True,
)
