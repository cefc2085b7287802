"""Cohere."""

from __future__ import annotations

from amends.vendors.kinds import CONTEXT, REFUSED, TIMEOUT, UNAVAILABLE
from amends.vendors.model import Vendor, words
from amends.vendors.routes import CHAT

__all__ = ["VENDOR"]

VENDOR = Vendor(
    name="cohere",
    title="Cohere",
    docs="https://docs.cohere.com/reference/errors",
    # Reasons why the output of a stream ended.
    words=words((REFUSED, "ERROR_TOXIC"), (CONTEXT, "ERROR_LIMIT"), (TIMEOUT, "TIMEOUT")),
    statuses={498: REFUSED, 499: UNAVAILABLE},
    headers=("x-endpoint-monthly-call-limit", "x-trial-endpoint-call-limit", "x-debug-trace-id"),
    computes=CHAT,
)
