"""Deepgram."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, FORBIDDEN, INVALID, LOST, QUOTA, RATE
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
        # The reasons of close frames: undecodable audio; nothing was sent for too long, by either side.
        (INVALID, "DATA-0000"),
        (LOST, "NET-0000 NET-0001"),
    ),
    headers=("dg-request-id", "dg-error"),
    closes={1008: INVALID, 1011: LOST},
    computes=("/v1/listen", "/v1/speak"),
)
