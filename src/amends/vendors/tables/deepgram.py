"""Deepgram."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, FORBIDDEN, QUOTA, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

VENDOR = Vendor(
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
)
